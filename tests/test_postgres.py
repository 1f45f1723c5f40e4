"""Tenants of a PostgreSQL server: none sees another's rows, whatever it is called and whatever verbs are run."""

import logging
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import quote, urlsplit

import pytest
from conftest import FakeClock
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from graphmem import (
    Config,
    GraphmemError,
    InvalidInput,
    Memory,
    Part,
    SchemaTooNew,
    Situation,
    StoreBusy,
    StoreFailed,
    Triple,
)

pytest.importorskip("psycopg", reason="psycopg is not installed: pip install 'graphmem[postgres]'")

import psycopg
from postgres_server import address, fresh_database
from psycopg import errors

from graphmem.store.postgres import tenants
from graphmem.store.postgres.address import parsed, role_of, schema_of
from graphmem.store.postgres.connecting import connected
from graphmem.store.postgres.engine import all_tables
from graphmem.store.schema import VERSION

IMPATIENT = Config(busy_timeout=0.2)
LONG = "long name " * 30
HOSTILE = [
    "default",
    "public",
    "pg_catalog",
    "information_schema",
    "graphmem",
    "graphmem-t1",
    "t1",
    "T1",
    "t_1",
    "t-1",
    "t 1",
    " t1",
    "t1 ",
    "t1;",
    't1"',
    "t1'",
    "t1''",
    't1""',
    "t1\\",
    "t1%",
    "t1?",
    "t1&tenant=t2",
    "t1#",
    "$1",
    "%s",
    "{}",
    ".",
    "..",
    "../t1",
    "/",
    "//",
    "*",
    "--",
    "/* t1 */",
    '"; DROP SCHEMA public CASCADE; --',
    "'; DROP ROLE postgres; --",
    '"graphmem-t1"',
    "none",
    "null",
    "current_user",
    "postgres",
    "老大",
    "老二",
    "naïve",
    "nai\u0308ve",
    "😀",
    "ｔ１",
    LONG,
    LONG + "!",
    "a" * 62,
    "a" * 63,
    "a" * 64,
    "a" * 1000,
]


@pytest.fixture(scope="module")
def server():
    with fresh_database() as address_of_it:
        yield address_of_it


@pytest.fixture(scope="module")
def admin(server):
    with psycopg.connect(server, autocommit=True, cursor_factory=psycopg.RawCursor) as connection:
        yield connection


@pytest.fixture(scope="module")
def hostile(server):
    """Open memories, by the names of their tenants, each of which holds a fact that names its number."""
    memories = {name: Memory.open(address(name, server), clock=FakeClock()) for name in HOSTILE}
    for number, memory in enumerate(memories.values()):
        memory.commit([Triple("boss", "likes", f"only{number}x", sentence=f"The boss likes only{number}x.")])
    yield memories
    for memory in memories.values():
        memory.close()


def test_hostile_names_are_tenants_of_their_own(hostile):
    for number, memory in enumerate(hostile.values()):
        (hit,) = memory.recall("boss", kinds=["relation"])
        assert f"only{number}x" in hit.text
        assert memory.overview().relations == 1


def test_no_two_names_share_a_schema_or_a_role(hostile, admin):
    schemas = {schema_of(name) for name in HOSTILE}
    roles = {role_of(admin.info.dbname, schema) for schema in schemas}

    assert len(schemas) == len(roles) == len(HOSTILE) >= 50
    assert max(len(name.encode()) for name in schemas | roles) < 64  # longer names are cut by the server
    assert {name for (name,) in admin.execute("SELECT nspname FROM pg_namespace")} >= schemas
    assert {name for (name,) in admin.execute("SELECT rolname FROM pg_roles")} >= roles
    assert {name for (name,) in admin.execute("SELECT nspname FROM pg_namespace")} >= {"public", "graphmem"}
    assert set(tenants.names(admin)) >= set(HOSTILE)


def test_a_tenant_has_the_tables_and_columns_of_a_file(hostile, tmp_path):
    def shape(memory):
        with memory._store.read() as tx:
            return {name: sorted(tx.engine.columns(tx, name)) for name in tx.engine.tables(tx)}

    with Memory.open(tmp_path / "memory.db") as file:
        assert shape(hostile["default"]) == shape(file)


