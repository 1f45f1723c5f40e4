"""The routes of dsh-memory-ledger under their old prefix: C7, C8.16 to C8.18."""

import pytest
from starlette.routing import Route
from test_http import HOST, MAY_WRITE, PORT, error_of, served

from graphmem import Config, Memory
from graphmem.surfaces.http import ledger

PREFIX = Config().route_prefix


@pytest.fixture
def notes(memory):
    """A fact of the user, a lesson, and one that was put away."""
    return [
        memory.remember("The panel is blue", slot="panel", labels=["colour"], source="user").note,
        memory.remember("Deploy with pnpm", kind="lesson", body="npm breaks the lock file").note,
        memory.forget(memory.remember("The panel is red").note.id),
    ]


@pytest.fixture
def client(memory, notes):
    with served(memory) as client:
        yield client


def listed(client, query=""):
    answer = client.get(f"{PREFIX}/ledger{query}")
    assert answer.status_code == 200
    return [entry["title"] for entry in answer.json()["entries"]]


def post(client, route, body, headers=MAY_WRITE):
    return client.post(f"{PREFIX}/{route}", json=body, headers=headers)


def test_entries_are_listed_by_the_names_they_had(client, notes):
    entry = next(each for each in client.get(f"{PREFIX}/ledger").json()["entries"] if each["id"] == notes[0].id)

    assert {name: entry[name] for name in ("kind", "title", "body", "key", "tags", "pinned", "archived", "scope")} == {
        "kind": "fact", "title": "The panel is blue", "body": "", "key": "panel", "tags": ["colour"], "pinned": False,
        "archived": False, "scope": "user",
    }  # fmt: skip
    assert entry["reason"] == notes[0].reason != ""
    assert entry["origin"] == {"cwd": "", "label": "", "sessionId": "", "at": notes[0].origin.at}


@pytest.mark.parametrize(
    ("query", "titles"),
    [
        ("", {"The panel is blue", "Deploy with pnpm"}),
        ("?archived=1", {"The panel is blue", "Deploy with pnpm", "The panel is red"}),
        ("?archived=0&q=panel", {"The panel is blue"}),
        ("?q=panel&archived=1", {"The panel is blue", "The panel is red"}),
        ("?q=pnpm+lock&mode=keyword", {"Deploy with pnpm"}),
        ("?q=pnpm+panel&mode=keyword", set()),
        ("?q=red+panel&archived=1", {"The panel is blue", "The panel is red"}),
        ("?scope=user", {"The panel is blue", "Deploy with pnpm"}),
        ("?scope=all", {"The panel is blue", "Deploy with pnpm"}),
    ],
)
def test_entries_are_searched(client, query, titles):  # C8.5, C8.7, C8.18
    assert set(listed(client, query)) == titles


@pytest.mark.parametrize(
    ("query", "argument"),
    [("mode=semantic", "mode"), ("archived=yes", "archived"), ("limit=1", "limit"), ("q=a&q=b", "q"),
     ("cwd=relative", "project"), ("cwd=/no/such/folder", "project"), ("scope=project", "scopes")],
)  # fmt: skip
def test_a_query_that_cannot_be_used_is_refused(client, query, argument):
    answer = client.get(f"{PREFIX}/ledger?{query}")

    assert (answer.status_code, error_of(answer)["argument"]) == (400, argument)


def test_a_folder_says_whose_entries_are_meant(client, memory, tmp_path):
    one, other = tmp_path / "one", tmp_path / "other"
    for folder in (one, other):
        folder.mkdir()
        with Memory.open(memory.path, project=folder) as opened:
            opened.remember(f"This is {folder.name}", kind="lesson")

    assert set(listed(client, f"?cwd={one}")) == {"The panel is blue", "Deploy with pnpm", "This is one"}
    assert listed(client, f"?cwd={one}&scope=project") == ["This is one"]
    assert set(listed(client, f"?cwd={one}&scope=user")) == {"The panel is blue", "Deploy with pnpm"}
    assert {"This is one", "This is other"} <= set(listed(client, f"?cwd={one}&scope=all"))
    entry = client.get(f"{PREFIX}/ledger?cwd={other}&scope=project").json()["entries"][0]
    assert (entry["origin"]["cwd"], entry["origin"]["label"]) == (str(other), "other")


