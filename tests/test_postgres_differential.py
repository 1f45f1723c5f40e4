"""The same programs on a SQLite file and on a tenant of a server: every answer and every refusal is the same."""

import dataclasses
import datetime as dt
import functools
import io
import math
import os
import re
import tempfile
from collections.abc import Mapping
from enum import Enum
from pathlib import Path

import networkx
import pytest
from conftest import FakeClock
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st
from support import sql

from graphmem import GraphmemError, Memory, Part, Situation, Triple

pytest.importorskip("psycopg", reason="psycopg is not installed: pip install 'graphmem[postgres]'")

import psycopg
from postgres_server import address, fresh_database
from postgres_store import emptied

from graphmem.core.model import UpkeepStep
from graphmem.graph.blocks import content_id
from graphmem.store.postgres.address import schema_of
from graphmem.store.postgres.engine import numbered

pytestmark = pytest.mark.skipif(
    os.environ.get("GRAPHMEM_TEST_STORE") == "postgres", reason="this one compares both stores: files must be files"
)

TENANT = "differential"
# What a store takes, where it lies, and how long something took.
OF_ITS_OWN = {"path", "file_bytes", "wal", "bytes", "seconds", "size", "sizes", "backup"}

OWNER = re.compile(r'"owner":"[^"]*"')
# In the logs and standbys of a server, in backups that are files.
LEFT_BEHIND = re.compile(
    "what was removed may still lie|no backup is made|copies that were made before may still hold it"
)
LOG = re.compile(
    r"pages of the write-ahead log .*|the write-ahead log copied .*|nothing: the server sees .*"
)  # a server sees to its own

# ---- what is said

names = st.sampled_from(["老大", "boss", "Boss", " panel ", "pnpm", "npm", "纯文本", "naïve", "O'Brien", "100%"])
relation_names = st.sampled_from(["偏好", "likes", "uses", "located in", "is"])
words = st.sampled_from(
    [
        "deploy",
        "部署",
        "pnpm",
        "never",
        "force push",
        "plain text",
        "boss",
        "纯文本",
        "panel",
        "%",
        "_",
        "'",
        '"x',
        "NOT",
        "*",
    ]
)
texts = st.lists(words, min_size=1, max_size=4).map(" ".join)
keys = st.sampled_from(["chan:qq", "chan:qq/peer:boss", "CHAN:QQ", "peer:boss", "tool:bash", "topic:deploy", "chan:mail", "auto:peer:boss_chan:qq", "nowhere", ""])  # fmt: skip
key_lists = st.lists(keys.filter(bool), max_size=2)
sessions = st.sampled_from(["s1", "s2", "s 3"])
sources = st.sampled_from(["user", "user", "agent", "tool"])
ids = st.integers(1, 6)
limits = st.sampled_from([None, 0, 1, 3, 50])
flags = st.booleans()
confidences = st.sampled_from([1.0, 0.9, 0.5, 0.05, 1 / 3])
moments = st.sampled_from(["2026-09-01T00:00:00+00:00", "2026-09-07T08:00:00+00:00", "2026-09-08T00:00:00+00:00"])
situations = st.builds(
    Situation.of,
    peer=st.sampled_from(["boss", "ann", "老大"]),
    chan=st.sampled_from(["qq", "mail"]),
    topics=st.lists(st.sampled_from(["deploy", "部署"]), max_size=1),
)
triples = st.builds(
    lambda subject, relation, target, sentence, confidence: Triple(
        subject, relation, target, sentence=sentence, confidence=confidence
    ),
    names,
    relation_names,
    names,
    texts,
    confidences,
)
BLOCKS = {text: content_id("blk_", "text", "", text) for text in ("排班表", "panel shot")}
DOCUMENTS = {text: content_id("doc_", text) for text in ("deploy with pnpm 部署", "boss likes 纯文本")}
block_ids, document_ids = st.sampled_from([*BLOCKS.values(), "none"]), st.sampled_from([*DOCUMENTS.values(), "none"])
parts = st.builds(
    lambda number, text, tool, outcome: Part(
        id=f"m{number}", text=text, tool=tool, outcome=outcome if tool else "", author="" if tool else "boss"
    ),
    st.integers(1, 9),
    texts,
    st.sampled_from(["", "", "bash"]),
    st.sampled_from(["done", "failed"]),
)


def call(verb, *arguments, **optional):
    """Calls of a verb: arguments that stand always, and named ones that may."""
    named = {name: value for name, value in optional.items() if not name.startswith("always_")}
    always = {name.removeprefix("always_"): value for name, value in optional.items() if name.startswith("always_")}
    return st.tuples(st.just(verb), st.tuples(*arguments), st.fixed_dictionaries(always, optional=named))