def test_a_tenant_is_the_same_one_when_it_is_opened_again(hostile, server):
    for number, name in enumerate(HOSTILE):
        with Memory.open(address(name, server), create=False) as again:
            assert f"only{number}x" in again.recall("boss", kinds=["relation"])[0].text


@pytest.mark.parametrize("path_is_others", [False, True])
def test_the_role_of_a_tenant_is_refused_the_tables_of_others(hostile, admin, path_is_others):
    names = HOSTILE[4:9]
    for name, other in ((name, other) for name in names for other in names if other != name):
        for table in all_tables():
            with pytest.raises(errors.InsufficientPrivilege), admin.transaction():
                as_tenant(admin, name)
                if path_is_others:
                    admin.execute(f'SET LOCAL search_path = "{schema_of(other)}"')
                admin.execute(f'SELECT 1 FROM "{schema_of(other)}".{table}')


def as_tenant(connection, name):
    schema = schema_of(name)
    connection.execute(f'SET LOCAL ROLE "{role_of(connection.info.dbname, schema)}"')
    connection.execute(f'SET LOCAL search_path = "{schema}", graphmem')


def test_with_the_search_path_of_another_the_role_of_a_tenant_finds_no_table(hostile, admin):
    for table in all_tables():
        with pytest.raises(errors.UndefinedTable), admin.transaction():
            as_tenant(admin, "t1")
            admin.execute(f'SET LOCAL search_path = "{schema_of("T1")}", graphmem')
            admin.execute(f"SELECT 1 FROM {table}")


@pytest.mark.parametrize(
    "statement",
    [
        'DELETE FROM "{other}".relations',
        "INSERT INTO \"{other}\".counters VALUES ('x', 1)",
        'DROP SCHEMA "{other}" CASCADE',
        'CREATE TABLE "{other}".mine()',
        "CREATE TABLE graphmem.mine()",
        "CREATE OR REPLACE FUNCTION graphmem.instr(text, text) RETURNS int LANGUAGE sql AS 'SELECT 1'",
        "SELECT nextval('\"{other}\".relations_id_seq')",
        "SELECT rolpassword FROM pg_authid",
        "CREATE ROLE mine",
        "CREATE SCHEMA mine",
        "SELECT pg_read_file('/etc/passwd')",
    ],
)
def test_the_role_of_a_tenant_may_do_nothing_beyond_it(hostile, admin, statement):
    with pytest.raises(errors.InsufficientPrivilege), admin.transaction():
        as_tenant(admin, "t1")
        admin.execute(statement.format(other=schema_of("t_1")))


# ---- whatever verbs are run

