"""The settings: which values they take, where they come from, what is shown of them, and the switches that switch."""

import dataclasses
import itertools
import json
import math
from pathlib import Path

import platformdirs
import pytest

from graphmem import Config, InvalidInput, Memory, Part, Ranking, Situation, Triple
from graphmem.config import SEARCH_MODES, read_settings
from graphmem.core.choices import RECALL_MODES
from graphmem.exchange.events import Event
from graphmem.surfaces.cli import main
from graphmem.surfaces.opening import default_settings_file

BOSS = ["--chan", "qq", "--peer", "boss"]
HERE = Situation.of(chan="qq", peer="boss")
# The switches that the sister systems have, with their defaults: sections B7 and C7 of their description.
SWITCHES = {
    "read_only": False,
    "writer_timeout": 120,
    "writer_max_retries": 3,
    "idle_checkpoint_after": 3600,
    "idle_check_every": 600,
    "retention_days": 0,
    "retention_check_every_days": 1,
    "reconcile_on_search": True,
    "search_score_floor": 0.15,
    "dream_interval_days": 7,
    "distill_interval_days": 30,
    "data_dir": "",
    "project_memory": True,
    "max_prompt_chars": 1600,
    "max_lessons_in_prompt": 8,
    "search_mode": "hybrid",
    "capture_failures": True,
    "incident_threshold": 2,
    "max_incidents": 40,
    "incident_max_age_days": 60,
    "section_order": 100,
    "include_usage_hint": True,
    "constraint_keys": ("pen_name", "signature"),
    "max_constraint_chars": 300,
    "remind_unrecorded": True,
    "ui": True,
    "route_prefix": "/dsh-memory/api/v1",
    "redact_mirror": True,
    "project_identity": "repository",
    "inject": True,
    "writer_command": (),
    "writer_url": "",
    "writer_model": "",
    "writer_tokens_per_day": 0,
}
# For each setting that a variable can hold: the text of another value, and the value.
OTHERS = {
    "data_dir": ("/srv/memory", "/srv/memory"),
    "search_mode": ("keyword", "keyword"),
    "language": ("zh", "zh"),
    "timezone": ("Asia/Shanghai", "Asia/Shanghai"),
    "project_identity": ("folder", "folder"),
    "route_prefix": ("/memory", "/memory"),
    "constraint_keys": ("signature, 笔名,", ("signature", "笔名")),
    "self_names": ("jarvis, 小助手", frozenset({"jarvis", "小助手"})),
    "writer_command": ("claude -p 'one, two'", ("claude", "-p", "one, two")),
    "writer_url": ("https://models.example/v1", "https://models.example/v1"),
    "writer_model": ("m1", "m1"),
}
# What has to be told along with a setting.
ALONG = {"writer_url": {"writer_model": "m1"}, "writer_model": {"writer_url": "http://localhost/v1"}}
KINDS = {each.name: each.type for each in dataclasses.fields(Config) if each.name not in ("weights", "ranking")}
BOOLEANS, COUNTS, NUMBERS, TEXTS = (
    sorted(name for name, found in KINDS.items() if found is kind) for kind in (bool, int, float, str)
)


def another(name):
    """Return the text of a value that is not the default, and the value."""
    value = getattr(Config(), name)
    if name in OTHERS:
        return OTHERS[name]
    if KINDS[name] is bool:
        return str(not value).lower(), not value
    fewer = name in ("scene_identity_features", "scene_recent_features") or KINDS[name] is float
    changed = KINDS[name]((value / 2 or 1) if fewer else value + 1)
    return str(changed), changed


@pytest.mark.parametrize(("name", "value"), SWITCHES.items())
def test_every_switch_of_the_sisters_is_a_setting_with_its_default(name, value):
    assert getattr(Config(), name) == value


