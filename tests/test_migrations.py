"""Files of every older schema, filled, are brought up to date: no row is lost, and all of it works.

After a new migration: python tests/test_migrations.py writes what a new file is made of.
"""

import contextlib
import sqlite3
import textwrap
from pathlib import Path

import pytest
from sqlite_utils import Database
from support import sql

from graphmem import Memory, Situation
from graphmem.store import schema, scripts
from graphmem.store.scripts import script

AT = "2026-09-01T00:00:00.000Z"
NAMES = tuple(migration.name for migration in schema._migrations().pending(Database(memory=True)))
# What a file holds from a schema on.
ROWS = {
    1: f"""
        INSERT INTO entities(name, key, created_at, updated_at)
            VALUES ('Ann', 'ann', '{AT}', '{AT}'), ('tea', 'tea', '{AT}', '{AT}'), ('rum', 'rum', '{AT}', '{AT}');
        INSERT INTO entity_aliases VALUES ('anna', 1);
        INSERT INTO sentences(hash, text, created_at) VALUES (x'00', 'Ann likes tea.', '{AT}');
        INSERT INTO relations(source_id, target_id, relation_type, relation_key, confidence, sentence_id, scope,
                              recorded_at, updated_at)
            VALUES (1, 2, 'likes', 'likes', 1, 1, '', '{AT}', '{AT}'),
                   (1, 3, 'likes', 'likes', 1, NULL, 'project:0123456789ab', '{AT}', '{AT}');
        INSERT INTO evidence(relation_id, sentence_id, source_key, target_key, at)
            VALUES (1, 1, 'ann', 'tea', '{AT}'), (2, NULL, 'anna', 'rum', '{AT}');
        INSERT INTO scenes(key, origin, created_at, updated_at) VALUES ('chan:qq', 'declared', '{AT}', '{AT}');
        INSERT INTO scene_aliases VALUES ('chan:old', 1);
        INSERT INTO scene_features(scene_id, feature, weight) VALUES (1, 'chan:qq', 1);
        INSERT INTO scene_refs(scene_id, kind, ref_id, decayed_at, created_at)
            VALUES (1, 'relation', 1, '{AT}', '{AT}');
        INSERT INTO situation_evidence VALUES ('chan:web', 1, '{AT}');
        INSERT INTO active_days VALUES ('2026-09-01');
        INSERT INTO operations(kind, at, summary) VALUES ('edit', '{AT}', '{{}}');
        """,
    2: f"""
        INSERT INTO sessions(name, scope, parts, length, created_at, updated_at)
            VALUES ('talk', 'session:talk', 1, 2, '{AT}', '{AT}');
        INSERT INTO parts(session_id, seq, part, text, length, recorded_at)
            VALUES (1, 0, 'm', 'hello friend', 2, '{AT}');
        INSERT INTO notes(scope, kind, slot, slot_key, title, title_key, status, source, superseded_by, pinned,
                          created_at, updated_at)
            VALUES ('', 'fact', 'Port', 'port', 'new port', 'new port', 'live', 'user', NULL, 1, '{AT}', '{AT}'),
                   ('', 'fact', 'Port', 'port', 'old port', 'old port', 'superseded', 'tool', 1, 0, '{AT}', '{AT}'),
                   ('work', 'lesson', '', '', 'a lesson', 'a lesson', 'live', 'agent', NULL, 0, '{AT}', '{AT}');
        INSERT INTO note_labels VALUES (1, 'gate');
        """,
    3: f"""
        INSERT INTO documents(id, summary, text, created_at) VALUES ('d1', 'of rotas', 'a text of rotas', '{AT}');
        """,
    5: f"""
        INSERT INTO entities_apart VALUES (2, 3, NULL, '{AT}');
        """,
}  # fmt: skip
OWN = ("_sqlite_migrations", "counters", "scene_changes", "text_sizes")


def old_file(path, version):
    """Make a file as the code of a schema left it; return how many rows each table has."""
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for number in range(1, version + 1):
            schema._migrations().apply(Database(connection), stop_before=NAMES[number])
            connection.executescript(ROWS.get(number, ""))
        connection.execute(f"PRAGMA application_id = {schema.APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {version}")
    return counts(path)


def counts(path):
    tables = sql(path, "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'")
    return {
        table: sql(path, f"SELECT COUNT(*) FROM {table}")[0][0]
        for (table,) in tables
        if table not in OWN and not table.startswith("text_index")
    }


def migrated():
    """Return a database to which all migrations were applied."""
    with schema.open_empty(1) as connection:
        schema.migrate(connection, "")
        copy = sqlite3.connect(":memory:")
        connection.backup(copy)
        return copy