NAMES = ["t1", "T1", '"; DROP SCHEMA public CASCADE; --', "老大"]
HERE = Situation.of(chan="qq", peer="boss")
WRITES = [
    lambda memory, mark: memory.commit(
        [Triple("boss", "likes", mark, sentence=f"boss {mark} likes.")], scenes=["chan:qq"], session="s1", turn=1
    ),
    lambda memory, mark: memory.remember(f"deploy {mark}", slot="deploy"),
    lambda memory, mark: memory.remember(f"never {mark}", kind="rule", pinned=True),
    lambda memory, mark: memory.mirror("s1", [Part(id=f"m{mark}", author="boss", text=f"deploy with {mark}?")]),
    lambda memory, mark: memory.record_failure("bash", f"{mark}: cannot remove"),
    lambda memory, mark: memory.enter_scene(HERE, declared=["chan:qq", f"topic:{mark}"]),
    lambda memory, mark: memory.put_block(f"block {mark}", scenes=["chan:qq"]),
    lambda memory, mark: memory.put_document(f"document {mark}", scenes=["chan:qq"]),
    lambda memory, mark: memory.keep_apart("boss", mark),
    lambda memory, mark: memory.dedupe_scenes(),
    lambda memory, mark: memory.upkeep(),
    lambda memory, mark: memory.reindex(),
    lambda memory, mark: memory.undo(1),
    lambda memory, mark: memory.forget(1),
    lambda memory, mark: memory.edit_note(1, body=f"body {mark}"),
    lambda memory, mark: memory.edit_relation(1, confidence=0.5),
    lambda memory, mark: memory.delete_relation(2),
    lambda memory, mark: memory.purge(relation="likes"),
    lambda memory, mark: memory.checkpoint("s1", wait=False),
    lambda memory, mark: memory.delete_session("s1"),
]
READS = [
    lambda memory: memory.recall("boss likes deploy never cannot block document"),
    lambda memory: memory.recall("boss", situation=HERE, kinds=["relation", "note", "block", "document", "part"]),
    lambda memory: memory.recall_by_scene(["chan:qq"]),
    lambda memory: memory.recall_by_situation(HERE),
    lambda memory: memory.scenes(),
    lambda memory: memory.evidence(),
    lambda memory: memory.notes(statuses=["live", "proposed", "archived", "superseded", "forgotten"]),
    lambda memory: memory.ledger(),
    lambda memory: memory.inspect(1),
    lambda memory: memory.history("deploy boss"),
    lambda memory: memory.parts("s1"),
    lambda memory: memory.sessions(),
    lambda memory: memory.incidents(status=None),
    lambda memory: memory.operations(),
    lambda memory: memory.jobs(),
    lambda memory: memory.neighbours("boss"),
    lambda memory: memory.graph(),
    lambda memory: memory.query_documents("document"),
    lambda memory: memory.brief(HERE, query="boss deploy"),
    lambda memory: memory.tool_brief(HERE, "bash", text="rm"),
    lambda memory: memory.rules_for(HERE, tool="bash"),
    lambda memory: memory.overview(),
    lambda memory: memory.review_entities(),
    lambda memory: memory.kept_apart(),
    lambda memory: memory.check(),
]


@pytest.fixture(scope="module")
def neighbours(hostile):
    return [hostile[name] for name in NAMES]


@settings(
    max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], deadline=None
)
@given(data=st.data())
def test_no_verb_of_one_tenant_tells_of_another(neighbours, data):
    program = data.draw(
        st.lists(
            st.tuples(st.integers(0, len(NAMES) - 1), st.integers(0, len(WRITES) - 1), st.integers(0, 9)), max_size=12
        )
    )
    for number, verb, detail in program:
        assert_own(number, answer(lambda: WRITES[verb](neighbours[number], f"mark{number}q{detail}")))  # noqa: B023
    for verb in data.draw(st.lists(st.sampled_from(READS), min_size=3, max_size=6)):
        for number, memory in enumerate(neighbours):
            assert_own(number, answer(lambda: verb(memory)))  # noqa: B023


def answer(verb):
    try:
        return repr(verb())
    except GraphmemError as error:
        return repr(error)


def assert_own(number, told):
    foreign = [f"mark{other}q" for other in range(len(NAMES)) if other != number]
    foreign += [f"only{other}x" for other, name in enumerate(HOSTILE) if name != NAMES[number]]
    assert not [mark for mark in foreign if mark in told]
    assert not [name for name in ("graphmem-t1", "search_path") if name in told]


# ---- addresses

SECRET = "hunter2Xy9"


@pytest.mark.parametrize(
    ("given", "tenant", "shown"),
    [
        ("postgresql://db.example/memories", "default", "postgresql://db.example/memories?tenant=default"),
        ("postgres://me@db.example:5433/m?tenant=t1", "t1", "postgres://me@db.example:5433/m?tenant=t1"),
        (f"postgresql://me:{SECRET}@db/m?tenant=a%20b%26c", "a b&c", "postgresql://me@db/m?tenant=a%20b%26c"),
        (f"postgresql://db/m?user=me&password={SECRET}&tenant=t1", "t1", "postgresql://db/m?tenant=t1"),
        (f"postgresql://db/m?tenant=t1&sslpassword={SECRET}", "t1", "postgresql://db/m?tenant=t1"),
        ("postgresql:///m?host=/run/postgresql&tenant=t1", "t1", "postgresql:///m?tenant=t1"),
        (f"postgresql://me:{SECRET}@h1:1,h2:2/m?tenant=t1", "t1", "postgresql://me@h1:1,h2:2/m?tenant=t1"),
        ("postgresql://[::1]:5433/m?tenant=t1", "t1", "postgresql://[::1]:5433/m?tenant=t1"),
        (f"postgresql://me:{SECRET}%40%2F@db/m?tenant=t1", "t1", "postgresql://me@db/m?tenant=t1"),
    ],
)
def test_addresses(given, tenant, shown):
    found = parsed(given)

    assert (found.tenant, found.shown) == (tenant, shown)
    assert "tenant" not in found.server
    assert urlsplit(found.server).netloc == urlsplit(given).netloc
    assert SECRET not in repr(found)