@pytest.mark.parametrize("name", KINDS)
def test_every_setting_is_told_by_file_and_by_environment(tmp_path, name):
    text, value = another(name)
    file = tmp_path / "config.toml"
    file.write_text(f"{name} = {json.dumps(list(value) if KINDS[name] not in (bool, int, float, str) else value)}\n")

    along = ALONG.get(name, {})
    by_file = Config.load(file, {}, **along)
    by_environment = Config.load(None, {f"GRAPHMEM_{name.upper()}": text}, **along)

    assert getattr(by_file, name) == getattr(by_environment, name) == value
    assert getattr(Config(), name) != value


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *itertools.product(BOOLEANS, (1, "true", None)),
        *itertools.product(COUNTS, (-1, 2**63, 1.5, True, "2", None)),
        *itertools.product(NUMBERS, (-0.1, math.nan, math.inf, True, "1", None)),
        *itertools.product(TEXTS, (5, None, ["hybrid"])),
        *itertools.product(("constraint_keys", "self_names", "writer_command"), ("signature", 5, None, [5])),
        *itertools.product(("writer_command",), (("",), (" ", "-p"), ("a\0b",))),
        *itertools.product(
            ("writer_url",), ("localhost:11434", "ftp://h", "http://", "http://a b", "http://[", "http://h:x")
        ),
        *(("search_mode", value) for value in ("", "fuzzy", "scene", "Hybrid")),
        *(("project_identity", value) for value in ("", "path")),
        *(
            ("route_prefix", value)
            for value in ("", "/", "memory", "/memory/", "//memory", "/../memory", "/a b", "/a?b")
        ),
        *(("data_dir", value) for value in ("memory", "./memory", "/srv/a\0b", " ")),
        *itertools.product(("incident_threshold", "max_incidents", "half_life_days"), (0,)),
        *itertools.product(("writer_timeout", "idle_check_every", "retention_check_every_days"), (0, 2e6)),
        *itertools.product(("search_score_floor", "decay_floor", "shrink_limit"), (1.01,)),
        ("writer_max_retries", 101),
        ("writer_timeout", 3601),
    ],
    ids=lambda value: str(value)[:24],
)
def test_a_value_that_cannot_be_used_is_refused_by_name_value_and_remedy(name, value):
    with pytest.raises(InvalidInput) as caught:
        Config(**{name: value})

    assert caught.value.argument == name
    assert caught.value.value is value
    assert caught.value.reason.startswith(("give ", "not a known IANA time zone"))


@pytest.mark.parametrize(
    "name", ["max_prompt_chars", "max_constraint_chars", "max_lessons_in_prompt", "retention_days"]
)
def test_nothing_is_a_value_where_it_switches_off(name):
    assert getattr(Config(**{name: 0}), name) == 0


@pytest.mark.parametrize(
    ("settings", "refused"),
    [
        ({"writer_command": ["claude"], "writer_url": "http://h/v1", "writer_model": "m1"}, "writer_url"),
        ({"writer_url": "http://h/v1"}, "writer_model"),
        ({"writer_url": "http://h/v1", "writer_model": " "}, "writer_model"),
        ({"writer_model": "m1"}, "writer_model"),
        ({"writer_command": ["claude"], "writer_model": "m1"}, "writer_model"),
    ],
)
def test_there_is_one_writer_and_all_of_it(settings, refused):
    with pytest.raises(InvalidInput) as caught:
        Config(**settings)

    assert caught.value.argument == refused


@pytest.mark.parametrize("url", ["http://me:sekrit-77@h/v1", "http://sekrit-77@h", "http://h/v1?key=sekrit-77"])
def test_a_secret_in_an_address_is_refused_and_not_shown(url):
    with pytest.raises(InvalidInput, match="no part of it") as caught:
        Config(writer_url=url, writer_model="m1")

    assert "sekrit" not in str(caught.value)