WRITES = st.one_of(
    call("enter_scene", situations, declared=key_lists),
    call("enter_scene", situations),
    call("declare_scene", keys),
    call("commit", st.lists(triples, max_size=3), scenes=key_lists, session=sessions, turn=st.integers(0, 3), at=moments, source=sources),
    call("commit", st.lists(triples, min_size=1, max_size=2), scenes=key_lists),
    call("remember", texts, body=texts, kind=st.sampled_from(["fact", "rule", "lesson"]), slot=st.sampled_from(["", "deploy", "pen_name"]), labels=st.lists(words, max_size=2), scenes=key_lists, pinned=flags, source=sources),
    call("forget", ids, hard=flags, source=sources),
    call("restore_note", ids, source=sources),
    call("approve", ids, source=sources),
    call("reject", ids),
    call("edit_note", ids, title=texts, body=texts, slot=st.sampled_from(["", "deploy"]), pinned=flags, labels=texts, source=sources),
    call("propose", texts.map(lambda text: f'[{{"title": "{text.replace(chr(34), "")}", "body": "all of it"}}]')),
    call("mirror", sessions, st.lists(parts, min_size=1, max_size=3), at=moments),
    call("delete_parts", sessions, st.sampled_from(["m1", "m2"])),
    call("delete_session", sessions),
    call("checkpoint", sessions, always_wait=st.just(True), force=flags),
    call("consolidate", force=flags, dry_run=flags, allow_shrink=flags),
    call("distill", force=flags, dry_run=flags),
    call("put_block", st.sampled_from(list(BLOCKS)), scenes=key_lists),
    call("delete_block", block_ids),
    call("put_document", st.sampled_from(list(DOCUMENTS)), scenes=key_lists, tags=st.lists(words, max_size=1), blocks=st.lists(block_ids, max_size=1)),
    call("consume_document", document_ids),
    call("archive_document", document_ids, st.lists(triples, max_size=2)),
    call("record_failure", st.sampled_from(["bash", "git"]), texts),
    call("forget_incident", ids),
    call("edit_relation", ids, confidence=confidences, object=names, sentence=texts),
    call("delete_relation", ids, hard=flags),
    call("purge", always_relation=relation_names, dry_run=flags, hard=flags),
    call("purge", always_session=sessions, dry_run=flags, hard=flags),
    call("purge", always_entity=names, dry_run=flags, hard=flags),
    call("purge", always_scene=keys, dry_run=flags, hard=flags),
    call("purge", always_subject_contains=words, object_contains=words, dry_run=flags, hard=flags),
    call("dedupe_scenes", dry_run=flags),
    call("merge_entities", names, names, dry_run=flags),
    call("keep_apart", names, names, apart=flags),
    call("upkeep", dry_run=flags, allow_shrink=flags),
    call("undo", ids, dry_run=flags),
    call("tag_scene", keys, st.lists(ids, max_size=2), dry_run=flags),
    call("tag_scene", keys, glob=st.sampled_from(["*", "b*", "老?", "[x", "B*"])),
    call("untag_scene", keys, glob=st.sampled_from(["*", "b*"]), dry_run=flags),
    call("rename_scene", keys, keys, dry_run=flags),
    call("drop_scene", keys, below=flags, dry_run=flags),
    call("reset_scenes", dry_run=flags),
    call("repair", dry_run=flags),
    call("reindex"),
    call("remind", sessions, texts),
    call("query_documents", texts),
    call("scan_secrets", redact=flags),
    call("run_jobs"),
)  # fmt: skip
READS = st.one_of(
    call("recall", texts, situation=situations, kinds=st.lists(st.sampled_from(["relation", "note", "part", "document", "block", "checkpoint"]), max_size=2), scenes=key_lists, exact=flags, since=moments, until=moments, as_of=moments, precise=flags, limit=limits, explain=flags),
    call("recall", texts, always_mode=st.sampled_from(["all", "any", "text", "meaning", "graph", None]), limit=limits),
    call("recall", texts, explain=flags),
    call("recall_by_scene", key_lists, limit=limits, exact=flags, as_of=moments),
    call("recall_by_situation", situations, declared=key_lists, text=texts, limit=limits),
    call("match_scenes", situations),
    call("scenes", keys, sort=st.sampled_from(["refs", "key", "strength", "recent", "size"]), contains=words, limit=limits, skip=st.integers(0, 2)),
    call("scene", keys),
    call("scene_health"),
    call("evidence"),
    call("scopes"),
    call("notes", kinds=st.just(["rule"]), statuses=st.just(["live", "proposed", "archived", "superseded", "forgotten"]), limit=limits),
    call("ledger", limit=limits),
    call("inspect", ids),
    call("inspect"),
    call("rules_for", situations, tool=st.sampled_from(["bash", "git"])),
    call("tool_brief", situations, st.sampled_from(["bash", "git"]), text=texts),
    call("brief", situations, query=texts, declared=key_lists, budget=st.sampled_from([200, 2000]), checkpoint=st.just("")),
    call("history", texts, session=sessions, since=moments, limit=limits),
    call("sessions", limit=limits),
    call("parts", sessions, limit=limits, skip=st.integers(0, 2)),
    call("part", ids),
    call("jobs"),
    call("incidents", status=st.none()),
    call("neighbours", names, depth=st.integers(1, 3), sort=st.sampled_from(["relevance", "recent", "name"]), limit=st.integers(1, 5)),
    call("shortest_path", names, names),
    call("graph", entity=names, scene=keys, depth=st.integers(1, 2)),
    call("draw", form=st.sampled_from(["mermaid", "dot"])),
    call("block", block_ids),
    call("overview"),
    call("growth", days=st.integers(1, 3)),
    call("operations", limit=limits),
    call("review_entities", limit=st.integers(1, 5)),
    call("kept_apart"),
    call("check"),
)  # fmt: skip
# Named by their digests, and looked at all at the end of each program.
LOOKS = [
    ("check", (), {}),
    ("overview", (), {}),
    ("scenes", (), {}),
    ("graph", (), {}),
    ("operations", (), {}),
    ("notes", (), {"statuses": ["live", "proposed", "archived", "superseded", "forgotten"]}),
    ("inspect", (), {}),
    ("incidents", (), {"status": None}),
    ("sessions", (), {}),
    ("jobs", (), {}),
    ("evidence", (), {}),
    ("recall", ("boss deploy 纯文本 部署 pnpm panel never",), {"explain": True}),
    ("brief", (Situation.of(chan="qq", peer="boss"),), {"query": "deploy 部署"}),
]
HERE = Situation.of(chan="qq", peer="boss")
# What each program begins with, so that there is something to be changed, found, merged and removed.
BEGUN = [
    ("enter_scene", (HERE,), {"declared": ["chan:qq"]}),
    ("enter_scene", (HERE,), {}),
    ("declare_scene", ("tool:shell",), {}),
    (
        "commit",
        ([Triple("boss", "likes", "pnpm", sentence="boss likes pnpm"), Triple("Boss", "uses", "panel", confidence=0.5)],),
        {"scenes": ["chan:qq"], "session": "s1", "turn": 1},
    ),
    ("commit", ([Triple("老大", "偏好", "纯文本", sentence="老大偏好纯文本。")],), {"session": "s2"}),
    ("commit", ([Triple("panel", "uses", "npm"), Triple("npm", "is", "pnpm", sentence="npm is never pnpm")],), {}),
    ("remember", ("Deploy with npm",), {"slot": "deploy", "labels": ["部署"]}),
    ("remember", ("Never force push",), {"kind": "rule", "scenes": ["chan:qq"]}),
    ("remember", ("Never deploy on friday",), {"kind": "rule", "source": "agent"}),
    ("remember", ("The panel is blue",), {"source": "agent"}),
    ("mirror", ("s1", [Part(id="m1", author="boss", text="部署用什么？ deploy with pnpm"), Part("m2", tool="bash", text="make", outcome="failed")]), {}),
    ("mirror", ("s2", [Part(id="m1", author="boss", text="plain text, 纯文本")]), {}),
    ("record_failure", ("bash", "rm: cannot remove 'a'"), {}),
    ("put_block", ("排班表",), {"scenes": ["chan:qq"]}),
    ("put_document", ("deploy with pnpm 部署",), {"scenes": ["chan:qq"]}),
    ("remember", ("Deploy on mondays",), {}),
    ("forget", (5,), {}),
    ("edit_relation", (1,), {"confidence": 0.5}),
    ("edit_note", (1,), {"title": "Deploy with pnpm"}),
    ("merge_entities", ("panel", "npm"), {}),
    ("rename_scene", ("tool:shell", "tool:bash"), {}),
]  # fmt: skip
pauses = st.sampled_from([{}, {"minutes": 1}, {"days": 1}, {"days": 40}])