@pytest.mark.parametrize(
    "given",
    [
        f"postgresql://me:{SECRET}/x@db/m?tenant=t1",
        f"postgresql://me:{SECRET}?x@db/m?tenant=t1",
        f"postgresql://me:{SECRET}#x@db/m?tenant=t1",
        f"postgresql://me:x@{SECRET}@db/m?tenant=t1",
        f"postgresql://me@x:{SECRET}@db/m",
        f"postgresql://me:{SECRET}",
        f"postgresql://me:{SECRET}@db/m?tenant=%FF",
        f"postgresql://me:{SECRET}@db/m?tenant=t1\n",
        f"postgresql://me:x@{SECRET}@db/m?tenant=t1&tenant=t2",
        f"postgresql://me:{SECRET}@[db/m?tenant=t1",
        f"postgresql://me:{SECRET}@db/m?tenant=",
        f"postgresql://me:{SECRET}@db/m?tenant=%20",
        f"postgresql://me:{SECRET}@db/m?tenant=a%00b",
        f"postgresql://me:{SECRET}@db/m?tenant=a%0Ab",
        f"postgresql://me:{SECRET}@db/m?tenant={'a' * 1001}",
        f"postgresql://db/m?password={SECRET}&tenant",
        f"postgresql://db/m?pass%77ord={SECRET}&tenant=t1&tenant=t2",
        f"postgresql://db/m?PASSWORD={SECRET}&tenant=t1",
        f"postgresql://db/m?mood={SECRET}&tenant=t1",
        f"postgresql://me:%zz{SECRET}@db/m?tenant=t1",
    ],
)
def test_an_address_that_is_none_is_refused_without_telling_the_password(given):
    with pytest.raises(InvalidInput) as caught:
        Memory.open(given, config=IMPATIENT)

    assert SECRET not in "".join(traceback.format_exception(caught.value))
    assert "@db/m" not in str(caught.value) or "me@db/m" in str(caught.value)


def other(server, *, user=None, password=None, host=None, port=None, database=None, tenant="t1", more=""):
    """The address of a server with some of it changed."""
    parts = urlsplit(server)
    return (
        f"postgresql://{user or parts.username}:{parts.password if password is None else password}"
        f"@{host or parts.hostname}:{port or parts.port}/{database or parts.path[1:]}"
        f"?tenant={quote(tenant, safe='')}{more}"
    )


@pytest.mark.parametrize(
    ("changes", "kind", "remedy"),
    [
        ({"host": "nowhere.invalid"}, StoreFailed, "nobody knows"),
        ({"tenant": "t1", "more": "&sslmode=bogus"}, StoreFailed, "check those of the address"),
        ({"tenant": "t1", "more": "&port=none"}, StoreFailed, "check those of the address"),
        ({"password": ""}, StoreFailed, "PGPASSWORD"),
        ({"port": 1}, StoreBusy, "cannot be reached"),
        ({"password": SECRET}, StoreFailed, "refuses the password"),
        ({"user": "nobody_here"}, StoreFailed, "refuses the password"),
        ({"database": "no_such_database"}, StoreFailed, "make the database first"),
    ],
)
def test_a_server_that_cannot_be_used_is_told_with_a_remedy(server, changes, kind, remedy):
    path = other(server, **changes)
    began = time.monotonic()
    with pytest.raises(kind) as caught:
        Memory.open(path, config=IMPATIENT)

    assert remedy in str(caught.value)
    assert str(caught.value).startswith("postgresql://")
    assert "\n" not in str(caught.value)
    told = "".join(traceback.format_exception(caught.value))
    assert not urlsplit(path).password or urlsplit(path).password not in told
    assert time.monotonic() - began < 30  # it does not hang