def test_a_command_in_a_variable_has_each_quotation_closed():
    with pytest.raises(InvalidInput, match="GRAPHMEM_WRITER_COMMAND"):
        Config.load(None, {"GRAPHMEM_WRITER_COMMAND": "claude 'p"})


def test_what_a_writer_is_told_is_no_unknown_setting(caplog):
    read_settings(None, {"GRAPHMEM_WRITER": "1", "GRAPHMEM_WRITER_KEY": "sekrit-77", "GRAPHMEM_COLOUR": "red"})

    (record,) = caplog.records
    assert "GRAPHMEM_COLOUR is no setting" in record.getMessage()


def test_the_modes_of_settings_are_those_that_need_no_situation():
    assert set(RECALL_MODES) - set(SEARCH_MODES) == {"scene"}


# ---- where they come from


def test_what_was_given_knows_where(tmp_path):
    file = tmp_path / "config.toml"
    file.write_text("join_score = 0.6\nrecall_score = 0.4\n")
    environ = {"GRAPHMEM_JOIN_SCORE": "0.7", "GRAPHMEM_DB": "x", "HOME": "/"}

    assert read_settings(file, environ) == {
        "join_score": (0.7, "environment GRAPHMEM_JOIN_SCORE"),
        "recall_score": (0.4, f"file {file}"),
    }


def test_a_file_is_read_once(tmp_path, cli, monkeypatch, home):
    (home / "config.toml").write_text("max_prompt_chars = 5\n")
    opened = []
    real = open
    monkeypatch.setattr(
        "builtins.open", lambda path, *rest, **more: opened.append(str(path)) or real(path, *rest, **more)
    )

    cli("--config", "config.toml", "--db", "m.db", "turn", '{"source": "qq", "payload": {"user_id": "boss"}}')
    monkeypatch.undo()

    assert opened.count("config.toml") == 1