def test_newer_notes_of_the_user_crowd_out_none_of_a_project(client, memory, tmp_path, monkeypatch):
    monkeypatch.setattr(ledger, "MOST", 3)
    monkeypatch.setattr(ledger, "_LOOKED_THROUGH", 40)
    with Memory.open(memory.path, project=tmp_path) as opened:
        opened.remember("Deploy this project by hand, and by nothing else", kind="lesson")
        opened.forget(opened.remember("Deploy it by magic", kind="lesson").note.id)
    for i in range(20):
        memory.remember(f"Deploy {i}", source="user")
        memory.forget(memory.remember(f"Away {i}", source="user").note.id, source="user")

    for query in ("", "&q=deploy"):
        asked = f"?cwd={tmp_path}&scope=project{query}"
        answer = client.get(f"{PREFIX}/ledger{asked}").json()
        assert [each["title"] for each in answer["entries"]] == ["Deploy this project by hand, and by nothing else"]
        assert not answer["more"]
        assert "Deploy it by magic" in listed(client, f"{asked}&archived=1")
        crowded = client.get(f"{PREFIX}/ledger?scope=user{query}").json()
        assert (len(crowded["entries"]), crowded["more"]) == (3, True)


def test_more_is_told_where_not_all_that_a_query_finds_is_looked_at(client, memory, tmp_path, monkeypatch):
    monkeypatch.setattr(ledger, "_LOOKED_THROUGH", 5)
    with Memory.open(memory.path, project=tmp_path):
        pass
    for i in range(6):
        memory.remember(f"Deploy {i}", source="user")

    assert client.get(f"{PREFIX}/ledger?cwd={tmp_path}&scope=project&q=deploy").json() == {"entries": [], "more": True}


def test_an_entry_that_is_removed_meanwhile_is_left_out(client, memory, monkeypatch):
    kept, gone = (memory.remember(f"The pelican lives {there}").note for there in ("here", "there"))
    recall = Memory.recall

    def found_and_removed(self, *args, **options):
        hits = recall(self, *args, **options)
        memory.forget(gone.id, hard=True, source="user")
        return hits

    monkeypatch.setattr(Memory, "recall", found_and_removed)
    assert listed(client, "?q=pelican") == [kept.title]


def test_only_what_is_given_changes(client, memory, notes):  # C8.3, C8.16
    before = memory.inspect(notes[0].id).note

    answer = post(client, "update", {"id": before.id, "pinned": True})

    after = memory.inspect(before.id).note
    assert (answer.status_code, answer.json()["entry"]["pinned"]) == (200, True)
    assert after.pinned
    assert (after.title, after.labels, after.slot, after.origin) == (
        before.title, before.labels, before.slot, before.origin,
    )  # fmt: skip


def test_each_field_changes_under_its_old_name(client, notes):
    given = {"title": "Use npm", "body": "It works again", "key": "deploy", "tags": ["npm"], "kind": "decision"}

    entry = post(client, "update", {"id": notes[1].id, **given, "reason": "tried"}).json()["entry"]

    assert {name: entry[name] for name in given} == given
    assert entry["reason"] == "tried"


@pytest.mark.parametrize(
    ("body", "status", "argument"),
    [
        ({"id": 1, "title": ""}, 400, "title"),
        ({"id": 1, "title": "  "}, 400, "title"),
        ({"id": 1, "kind": "x"}, 400, "kind"),
        ({"id": 1, "tags": 7}, 400, "tags"),
        ({"id": 1, "scope": "project"}, 400, "scope"),
        ({"id": 1, "archived": "yes"}, 400, "archived"),
        ({"id": 1, "archived": None}, 400, "archived"),
        ({"id": 1}, 400, "body"),
        ({"title": "x"}, 400, "id"),
        ({"id": "1", "title": "x"}, 400, "id"),
        ({"id": True, "title": "x"}, 400, "id"),
        ({"id": 1.5, "title": "x"}, 400, "id"),
        ({"id": 2**63, "title": "x"}, 400, "id"),
        ({"id": 2**63 - 1, "title": "x"}, 404, None),
        ({"id": 99, "pinned": True}, 404, None),
        ({"id": 1, "title": "the password is hunter2-Xy9!"}, 422, "title"),
    ],
)
def test_a_change_that_cannot_be_made_changes_nothing(client, memory, body, status, argument):  # C8.16
    before = memory.notes(statuses=())

    answer = post(client, "update", body)

    assert (answer.status_code, error_of(answer).get("argument")) == (status, argument)
    assert memory.notes(statuses=()) == before