@pytest.mark.parametrize("encoding", ["SQL_ASCII", "LATIN1"])
def test_a_database_that_does_not_hold_every_text_is_refused(encoding):
    with fresh_database(f"ENCODING '{encoding}' LOCALE 'C' TEMPLATE template0") as server:
        with pytest.raises(StoreFailed, match=f"encoding {encoding}, .*ENCODING 'UTF8'"):
            Memory.open(address("t1", server))

        with psycopg.connect(server) as connection:
            assert list(tenants.names(connection)) == []


@pytest.mark.parametrize("way", ["address", "environment"])
def test_texts_are_utf_8_whatever_else_is_asked_for(server, way, monkeypatch):
    path = address(f"encoded by {way}", server)
    if way == "address":
        path += "&client_encoding=LATIN1"
    else:
        monkeypatch.setenv("PGCLIENTENCODING", "LATIN1")

    with Memory.open(path) as memory:
        memory.remember("老大 drinks tea")
        assert [note.title for note in memory.notes()] == ["老大 drinks tea"]


def test_no_password_is_told_by_an_open_memory(server, hostile, caplog):
    caplog.set_level(logging.DEBUG)
    password = urlsplit(server).password
    with Memory.open(address("t1", server)) as memory:
        told = [memory.path, repr(memory), repr(vars(memory._store)), repr(memory.overview()), repr(memory.check())]
        with pytest.raises(GraphmemError) as caught:
            memory.backup("/nowhere/x")
        told += [str(caught.value)]

    assert not [text for text in [*told, caplog.text] if password in text]


def test_a_tenant_that_is_not_there_is_made_only_where_it_may_be(server, admin):
    path = address("never made", server)
    for options in ({"create": False}, {"config": Config(read_only=True)}):
        with pytest.raises(StoreFailed, match="does not exist: check the tenant"):
            Memory.open(path, **options)
    assert "never made" not in set(tenants.names(admin))


def test_a_tenant_of_a_newer_graphmem_is_refused(server, admin):
    path = address("newer", server)
    with Memory.open(path, clock=FakeClock()):
        pass
    admin.execute(f'UPDATE "{schema_of("newer")}".store_state SET version = version + 1')
    with pytest.raises(SchemaTooNew, match="upgrade graphmem"):
        Memory.open(path)
    admin.execute(f'UPDATE "{schema_of("newer")}".store_state SET version = version - 1')
    tenants.remove(admin, parsed(path))
    assert "newer" not in set(tenants.names(admin))


def test_an_older_tenant_is_brought_up_to_date_once(server, admin, monkeypatch):
    path, schema = address("older", server), schema_of("older")
    with Memory.open(path, clock=FakeClock()) as memory:
        memory.remember("Deploy with pnpm")
    steps = {VERSION - 2: "ALTER TABLE notes ADD COLUMN mood TEXT", VERSION - 1: "UPDATE notes SET mood = 'calm'"}
    monkeypatch.setattr(tenants, "_MIGRATIONS", steps)
    admin.execute(f'UPDATE "{schema}".store_state SET version = {VERSION - 2}')

    with pytest.raises(StoreFailed, match="open it once without read_only"):
        Memory.open(path, config=Config(read_only=True))
    with ThreadPoolExecutor(4) as pool:
        opened = list(pool.map(lambda _: Memory.open(path, clock=FakeClock()), range(4)))

    assert [[note.title for note in memory.notes()] for memory in opened] == [["Deploy with pnpm"]] * 4
    for memory in opened:
        memory.close()
    assert admin.execute(f'SELECT mood FROM "{schema}".notes').fetchall() == [("calm",)]
    assert admin.execute(f'SELECT version FROM "{schema}".store_state').fetchall() == [(VERSION,)]
    tenants.remove(admin, parsed(path))