# ---- both stores


class Both:
    """A memory in a file and one on a server, whose clocks show the same time."""

    def __init__(self, server, folder):
        self.clocks = FakeClock(), FakeClock()
        self.path = Path(folder, "memory.db")
        self.file = Memory.open(self.path, clock=self.clocks[0])
        self.tenant = Memory.open(address(TENANT, server), clock=self.clocks[1])

    def do(self, step, connection):
        """Call a verb on both; fails where the answers are not the same."""
        verb, arguments, named = step
        of_file, of_tenant = (answer(memory, verb, arguments, named) for memory in (self.file, self.tenant))
        compare(of_file, of_tenant, verb)
        self._number(connection)

    def _number(self, connection):
        """Let rows be numbered as those of the file: what a server takes back uses numbers up, and SQLite does not."""
        last = dict(sql(self.path, "SELECT name, seq FROM sqlite_sequence"))
        connection.execute(
            "".join(
                f"""SELECT setval('"{schema_of(TENANT)}"."{table}_{column}_seq"'::regclass,
                                  {last.get(table) or 1}, {"true" if last.get(table) else "false"});"""
                for table, column in numbered()
            )
        )

    def close(self):
        self.file.close()
        self.tenant.close()


def answer(memory, verb, arguments, named):
    """What a verb returns or how it refuses, and how often the embedder was asked: all that its caller sees."""
    try:
        return plain(getattr(memory, verb)(*arguments, **named))
    except GraphmemError as error:
        return [type(error).__name__, str(error).replace(memory.path, "PATH")]