# ---- the command


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A fresh home, which is the working folder."""
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "GRAPHMEM_DB", "GRAPHMEM_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def cli(capsys, home):
    """Runs a command; returns its exit code, its output and its errors."""

    def run(*arguments):
        capsys.readouterr()
        with pytest.raises(SystemExit) as end:
            main(list(map(str, arguments)))
        return end.value.code, *capsys.readouterr()

    return run


@pytest.fixture
def told(cli):
    """What `config` tells, as a document; settings by name, with value and source."""

    def run(*arguments):
        code, out, err = cli(*arguments, "config", "--json")
        assert (code, err) == (0, "")
        document = json.loads(out)
        return document | {"settings": {one["name"]: (one["value"], one["source"]) for one in document["settings"]}}

    return run


def own_settings(home, text):
    file = home / ".config" / "graphmem" / "config.toml"
    file.parent.mkdir(parents=True)
    file.write_text(text, "utf-8")
    return file


def test_config_shows_every_setting(told):
    shown = told()["settings"]

    names = {name.partition(".")[0] for name in shown}
    assert names == {each.name for each in dataclasses.fields(Config)}
    assert {name for name in shown if name.startswith("ranking.")} == {
        f"ranking.{each.name}" for each in dataclasses.fields(Ranking)
    }
    assert {source for _, source in shown.values()} == {"default"}


def test_config_tells_where_each_setting_comes_from(told, home, monkeypatch):
    file = own_settings(home, "max_incidents = 5\nmax_prompt_chars = 7\n[weights]\ntool = 0.9\n[ranking]\nb = 0.5\n")
    monkeypatch.setenv("GRAPHMEM_MAX_PROMPT_CHARS", "8")
    monkeypatch.setenv("GRAPHMEM_SELF_NAMES", "b,a")

    shown = told()

    assert shown["file"] == {"path": str(file), "source": "default", "read": True}
    settings = shown["settings"]
    assert settings["max_incidents"] == (5, f"file {file}")
    assert settings["max_prompt_chars"] == (8, "environment GRAPHMEM_MAX_PROMPT_CHARS")
    assert settings["self_names"] == (["a", "b"], "environment GRAPHMEM_SELF_NAMES")
    assert (settings["weights.tool"], settings["weights.chan"]) == ((0.9, f"file {file}"), (1.0, "default"))
    assert (settings["ranking.b"], settings["ranking.k1"]) == ((0.5, f"file {file}"), (0.9, "default"))


@pytest.mark.parametrize(
    ("options", "environ", "file", "path", "source"),
    [
        ([], {}, "", ".local/share/graphmem/memory.db", "default"),
        ([], {"XDG_DATA_HOME": "~/d"}, "", "d/graphmem/memory.db", "default"),
        ([], {}, 'data_dir = "~/mem"\n', "mem/memory.db", "file {file}"),
        ([], {"GRAPHMEM_DATA_DIR": "~/own"}, 'data_dir = "~/mem"\n', "own/memory.db", "environment GRAPHMEM_DATA_DIR"),
        ([], {"GRAPHMEM_DB": "e.db"}, 'data_dir = "~/mem"\n', "e.db", "environment GRAPHMEM_DB"),
        (["--db", "o.db"], {"GRAPHMEM_DB": "e.db"}, "", "o.db", "option --db"),
    ],
)
def test_config_tells_which_memory_is_in_use(told, home, monkeypatch, options, environ, file, path, source):
    own = own_settings(home, file)
    for name, value in environ.items():
        monkeypatch.setenv(name, value.replace("~/d", str(home / "d")))

    assert told(*options)["memory"] == {"path": str(home / path), "source": source.format(file=own)}
    assert not (home / path).exists()


@pytest.mark.parametrize(
    ("options", "environ", "path", "source"),
    [
        ([], {}, ".config/graphmem/config.toml", "default"),
        ([], {"GRAPHMEM_CONFIG": "e.toml"}, "e.toml", "environment GRAPHMEM_CONFIG"),
        (["--config", "o.toml"], {"GRAPHMEM_CONFIG": "e.toml"}, "o.toml", "option --config"),
    ],
)
def test_one_file_of_settings_is_read(told, home, monkeypatch, options, environ, path, source):
    own_settings(home, "max_incidents = 1\n")
    for number, name in enumerate(("e.toml", "o.toml"), 2):
        (home / name).write_text(f"max_incidents = {number}\n")
    for name, value in environ.items():
        monkeypatch.setenv(name, value)

    shown = told(*options)

    assert shown["file"] == {"path": str(home / path), "source": source, "read": True}
    assert shown["settings"]["max_incidents"][0] == (1, 2, 3)[len(options) // 2 + len(environ)]


def test_config_says_in_words_what_is_in_use(cli, home):
    code, out, _ = cli("--db", "m.db", "config")

    assert code == 0
    assert out.splitlines()[:2] == [
        f"memory: {home}/m.db (option --db)",
        f"settings: {home}/.config/graphmem/config.toml (default, there is none)",
    ]
    assert any(line.split() == ["read_only", "false", "default"] for line in out.splitlines())
    assert not (home / "m.db").exists()


def test_config_never_shows_a_key(cli, home, monkeypatch):
    for name in ("GRAPHMEM_ARBITER_KEY", "GRAPHMEM_WRITER_KEY", "OPENAI_API_KEY"):
        monkeypatch.setenv(name, "sekrit-77")

    for form in ([], ["--json"]):
        code, out, err = cli("-v", "config", *form)
        assert (code, "sekrit" in out + err) == (0, False)


@pytest.mark.parametrize("home_of_settings", [None, "", " ", "/srv/settings", "/srv/settings/"])
def test_the_own_file_of_settings_lies_where_platformdirs_has_it(monkeypatch, home, home_of_settings):
    if home_of_settings is not None:
        monkeypatch.setenv("XDG_CONFIG_HOME", home_of_settings)

    expected = platformdirs.user_config_path("graphmem", appauthor=False) / "config.toml"

    assert Path(default_settings_file()) == expected


def test_a_broken_own_file_of_settings_is_refused_by_its_path(cli, home):
    file = own_settings(home, "max_incidents =")

    code, out, err = cli("--db", "m.db", "scenes")

    assert (code, out) == (1, "")
    assert str(file) in err


# ---- the switches that switch


def test_the_memory_without_a_name_lies_in_the_folder_of_the_settings(cli, home):
    own_settings(home, 'data_dir = "~/mem"\n')

    assert cli("enter", *BOSS)[0] == 0
    assert (home / "mem" / "memory.db").exists()
    assert not (home / ".local").exists()


@pytest.fixture
def known(path, clock):
    with Memory.open(path, clock=clock) as memory:
        memory.commit([Triple("panel", "uses", "pnpm")], scenes="chan:qq")
        memory.mirror("s1", [Part("m1", author="boss", text="we deploy with pnpm")])
    return path


@pytest.mark.parametrize("mode", SEARCH_MODES)
def test_search_mode_is_that_of_recall_where_none_is_given(known, mode):
    with Memory.open(known, config=Config(search_mode=mode)) as memory:
        for query in ("pnpm elsewhere", "panel"):
            assert memory.recall(query) == memory.recall(query, mode=mode)
        assert memory.recall("pnpm elsewhere", mode="hybrid")
        assert bool(memory.recall("pnpm elsewhere")) == (mode != "keyword")


def test_search_mode_of_the_settings_holds_for_the_command_too(cli, known, monkeypatch):
    monkeypatch.setenv("GRAPHMEM_SEARCH_MODE", "keyword")

    assert json.loads(cli("--db", known, "recall", "pnpm elsewhere", "--json")[1])["hits"] == []
    assert json.loads(cli("--db", known, "recall", "pnpm elsewhere", "--mode", "hybrid", "--json")[1])["hits"]


@pytest.mark.parametrize("inject", [True, False])
def test_inject_switches_every_brief(known, inject):
    with Memory.open(known, config=Config(inject=inject)) as memory:
        brief = memory.brief(HERE, query="pnpm", declared=["chan:qq"])
        with memory.turn(Event(source="qq", payload={"user_id": "boss"})) as turn:
            own, message = turn.brief(), turn.recall_message("deploy")
        assert [bool(one.text) for one in (brief, own, message)] == [inject] * 3
        assert bool(memory.recall("pnpm"))
        with pytest.raises(InvalidInput, match="budget"):
            memory.brief(HERE, budget=-1)


def test_read_only_is_told_in_one_line(cli, known, monkeypatch):
    before = known.read_bytes()
    monkeypatch.setenv("GRAPHMEM_READ_ONLY", "1")

    for command in (["commit", "a", "b", "c"], ["restore", known], ["dedupe"], ["upkeep"], ["reindex"]):
        code, out, err = cli("--db", known, *command)
        assert (code, out, err.count("\n")) == (1, "", 1)
        assert "read-only" in err
        assert "GRAPHMEM_READ_ONLY" in err
    assert cli("--db", known, "recall", "pnpm")[0] == 0
    assert json.loads(cli("--db", known, "enter", *BOSS, "--json")[1])["created"] is False
    assert known.read_bytes() == before


def test_read_only_makes_no_folder(cli, home, monkeypatch):
    monkeypatch.setenv("GRAPHMEM_READ_ONLY", "1")

    code, _, err = cli("scenes")

    assert (code, "does not exist" in err) == (1, True)
    assert list(home.iterdir()) == []


def test_a_file_may_begin_with_the_mark_that_windows_puts_there(tmp_path):
    file = tmp_path / "config.toml"
    file.write_bytes(b"\xef\xbb\xbfread_only = true\r\nmax_incidents = 7\r\n")

    config = Config.load(file, {})

    assert (config.read_only, config.max_incidents) == (True, 7)