def dedented(statement):
    first, _, rest = statement.partition("\n")
    return "\n".join(filter(None, [first, textwrap.dedent(rest)]))


def made_of(connection):
    """What a database is made of, but for the tables of FTS5, which are made by the code of today."""
    return {
        name: dedented(statement)
        for name, statement in connection.execute("SELECT name, sql FROM sqlite_master WHERE sql <> '' ORDER BY rowid")
        if not name.startswith(("text_index", "text_terms", "sqlite_"))
    }


def script_of(connection):
    """Return the statements that make what a migrated database is."""
    rows = [f"('graphmem', '{name}', strftime('%Y-%m-%d %H:%M:%f+00:00', 'now'))" for name in NAMES]
    counters = [f"('{name}', {value})" for name, value in connection.execute("SELECT name, value FROM counters")]
    statements = [
        *made_of(connection).values(),
        "INSERT INTO _sqlite_migrations(migration_set, name, applied_at) VALUES\n    " + ",\n    ".join(rows),
        "INSERT INTO counters(name, value) VALUES " + ", ".join(counters),
    ]
    told = (
        "-- What all migrations of schema.py leave, and a new file is made of. Written by tests/test_migrations.py.\n"
    )
    return told + schema.SEPARATOR.join(statements) + "\n"


def test_a_new_file_is_made_of_what_all_migrations_leave(path):
    Memory.open(path).close()

    with contextlib.closing(migrated()) as old, contextlib.closing(sqlite3.connect(path)) as new:
        assert script("schema.sql") == script_of(old)
        assert made_of(new) == made_of(old)
        for told in (
            "SELECT name, sql FROM sqlite_master WHERE name GLOB 'text_[it]*' ORDER BY name",
            "SELECT migration_set, name, applied_at GLOB '20??-??-?? *+00:00' FROM _sqlite_migrations",
            "SELECT * FROM counters ORDER BY name",
            "SELECT * FROM sqlite_sequence",
            "PRAGMA application_id",
            "PRAGMA user_version",
        ):
            assert new.execute(told).fetchall() == old.execute(told).fetchall()
    assert not any(counts(path).values())


@pytest.mark.parametrize("version", range(1, len(NAMES)))
def test_a_filled_file_of_an_older_schema_keeps_every_row_and_works(path, version):
    before = old_file(path, version)

    with Memory.open(path) as memory:
        assert counts(path).items() >= before.items()
        assert memory.check().problems == ()
        assert [hit.text for hit in memory.recall("likes")] == ["Ann likes tea: Ann likes tea."]
        assert memory.recall_by_scene("chan:old").relations[0].object == "tea"
        assert {hit.id for hit in memory.recall("likes", scopes="all")} == {1, 2}
        holding = {scope.key: scope.kind for scope in memory.scopes()}
        assert holding["project:0123456789ab"] == "project"
        if version >= 2:
            assert (holding["work"], holding["session:talk"]) == ("named", "session")
            detail = memory.inspect(1)
            assert [(act.act, act.actor, act.at) for act in detail.acts] == [("remember", "user", AT)]
            assert [note.title for note in detail.versions] == ["old port"]
            assert not memory.recall("lesson", kinds="note")
            assert memory.recall("gate", kinds="note")[0].id == 1
            assert [note.title for note in memory.recall_by_situation(Situation.of(chan="x")).notes] == ["new port"]
            assert memory.remember("next port", slot="port", source="user").superseded == (1,)
            memory.purge(scope="work", hard=True)
        assert memory.upkeep().ok
        assert memory.check().problems == ()


@pytest.mark.parametrize("statement", [
    "INSERT OR REPLACE INTO {table}({columns}) SELECT {values} FROM {table} WHERE id = 1",
    "UPDATE {table} SET scope = 'later' WHERE id = 1",
])  # fmt: skip
@pytest.mark.parametrize("table", ["relations", "notes", "sessions", "incidents"])
def test_whatever_another_program_writes_its_scope_is_known_to_hold_it(path, table, statement):
    old_file(path, 2)
    with Memory.open(path) as memory:
        memory.record_failure("bash", "failed")
        columns = [name for (name,) in sql(path, "SELECT name FROM pragma_table_info(?)", table)]
        values = ["'later'" if name == "scope" else name for name in columns]
        sql(path, statement.format(table=table, columns=", ".join(columns), values=", ".join(values)))

        assert "later" in {scope.key for scope in memory.scopes()}
        assert sql(path, "SELECT filled FROM scopes WHERE key = 'later'") == [(1,)]
        assert memory.check().ok


if __name__ == "__main__":
    with contextlib.closing(migrated()) as latest:
        Path(scripts.__file__).with_name("schema.sql").write_text(script_of(latest), "utf-8")