def test_an_entry_is_put_away_and_brought_back(client, memory, notes):  # C8.18
    note_id = notes[0].id

    gone = post(client, "update", {"id": note_id, "archived": True, "reason": "painted over"}).json()["entry"]
    assert gone["archived"]
    assert "The panel is blue" not in [*listed(client), *listed(client, "?q=blue")]
    assert "The panel is blue" in listed(client, "?archived=1")
    assert post(client, "update", {"id": note_id, "archived": True}).json()["entry"] == gone
    back = post(client, "update", {"id": note_id, "archived": False, "title": "The panel is light blue"}).json()[
        "entry"
    ]
    assert (back["archived"], back["title"]) == (False, "The panel is light blue")
    assert [act.reason for act in memory.inspect(note_id).acts if act.act == "forget"] == ["painted over"]


def test_all_of_a_change_is_made_or_nothing(client, memory, notes):
    away = memory.forget(notes[0].id)
    memory.remember("The panel is green", slot="panel")

    answer = post(client, "update", {"id": away.id, "body": "as ever", "archived": False})

    assert answer.status_code == 409
    assert (memory.inspect(away.id).note.body, memory.inspect(away.id).note.status) == ("", "archived")


def test_an_entry_is_forgotten_softly_and_for_good(client, memory, notes):  # C8.18
    note_id = notes[0].id

    assert post(client, "forget", {"id": note_id}).json()["entry"]["archived"]
    assert post(client, "forget", {"id": note_id}).status_code == 409
    assert post(client, "forget", {"id": note_id, "hard": True}).json() == {"entry": None}
    assert post(client, "forget", {"id": note_id}).status_code == 404
    assert "The panel is blue" not in listed(client, "?archived=1")
    assert post(client, "forget", {"id": 99}).status_code == 404
    assert error_of(post(client, "forget", {"id": notes[1].id, "hard": 1}))["argument"] == "hard"


@pytest.mark.parametrize("route", ["update", "forget"])
def test_without_the_token_nothing_is_changed(client, notes, route):
    assert post(client, route, {"id": notes[0].id, "title": "x"}, {}).status_code == 401
    assert "The panel is blue" in listed(client)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": f"example.com:{PORT}"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Origin": "http://example.com"}, 403),
        *(({"Host": host, "Origin": f"http://{host}"}, 200) for host in (HOST, f"localhost:{PORT}", f"[::1]:{PORT}")),
    ],
)
def test_pages_of_others_ask_nothing_here_either(client, headers, status):  # C8.17
    assert client.get(f"{PREFIX}/ledger", headers=headers).status_code == status


@pytest.mark.parametrize(("method", "route"), [("POST", "ledger"), ("GET", "update"), ("PUT", "forget")])
def test_another_method_is_refused(client, method, route):
    assert client.request(method, f"{PREFIX}/{route}", headers=MAY_WRITE).status_code == 405


def test_the_prefix_is_a_setting_and_pages_can_be_switched_off(tmp_path):
    pages = [Route("/notes", lambda request: None)]
    for config, found in ((Config(route_prefix="/memory/v1"), 200), (Config(route_prefix="/memory/v1", ui=False), 404)):
        with Memory.open(tmp_path / "m.db", config=config) as memory, served(memory, pages=pages) as client:
            assert client.get("/memory/v1/ledger").status_code == found
            assert client.post("/notes").status_code == (405 if found == 200 else 404)
            assert client.get(f"{PREFIX}/ledger").status_code == 404
            assert client.get("/api/overview").status_code == 200