def plain(value):
    """A value as lists, dictionaries and plain values; what differs by nature is left out."""
    if isinstance(value, UpkeepStep) and value.name == "optimise text index":
        return {"": "UpkeepStep", "name": value.name}  # whether FTS5 has segments to merge
    if dataclasses.is_dataclass(value):
        fields = {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
        return {"": type(value).__name__} | {name: item for name, item in fields.items() if name not in OF_ITS_OWN}
    if isinstance(value, networkx.MultiDiGraph):
        return {"nodes": plain(list(value.nodes(data=True))), "edges": plain(list(value.edges(keys=True, data=True)))}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, set | frozenset):
        return sorted(map(plain, value), key=repr)
    if isinstance(value, list | tuple):
        return [plain(item) for item in value if not (isinstance(item, str) and LEFT_BEHIND.search(item))]
    if isinstance(value, str):
        return LOG.sub("", value)
    if isinstance(value, Enum | dt.datetime | bytes):
        return repr(value)
    assert value is None or isinstance(value, int | float | bool), type(value)
    return value


def compare(file, tenant, where):
    """Fail where two plain values differ by more than the last digits of a number, and say where."""
    if isinstance(file, float) and isinstance(tenant, float):
        assert math.isclose(file, tenant, rel_tol=1e-9, abs_tol=1e-9), f"{where}: {file!r} in the file, {tenant!r}"
        return
    assert type(file) is type(tenant), f"{where}: {file!r} in the file, {tenant!r} on the server"
    if isinstance(file, dict):
        assert list(file) == list(tenant), f"{where}: {list(file)} in the file, {list(tenant)} on the server"
        for name in file:
            compare(file[name], tenant[name], f"{where}.{name}")
    elif isinstance(file, list):
        for number, (one, other) in enumerate(zip(file, tenant, strict=False)):
            compare(one, other, f"{where}[{number}]")
        assert len(file) == len(tenant), f"{where}: {file!r} in the file, {tenant!r} on the server"
    else:
        assert file == tenant, f"{where}: {file!r} in the file, {tenant!r} on the server"


@pytest.fixture(scope="module")
def server():
    with fresh_database() as at:
        Memory.open(address(TENANT, at)).close()
        yield at


@pytest.fixture(scope="module")
def connection(server):
    with psycopg.connect(server, autocommit=True) as opened:
        yield opened


programs = st.lists(st.tuples(pauses, st.one_of(WRITES, WRITES, READS)), min_size=1, max_size=25)


def run(server, connection, program):
    with tempfile.TemporaryDirectory() as folder:
        connection.execute(emptied(TENANT))
        both = Both(server, folder)
        try:
            for pause, step in [*(({}, step) for step in BEGUN), *program]:
                for clock in both.clocks:
                    clock.advance(**pause)
                note(repr(step))
                both.do(step, connection)
            for step in LOOKS:
                both.do(step, connection)
            told = [io.StringIO(), io.StringIO()]
            for memory, text in zip((both.file, both.tenant), told, strict=True):
                memory.export_to("jsonl", text)
            compare(*(OWNER.sub("", text.getvalue()).splitlines() for text in told), "export")
        finally:
            both.close()


COMMON = functools.partial(
    settings, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
)


@COMMON(max_examples=15)
@given(program=programs)
def test_both_stores_answer_the_same(server, connection, program):
    run(server, connection, program)


@pytest.mark.slow
@COMMON(max_examples=1000)
@given(program=programs)
def test_both_stores_answer_the_same_through_many_more_programs(server, connection, program):
    run(server, connection, program)