def test_a_migration_that_fails_changes_nothing(server, admin, monkeypatch):
    path, schema = address("older", server), schema_of("older")
    Memory.open(path, clock=FakeClock()).close()
    monkeypatch.setattr(tenants, "_MIGRATIONS", {VERSION - 1: "ALTER TABLE notes ADD COLUMN mood TEXT; SELECT 1 / 0"})
    for version, told in ((VERSION - 1, "division by zero"), (VERSION - 2, "too old")):
        admin.execute(f'UPDATE "{schema}".store_state SET version = {version}')

        with pytest.raises(StoreFailed, match=told):
            Memory.open(path)

        assert admin.execute(f'SELECT version FROM "{schema}".store_state').fetchall() == [(version,)]
        columns = "SELECT 1 FROM information_schema.columns WHERE table_schema = $1 AND column_name = 'mood'"
        assert admin.execute(columns, (schema,)).fetchall() == []
    tenants.remove(admin, parsed(path))


@pytest.mark.parametrize(("said", "idle"), [("", "15"), ("&keepalives_idle=40", "40")])
def test_a_server_that_is_gone_without_a_word_is_found_out(server, said, idle):
    with connected(parsed(address("t1", server) + said).server, 2.0) as connection:
        assert connection.info.get_parameters()["keepalives_idle"] == idle


def test_who_makes_a_tenant_does_not_wait_for_ever(server, admin):
    with admin.transaction():
        admin.execute(f"SELECT pg_advisory_xact_lock({tenants._SHARED_LOCK})")

        with pytest.raises(StoreBusy):
            Memory.open(address("waiting", server), config=IMPATIENT)


def test_a_user_without_rights_on_a_tenant_is_refused(server, hostile, admin):
    admin.execute("CREATE ROLE stranger LOGIN PASSWORD 'pass-of-a-stranger'")
    try:
        path = other(server, user="stranger", password="pass-of-a-stranger")
        for tenant in ("t1", "one that is not there"):
            with pytest.raises(StoreFailed, match="let its owner grant it"):
                Memory.open(f"{path.partition('?')[0]}?tenant={quote(tenant)}")
    finally:
        admin.execute("DROP ROLE stranger")


def test_a_user_who_may_make_roles_and_schemas_needs_no_more(server, admin):
    """No superuser: the owner of the schema `graphmem` is whoever opened a tenant of the database first."""
    admin.execute("CREATE ROLE owner LOGIN CREATEROLE PASSWORD 'pass-of-an-owner'")
    admin.execute("CREATE DATABASE owned OWNER owner")
    path = other(server, user="owner", password="pass-of-an-owner", database="owned", tenant="mine")
    try:
        with Memory.open(path, clock=FakeClock()) as memory:
            memory.commit([Triple("boss", "likes", "plain text")])
            assert memory.check().ok
        with Memory.open(path, create=False) as memory:
            assert memory.overview().relations == 1
        with psycopg.connect(parsed(path).server, autocommit=True, cursor_factory=psycopg.RawCursor) as connection:
            tenants.remove(connection, parsed(path))
    finally:
        admin.execute("DROP DATABASE owned WITH (FORCE)")
        admin.execute("DROP ROLE owner")


# ---- the functions that all tenants share


def shared_version(admin):
    return admin.execute("SELECT obj_description('graphmem'::regnamespace, 'pg_namespace')").fetchone()[0]


def test_opening_brings_old_shared_functions_up_to_date(server, hostile, admin):
    now = shared_version(admin)
    admin.execute("COMMENT ON SCHEMA graphmem IS 'version 1'")
    admin.execute("DROP FUNCTION graphmem.instr")
    with Memory.open(address("t1", server), create=False):
        assert shared_version(admin) == now
    assert admin.execute("SELECT graphmem.instr('boss', 's')").fetchone() == (3,)


def test_opening_leaves_newer_shared_functions_alone(server, hostile, admin):
    now = shared_version(admin)
    admin.execute("COMMENT ON SCHEMA graphmem IS 'version 1000'")
    try:
        for name in ("t1", "made beside newer functions"):
            with Memory.open(address(name, server)):
                assert shared_version(admin) == "version 1000"
    finally:
        admin.execute(f"COMMENT ON SCHEMA graphmem IS '{now}'")
