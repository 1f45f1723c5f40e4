"""The schema, as an append-only list of migrations, and the one function that applies it.

A file that is new is made of `schema.sql`, which is what all migrations leave: tests hold that, and
`python tests/test_migrations.py` writes it after a change here.

Table and column names of scenes follow the reference engine, so that tools for it read these files too. Times are UTC
text of 24 characters. Ids are never used twice, since journals and indexes of other processes hold them.
"""

import contextlib
import sqlite3
from collections.abc import Iterator
from typing import TYPE_CHECKING

from graphmem.core.keys import title_key
from graphmem.errors import SchemaTooNew, StoreCorrupt, StoreFailed
from graphmem.store.connection import Connection

if TYPE_CHECKING:
    from sqlite_utils import Database, Migrations

APPLICATION_ID = 0x676D656D  # "gmem"
# The number of migrations below, kept in user_version: a current file is told by one read. A copy that is not finished
# keeps it below 0.
VERSION = 11
SEPARATOR = ";\n\n"  # of the statements of schema.sql, some of which hold others


def _execute(db: "Database", script: str) -> None:
    """Run statements that each end with a semicolon at the end of a line, in the transaction that is open.

    The executescript of sqlite3 would commit it, and that of sqlite_utils looks for the ends of statements character by
    character.
    """
    for statement in script.split(";\n"):
        if statement.strip():
            db.conn.execute(statement)


def _migrations() -> "Migrations":
    # sqlite_utils takes 70 ms to import: only a file that needs work pays it.
    from sqlite_utils import Migrations

    migrations = Migrations("graphmem")

    @migrations()
    def m001_scenes_and_graph(db: "Database") -> None:
        _execute(
            db,
            """
            CREATE TABLE entities(
                id INTEGER PRIMARY KEY AUTOINCREMENT,
                name TEXT NOT NULL,                   -- as first written
                key TEXT NOT NULL UNIQUE,             -- canonical
                type TEXT NOT NULL DEFAULT 'Concept',
                mention_count INTEGER NOT NULL DEFAULT 1,
                created_at TEXT NOT NULL CHECK (length(created_at) = 24),
                updated_at TEXT NOT NULL CHECK (length(updated_at) = 24)
            ) STRICT;

            -- Written by merges; an alias never points at an entity that is gone.
            CREATE TABLE entity_aliases(
                key TEXT PRIMARY KEY,
                entity_id INTEGER NOT NULL REFERENCES entities(id)
            ) STRICT, WITHOUT ROWID;

            -- Unique by hash: an index over whole texts would double the file.
            CREATE TABLE sentences(
                id INTEGER PRIMARY KEY AUTOINCREMENT,
                hash BLOB NOT NULL UNIQUE,
                text TEXT NOT NULL,
                created_at TEXT NOT NULL CHECK (length(created_at) = 24)
            ) STRICT;

            -- One row a fact. relation_key is relation_type in canonical form.
            CREATE TABLE relations(
                id INTEGER PRIMARY KEY AUTOINCREMENT,
                source_id INTEGER NOT NULL REFERENCES entities(id),
                target_id INTEGER NOT NULL REFERENCES entities(id),
                relation_type TEXT NOT NULL,
                relation_key TEXT NOT NULL,
                confidence REAL NOT NULL CHECK (confidence > 0 AND confidence <= 1),
                status TEXT NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'superseded', 'deleted', 'archived')),
                scope TEXT NOT NULL DEFAULT '',
                sentence_id INTEGER REFERENCES sentences(id),
                valid_from TEXT CHECK (length(valid_from) = 24),
                valid_to TEXT CHECK (length(valid_to) = 24),
                recorded_at TEXT NOT NULL CHECK (length(recorded_at) = 24),
                updated_at TEXT NOT NULL CHECK (length(updated_at) = 24),
                closed_at TEXT CHECK (length(closed_at) = 24),
                CHECK (valid_to IS NULL OR valid_from IS NULL OR valid_to >= valid_from)
            ) STRICT;
            CREATE UNIQUE INDEX relations_active ON relations(source_id, relation_key, target_id, scope)
                WHERE status = 'active';
            CREATE INDEX relations_source ON relations(source_id, relation_key);
            CREATE INDEX relations_target ON relations(target_id);

            -- Every time a fact was said, under the names it was said with.
            CREATE TABLE evidence(
                id INTEGER PRIMARY KEY AUTOINCREMENT,
                relation_id INTEGER NOT NULL REFERENCES relations(id),
                sentence_id INTEGER REFERENCES sentences(id),
                session TEXT NOT NULL DEFAULT '',
                turn INTEGER NOT NULL DEFAULT 0,
                source TEXT NOT NULL DEFAULT '',
                source_key TEXT NOT NULL,
                target_key TEXT NOT NULL,
                at TEXT NOT NULL CHECK (length(at) = 24)
            ) STRICT;
            CREATE INDEX evidence_relation ON evidence(relation_id);

            -- visits = turns that gave mass to the features; 0 for scenes that only writes or declarations made.
            CREATE TABLE scenes(
                id INTEGER PRIMARY KEY AUTOINCREMENT,
                key TEXT NOT NULL UNIQUE,
                strength INTEGER NOT NULL DEFAULT 1,
                visits INTEGER NOT NULL DEFAULT 0,
                origin TEXT NOT NULL CHECK (origin IN ('declared', 'emergent')),
                created_at TEXT NOT NULL CHECK (length(created_at) = 24),
                updated_at TEXT NOT NULL CHECK (length(updated_at) = 24)
            ) STRICT;

            CREATE TABLE scene_aliases(
                key TEXT PRIMARY KEY,
                scene_id INTEGER NOT NULL REFERENCES scenes(id)
            ) STRICT, WITHOUT ROWID;

            -- weight = the greatest a turn gave; mass = the sum of what turns gave; touched = visit of the last one.
            CREATE TABLE scene_features(
                scene_id INTEGER NOT NULL REFERENCES scenes(id),
                feature TEXT NOT NULL,
                weight REAL NOT NULL CHECK (weight > 0),
                mass REAL NOT NULL DEFAULT 0 CHECK (mass >= 0),
                touched INTEGER NOT NULL DEFAULT 0,
                PRIMARY KEY (scene_id, feature)
            ) STRICT, WITHOUT ROWID;

            -- No foreign key to the target: its table depends on the kind. ref_id holds integer ids, ref_text others.
            -- sentence_id is the last one that told it in this scene: others may have heard it in other words.
            CREATE TABLE scene_refs(
                id INTEGER PRIMARY KEY AUTOINCREMENT,
                scene_id INTEGER NOT NULL REFERENCES scenes(id),
                kind TEXT NOT NULL CHECK (kind IN ('relation', 'entity', 'note', 'block', 'document')),
                ref_id INTEGER NOT NULL DEFAULT 0,
                ref_text TEXT NOT NULL DEFAULT '',
                weight REAL NOT NULL DEFAULT 1.0 CHECK (weight >= 0),
                sentence_id INTEGER REFERENCES sentences(id),
                decayed_at TEXT NOT NULL CHECK (length(decayed_at) = 24),
                created_at TEXT NOT NULL CHECK (length(created_at) = 24),
                UNIQUE (scene_id, kind, ref_id, ref_text)
            ) STRICT;
            CREATE INDEX scene_refs_target ON scene_refs(kind, ref_id);

            -- Visits that no scene answered, by label, until they are enough for a scene of their own.
            CREATE TABLE situation_evidence(
                label TEXT PRIMARY KEY,
                count INTEGER NOT NULL DEFAULT 1,
                updated_at TEXT NOT NULL CHECK (length(updated_at) = 24)
            ) STRICT, WITHOUT ROWID;

            -- The revision counter is a row, not max + 1, so that trimming the log cannot turn it back. The second
            -- row is the last revision that was trimmed: who has seen less has to read everything.
            CREATE TABLE counters(
                name TEXT PRIMARY KEY,
                value INTEGER NOT NULL
            ) STRICT, WITHOUT ROWID;
            INSERT INTO counters VALUES ('scene_revision', 0), ('scene_revision_trimmed', 0);

            -- Which scenes changed, for the indexes that other processes hold in memory.
            CREATE TABLE scene_changes(
                revision INTEGER NOT NULL,
                scene_id INTEGER NOT NULL,
                PRIMARY KEY (revision, scene_id)
            ) STRICT, WITHOUT ROWID;

            -- The UTC days with a write: decay counts days of use, not of the calendar.
            CREATE TABLE active_days(
                day TEXT PRIMARY KEY CHECK (length(day) = 10)
            ) STRICT, WITHOUT ROWID;

            CREATE TABLE operations(
                id INTEGER PRIMARY KEY AUTOINCREMENT,
                kind TEXT NOT NULL,
                at TEXT NOT NULL CHECK (length(at) = 24),
                summary TEXT NOT NULL,                -- JSON
                undone_at TEXT CHECK (length(undone_at) = 24)
            ) STRICT;

            -- The rows an operation changed: JSON images before (NULL: it made it) and after (NULL: removed it).
            CREATE TABLE operation_rows(
                operation_id INTEGER NOT NULL REFERENCES operations(id),
                seq INTEGER NOT NULL,
                name TEXT NOT NULL,
                row TEXT NOT NULL,                    -- JSON of the primary key
                before TEXT,
                after TEXT,
                PRIMARY KEY (operation_id, seq)
            ) STRICT, WITHOUT ROWID;
            CREATE INDEX operation_rows_row ON operation_rows(name, row);
        """,
        )

    @migrations()
    def m002_text(db: "Database") -> None:
        _execute(
            db,
            """
            -- What was said, verbatim. length = tokens, for the length norm of a whole session.
            CREATE TABLE sessions(
                id INTEGER PRIMARY KEY AUTOINCREMENT,
                name TEXT NOT NULL UNIQUE,
                scope TEXT NOT NULL DEFAULT '',
                parts INTEGER NOT NULL DEFAULT 0,
                length INTEGER NOT NULL DEFAULT 0,
                created_at TEXT NOT NULL CHECK (length(created_at) = 24),
                updated_at TEXT NOT NULL CHECK (length(updated_at) = 24)
            ) STRICT;

            -- part = the id that its host gave it. seq counts from 0 within the session, without gaps.
            CREATE TABLE parts(
                id INTEGER PRIMARY KEY AUTOINCREMENT,
                session_id INTEGER NOT NULL REFERENCES sessions(id),
                seq INTEGER NOT NULL,
                part TEXT NOT NULL,
                author TEXT NOT NULL DEFAULT '',
                author_key TEXT NOT NULL DEFAULT '',
                role TEXT NOT NULL DEFAULT '',
                text TEXT NOT NULL,
                length INTEGER NOT NULL,
                at TEXT CHECK (length(at) = 24),
                recorded_at TEXT NOT NULL CHECK (length(recorded_at) = 24),
                UNIQUE (session_id, part),
                UNIQUE (session_id, seq)
            ) STRICT;

            -- superseded_by: the note that took its slot.
            CREATE TABLE notes(
                id INTEGER PRIMARY KEY AUTOINCREMENT,
                scope TEXT NOT NULL DEFAULT '',
                kind TEXT NOT NULL,
                slot TEXT NOT NULL DEFAULT '',
                slot_key TEXT NOT NULL DEFAULT '',
                title TEXT NOT NULL,
                title_key TEXT NOT NULL,
                body TEXT NOT NULL DEFAULT '',
                status TEXT NOT NULL CHECK (status IN ('live', 'proposed', 'archived', 'superseded', 'forgotten')),
                pinned INTEGER NOT NULL DEFAULT 0 CHECK (pinned IN (0, 1)),
                source TEXT NOT NULL DEFAULT '',
                seen INTEGER NOT NULL DEFAULT 1,
                superseded_by INTEGER REFERENCES notes(id),
                created_at TEXT NOT NULL CHECK (length(created_at) = 24),
                updated_at TEXT NOT NULL CHECK (length(updated_at) = 24)
            ) STRICT;
            CREATE UNIQUE INDEX notes_slot ON notes(scope, slot_key) WHERE status = 'live' AND slot_key != '';
            CREATE INDEX notes_pinned ON notes(id) WHERE pinned = 1;
            CREATE INDEX notes_title ON notes(scope, title_key);
            CREATE INDEX notes_superseded_by ON notes(superseded_by);

            -- The other names that a note is found by.
            CREATE TABLE note_labels(
                note_id INTEGER NOT NULL REFERENCES notes(id),
                label TEXT NOT NULL,
                PRIMARY KEY (note_id, label)
            ) STRICT, WITHOUT ROWID;

            -- openly: told in no scene, so for everybody. Facts of before are open when no scene holds them.
            ALTER TABLE evidence ADD COLUMN openly INTEGER NOT NULL DEFAULT 0 CHECK (openly IN (0, 1));
            UPDATE evidence SET openly = 1 WHERE relation_id NOT IN (
                SELECT ref_id FROM scene_refs WHERE kind = 'relation');

            -- Which facts a sentence told: the text index finds sentences.
            CREATE INDEX evidence_sentence ON evidence(sentence_id, relation_id);

            -- Rows and tokens of the text index by kind: how many, how long on average.
            CREATE TABLE text_sizes(
                kind INTEGER PRIMARY KEY,
                texts INTEGER NOT NULL,
                tokens INTEGER NOT NULL
            ) STRICT;
        """,
        )

    @migrations()
    def m003_blocks_and_documents(db: "Database") -> None:
        _execute(
            db,
            """
            -- id is made of the content. A large payload is NULL here and lies in the file of its digest.
            CREATE TABLE blocks(
                num INTEGER PRIMARY KEY AUTOINCREMENT,
                id TEXT NOT NULL UNIQUE,
                modality TEXT NOT NULL CHECK (modality IN ('text', 'image', 'video', 'audio')),
                text TEXT NOT NULL,
                payload BLOB,
                payload_digest TEXT NOT NULL DEFAULT '' CHECK (length(payload_digest) IN (0, 64)),
                mime TEXT NOT NULL DEFAULT '',
                size INTEGER NOT NULL DEFAULT 0,      -- bytes of the payload
                width INTEGER,
                height INTEGER,
                source TEXT NOT NULL DEFAULT '',
                tool TEXT NOT NULL DEFAULT '',
                semantic_type TEXT NOT NULL DEFAULT '',
                openly INTEGER NOT NULL DEFAULT 0 CHECK (openly IN (0, 1)),  -- put in no scene: for everybody
                created_at TEXT NOT NULL CHECK (length(created_at) = 24),
                updated_at TEXT NOT NULL CHECK (length(updated_at) = 24),
                CHECK (payload IS NULL OR payload_digest <> '')
            ) STRICT;
            CREATE INDEX blocks_payload ON blocks(payload_digest) WHERE payload_digest <> '';

            -- id is made of the text, so a text is one document. tags and entities are read with their row alone.
            CREATE TABLE documents(
                num INTEGER PRIMARY KEY AUTOINCREMENT,
                id TEXT NOT NULL UNIQUE,
                summary TEXT NOT NULL,
                text TEXT NOT NULL,
                source TEXT NOT NULL DEFAULT '',
                tags TEXT NOT NULL DEFAULT '[]',      -- JSON
                entities TEXT NOT NULL DEFAULT '[]',  -- JSON
                openly INTEGER NOT NULL DEFAULT 0 CHECK (openly IN (0, 1)),
                access_count INTEGER NOT NULL DEFAULT 0,
                last_access TEXT CHECK (length(last_access) = 24),
                created_at TEXT NOT NULL CHECK (length(created_at) = 24)
            ) STRICT;

            -- The blocks that came with a document, in its order: they outlive it.
            CREATE TABLE document_blocks(
                document_id TEXT NOT NULL REFERENCES documents(id),
                block_id TEXT NOT NULL REFERENCES blocks(id),
                place INTEGER NOT NULL,
                PRIMARY KEY (document_id, block_id)
            ) STRICT, WITHOUT ROWID;
            CREATE INDEX document_blocks_block ON document_blocks(block_id);

            CREATE INDEX scene_refs_text ON scene_refs(kind, ref_text) WHERE ref_text <> '';
        """,
        )

    @migrations()
    def m004_vectors(db: "Database") -> None:
        _execute(
            db,
            """
            -- Of the passages of the text index, under its numbers of kinds; written where a memory has an embedder.
            -- vector: float32, little endian, unit length; empty where a text has no direction.
            CREATE TABLE vectors(
                id INTEGER PRIMARY KEY AUTOINCREMENT,
                kind INTEGER NOT NULL,
                ref_id INTEGER NOT NULL,
                passage INTEGER NOT NULL,
                fingerprint TEXT NOT NULL,
                vector BLOB NOT NULL,
                UNIQUE (kind, ref_id, passage, fingerprint)
            ) STRICT;
            -- How many were removed, which tells indexes in memory that some of theirs are gone.
            INSERT INTO counters VALUES ('vectors_removed', 0);
        """,
        )

    @migrations()
    def m005_upkeep(db: "Database") -> None:
        _execute(
            db,
            """
            -- All that was told, so that it can be told again, of the name it was said with, when a merge is undone.
            -- scenes: JSON, the keys of the scenes it was told in. NULL where it was told before this was kept.
            ALTER TABLE evidence ADD COLUMN confidence REAL CHECK (confidence > 0 AND confidence <= 1);
            ALTER TABLE evidence ADD COLUMN scenes TEXT;
            ALTER TABLE evidence ADD COLUMN valid_from TEXT CHECK (length(valid_from) = 24);
            ALTER TABLE evidence ADD COLUMN valid_to TEXT CHECK (length(valid_to) = 24);
            ALTER TABLE evidence ADD COLUMN functional INTEGER CHECK (functional IN (0, 1));

            -- Entities that are not one, whatever their names say. rounds: reviews that pass them over, NULL for all.
            CREATE TABLE entities_apart(
                a INTEGER NOT NULL REFERENCES entities(id),
                b INTEGER NOT NULL REFERENCES entities(id),
                rounds INTEGER CHECK (rounds > 0),
                at TEXT NOT NULL CHECK (length(at) = 24),
                PRIMARY KEY (a, b),
                CHECK (a < b)
            ) STRICT, WITHOUT ROWID;
            CREATE INDEX entities_apart_b ON entities_apart(b);

            -- JSON: what an operation has to know of the time when it was done, besides the rows it changed.
            ALTER TABLE operations ADD COLUMN marks TEXT;

            -- Who is at work on something that one process does at a time, until when.
            CREATE TABLE leases(
                name TEXT PRIMARY KEY,
                owner TEXT NOT NULL,
                until TEXT NOT NULL CHECK (length(until) = 24)
            ) STRICT, WITHOUT ROWID;

            -- Which rows keep a sentence: else each sentence that goes is looked for in whole tables.
            CREATE INDEX relations_sentence ON relations(sentence_id) WHERE sentence_id IS NOT NULL;
            CREATE INDEX scene_refs_sentence ON scene_refs(sentence_id) WHERE sentence_id IS NOT NULL;
            CREATE INDEX entity_aliases_entity ON entity_aliases(entity_id);
            CREATE INDEX scene_aliases_scene ON scene_aliases(scene_id);
        """,
        )

    @migrations()
    def m006_speed(db: "Database") -> None:
        _execute(
            db,
            """
            -- Which features lead to a scene: store/postings.py. Those that another program writes do in any case.
            ALTER TABLE scene_features ADD COLUMN posted INTEGER DEFAULT 0;
            CREATE INDEX scene_features_posted ON scene_features(feature, posted) WHERE posted IS NOT NULL;

            -- Nobody holds scenes in memory any more, so nobody has to hear of changes.
            DROP TABLE scene_changes;
            DELETE FROM counters WHERE name IN ('scene_revision', 'scene_revision_trimmed');

            -- A commit looks for the same fact: with one of ten thousand things that somebody likes it would else read
            -- them all.
            DROP INDEX relations_source;
            CREATE INDEX relations_source ON relations(source_id, relation_key, target_id);
            -- Of the values of a functional relation: those beside a new one, and those that hold beyond it.
            CREATE INDEX relations_order ON relations(source_id, relation_key, scope, COALESCE(valid_from, recorded_at))
                WHERE status = 'superseded';
            CREATE INDEX relations_end ON relations(source_id, relation_key, scope, valid_to)
                WHERE status = 'superseded';

            -- Search asks of every note that it finds whether it is still live: this holds only those that are not.
            CREATE INDEX notes_withdrawn ON notes(id) WHERE status <> 'live';
        """,
        )

    @migrations()
    def m007_ledger(db: "Database") -> None:
        _execute(
            db,
            """
            -- What a scope is: '' needs no row, it is the user's own. parent: the project of a session. place: the
            -- folder of a project. filled: whether anything was ever written to it; one look at the few that are tells
            -- who may read everything there is, so that nothing need be left out.
            CREATE TABLE scopes(
                key TEXT PRIMARY KEY,
                kind TEXT NOT NULL CHECK (kind IN ('project', 'session', 'named')),
                parent TEXT NOT NULL DEFAULT '',
                label TEXT NOT NULL DEFAULT '',
                place TEXT NOT NULL DEFAULT '',
                filled INTEGER NOT NULL DEFAULT 0,
                created_at TEXT NOT NULL CHECK (length(created_at) = 24)
            ) STRICT, WITHOUT ROWID;
            CREATE INDEX scopes_filled ON scopes(key) WHERE filled = 1;
            -- Every other name that leads to a project: paths, ids that other systems gave it, remotes.
            CREATE TABLE scope_aliases(
                scheme TEXT NOT NULL,
                value TEXT NOT NULL,
                scope TEXT NOT NULL REFERENCES scopes(key),
                PRIMARY KEY (scheme, value)
            ) STRICT, WITHOUT ROWID;
            CREATE INDEX scope_aliases_scope ON scope_aliases(scope);

            ALTER TABLE notes ADD COLUMN summary TEXT NOT NULL DEFAULT '';
            ALTER TABLE notes ADD COLUMN highlight TEXT NOT NULL DEFAULT '';
            ALTER TABLE notes ADD COLUMN reason TEXT NOT NULL DEFAULT '';
            -- Told in no scene, so for everybody, whatever scenes hold it besides.
            ALTER TABLE notes ADD COLUMN openly INTEGER NOT NULL DEFAULT 1 CHECK (openly IN (0, 1));
            UPDATE notes SET openly = 0 WHERE id IN (SELECT ref_id FROM scene_refs WHERE kind = 'note');
            -- What always goes into a prompt, and what of a kind was told last.
            DROP INDEX notes_pinned;
            CREATE INDEX notes_resident ON notes(scope) WHERE status = 'live' AND (pinned = 1 OR kind = 'rule');
            CREATE INDEX notes_kind ON notes(scope, kind, updated_at) WHERE status = 'live' AND openly = 1;
            -- By the slot first: a constraint is looked for by its slot, whatever scopes there are.
            DROP INDEX notes_slot;
            CREATE UNIQUE INDEX notes_slot ON notes(slot_key, scope) WHERE status = 'live' AND slot_key != '';

            -- What calls a note to mind: a feature as in situations, or words. token: by which it is looked for.
            CREATE TABLE note_triggers(
                note_id INTEGER NOT NULL REFERENCES notes(id),
                load_when TEXT NOT NULL,
                token TEXT NOT NULL,
                PRIMARY KEY (note_id, load_when)
            ) STRICT, WITHOUT ROWID;
            CREATE INDEX note_triggers_token ON note_triggers(token);
            -- Apart from the note, so that using it does not change it.
            CREATE TABLE note_usage(
                note_id INTEGER PRIMARY KEY REFERENCES notes(id),
                hits INTEGER NOT NULL DEFAULT 0,
                last_at TEXT NOT NULL CHECK (length(last_at) = 24)
            ) STRICT;

            -- Who did what to something and where; seq 0 is its origin and never changes.
            CREATE TABLE provenance(
                kind TEXT NOT NULL,
                ref_id INTEGER NOT NULL,
                seq INTEGER NOT NULL,
                act TEXT NOT NULL,
                actor TEXT NOT NULL DEFAULT '',
                place TEXT NOT NULL DEFAULT '',
                session TEXT NOT NULL DEFAULT '',
                message TEXT NOT NULL DEFAULT '',
                quote TEXT NOT NULL DEFAULT '',
                reason TEXT NOT NULL DEFAULT '',
                at TEXT NOT NULL CHECK (length(at) = 24),
                PRIMARY KEY (kind, ref_id, seq)
            ) STRICT, WITHOUT ROWID;
            INSERT INTO provenance(kind, ref_id, seq, act, actor, at)
                SELECT 'note', id, 0, 'remember', source, created_at FROM notes;

            -- Failures that look alike, by signature. Open until it is resolved; note_id: the lesson that did.
            CREATE TABLE incidents(
                id INTEGER PRIMARY KEY AUTOINCREMENT,
                scope TEXT NOT NULL DEFAULT '',
                signature TEXT NOT NULL,
                tool TEXT NOT NULL,
                count INTEGER NOT NULL DEFAULT 1,
                sample TEXT NOT NULL DEFAULT '',
                first_at TEXT NOT NULL CHECK (length(first_at) = 24),
                last_at TEXT NOT NULL CHECK (length(last_at) = 24),
                resolved_at TEXT CHECK (length(resolved_at) = 24),
                note_id INTEGER REFERENCES notes(id) ON DELETE SET NULL,
                UNIQUE (scope, signature)
            ) STRICT;
            CREATE INDEX incidents_note ON incidents(note_id) WHERE note_id IS NOT NULL;

            -- Of which sentence in which session an agent was reminded; kept as a hash of both.
            CREATE TABLE reminders(
                hash BLOB PRIMARY KEY,
                at TEXT NOT NULL CHECK (length(at) = 24)
            ) STRICT, WITHOUT ROWID;
        """,
        )
        for table, at in (
            ("relations", "recorded_at"),
            ("notes", "created_at"),
            ("sessions", "created_at"),
            ("incidents", "first_at"),
        ):
            _execute(db, _note_scopes_of(table, at))
        titles = db.conn.execute("SELECT id, title FROM notes").fetchall()
        keys = [(title_key(title), note_id) for note_id, title in titles]
        db.conn.executemany("UPDATE notes SET title_key = ? WHERE id = ?", keys)

    @migrations()
    def m008_history(db: "Database") -> None:
        _execute(
            db,
            """
            -- message: what a part is a piece of. job_id: the job that digests or has digested it; a part that changes
            -- loses it, so that it is read again.
            ALTER TABLE parts ADD COLUMN message TEXT NOT NULL DEFAULT '';
            ALTER TABLE parts ADD COLUMN tool TEXT NOT NULL DEFAULT '';
            ALTER TABLE parts ADD COLUMN outcome TEXT NOT NULL DEFAULT '' CHECK (outcome IN ('', 'done', 'failed'));
            ALTER TABLE parts ADD COLUMN job_id INTEGER;
            CREATE INDEX parts_undigested ON parts(session_id, seq) WHERE job_id IS NULL;
            CREATE INDEX parts_job ON parts(job_id) WHERE job_id IS NOT NULL;
            -- The id that a host gave to a part is looked for in every session.
            CREATE INDEX parts_part ON parts(part);

            -- failures: of jobs, in a row. own: it is that of a writer at work, so there is nothing to learn from it.
            -- named: whoever told it said whose it is, so that one of the user takes no project.
            ALTER TABLE sessions ADD COLUMN failures INTEGER NOT NULL DEFAULT 0;
            ALTER TABLE sessions ADD COLUMN own INTEGER NOT NULL DEFAULT 0 CHECK (own IN (0, 1));
            ALTER TABLE sessions ADD COLUMN named INTEGER NOT NULL DEFAULT 0 CHECK (named IN (0, 1));

            -- What is to be written, is being written and was: queued, asked (a writer is at work until lease_until),
            -- answered (reply waits to be settled), done, failed. cause: manual, idle or compaction. One of a kind is
            -- at work on a session, or for kinds without one on a scope.
            CREATE TABLE jobs(
                id INTEGER PRIMARY KEY AUTOINCREMENT,
                kind TEXT NOT NULL CHECK (kind IN ('checkpoint', 'consolidate', 'distill')),
                session_id INTEGER REFERENCES sessions(id) ON DELETE SET NULL,
                scope TEXT NOT NULL DEFAULT '',
                cause TEXT NOT NULL,
                state TEXT NOT NULL CHECK (state IN ('queued', 'asked', 'answered', 'done', 'failed')),
                owner TEXT NOT NULL DEFAULT '',
                lease_until TEXT CHECK (length(lease_until) = 24),
                attempts INTEGER NOT NULL DEFAULT 0,
                reply TEXT,
                error TEXT NOT NULL DEFAULT '',
                note_id INTEGER REFERENCES notes(id) ON DELETE SET NULL,
                created_at TEXT NOT NULL CHECK (length(created_at) = 24),
                updated_at TEXT NOT NULL CHECK (length(updated_at) = 24)
            ) STRICT;
            CREATE UNIQUE INDEX jobs_at_work ON jobs(kind, IIF(session_id IS NULL, scope, session_id))
                WHERE state IN ('queued', 'asked', 'answered');
            CREATE INDEX jobs_session ON jobs(session_id) WHERE session_id IS NOT NULL;
            CREATE INDEX jobs_note ON jobs(note_id) WHERE note_id IS NOT NULL;

            -- How far the transcript of another program was read; cursor is the reader's own. redact: whether secrets
            -- are replaced, NULL as the settings say. updated_at: when it was looked at last.
            CREATE TABLE transcripts(
                path TEXT NOT NULL,
                kind TEXT NOT NULL,
                cursor TEXT NOT NULL,
                redact INTEGER CHECK (redact IN (0, 1)),
                updated_at TEXT NOT NULL CHECK (length(updated_at) = 24),
                PRIMARY KEY (path, kind)
            ) STRICT, WITHOUT ROWID;

            -- Sessions that were removed, and are not to come back with a transcript: digests of their names, and of
            -- the scopes they were of, empty for the user's own.
            CREATE TABLE removed_sessions(name BLOB PRIMARY KEY, scope BLOB NOT NULL) STRICT, WITHOUT ROWID;

            -- What a note was made of: notes that it sums up, or the checkpoint it was told in.
            CREATE TABLE note_sources(
                note_id INTEGER NOT NULL REFERENCES notes(id) ON DELETE CASCADE,
                source_id INTEGER NOT NULL REFERENCES notes(id) ON DELETE CASCADE,
                PRIMARY KEY (note_id, source_id)
            ) STRICT, WITHOUT ROWID;
            CREATE INDEX note_sources_source ON note_sources(source_id);

            -- Tokens that writers used, by UTC day.
            CREATE TABLE writer_usage(
                day TEXT PRIMARY KEY CHECK (length(day) = 10),
                tokens INTEGER NOT NULL
            ) STRICT, WITHOUT ROWID;
        """,
        )

    @migrations()
    def m009_trees(db: "Database") -> None:
        _execute(
            db,
            """
            -- Folders of notes as files, and of which scope each is.
            CREATE TABLE trees(
                root TEXT PRIMARY KEY,
                scope TEXT NOT NULL
            ) STRICT, WITHOUT ROWID;
            -- What a file of a tree was when it was last read or written. uid: of its note, in files of every device;
            -- for a compiled list ':' and its path. path: '' where there is no file any more. hash: of the file, ''
            -- before it is first written; stamp: size, times and inode, by which it is known without reading; ''
            -- where it has to be read. note_hash: of the page that the note would make. writing: the hash of what is
            -- about to be written. changes: of the note since. conflict: file and note both changed.
            CREATE TABLE tree_files(
                root TEXT NOT NULL REFERENCES trees(root),
                uid TEXT NOT NULL,
                path TEXT NOT NULL,
                note_id INTEGER,
                hash TEXT NOT NULL DEFAULT '',
                stamp TEXT NOT NULL DEFAULT '',
                note_hash TEXT NOT NULL DEFAULT '',
                writing TEXT NOT NULL DEFAULT '',
                changes INTEGER NOT NULL DEFAULT 0,
                conflict INTEGER NOT NULL DEFAULT 0 CHECK (conflict IN (0, 1)),
                PRIMARY KEY (root, uid)
            ) STRICT, WITHOUT ROWID;
            CREATE INDEX tree_files_note ON tree_files(note_id);
        """,
        )
        _execute(db, "".join(map(_changes_of_notes, ("note_labels", "note_triggers"))))
        _execute(db, _CHANGES_OF_PAGES)

    @migrations()
    def m010_strengths(db: "Database") -> None:
        # By day, as upkeep found it: '2026-09-07=3 2026-09-09=5'. In the row, so that it goes where that does.
        _execute(db, "ALTER TABLE scenes ADD COLUMN strengths TEXT NOT NULL DEFAULT '';")

    @migrations()
    def m011_forms_of_trees(db: "Database") -> None:
        _execute(
            db,
            """
            -- form: how notes are files there. trust: whether people speak in them: 0 no, 1 as long as it lies in no
            -- git working tree, 2 somebody said so.
            ALTER TABLE trees ADD COLUMN form TEXT NOT NULL DEFAULT 'notes';
            ALTER TABLE trees ADD COLUMN trust INTEGER NOT NULL DEFAULT 0 CHECK (trust IN (0, 1, 2));
        """,
        )

    return migrations


# Counted by SQLite, whoever writes the row: a sync then reads no note that nobody changed.
_CHANGES_OF_PAGES = """
    CREATE TRIGGER notes_page_changed
        AFTER UPDATE OF scope, kind, slot, title, body, summary, highlight, status, pinned, source, reason, created_at
        ON notes BEGIN UPDATE tree_files SET changes = changes + 1 WHERE note_id = NEW.id; END;
    -- A path tells the title. The file is known by its uid, or by what it holds.
    CREATE TRIGGER notes_page_gone AFTER DELETE ON notes BEGIN
        UPDATE tree_files SET changes = changes + 1, path = '', conflict = 0 WHERE note_id = OLD.id; END;
"""


def _changes_of_notes(table: str) -> str:
    """Return the statements by which it is counted that what stands beside a note changed."""
    return "".join(
        f"""CREATE TRIGGER {table}_{act.lower()}_page AFTER {act} ON {table} BEGIN
                UPDATE tree_files SET changes = changes + 1 WHERE note_id = {row}.note_id; END;
        """
        for act, row in (("INSERT", "NEW"), ("DELETE", "OLD"))
    )


def _note_scopes_of(table: str, at: str) -> str:
    """Return the statements by which a scope is known as soon as a table has a row of it, whoever writes the row.

    at: the column of the time it was written. Who trusts that a scope is empty shows what is not theirs, so no way of
    writing may pass this by: neither an undo nor another program.
    """
    kind = "CASE WHEN {0} GLOB 'project:*' THEN 'project' WHEN {0} GLOB 'session:*' THEN 'session' ELSE 'named' END"
    note = f"""INSERT INTO scopes(key, kind, filled, created_at)
                   VALUES (NEW.scope, {kind.format("NEW.scope")}, 1, NEW.{at})
               ON CONFLICT (key) DO UPDATE SET filled = 1 WHERE filled = 0"""
    return f"""
        INSERT INTO scopes(key, kind, filled, created_at)
            SELECT scope, {kind.format("scope")}, 1, MIN({at}) FROM {table} WHERE scope <> '' GROUP BY scope
            ON CONFLICT (key) DO NOTHING;
        CREATE TRIGGER {table}_scope_written AFTER INSERT ON {table} WHEN NEW.scope <> '' BEGIN {note}; END;
        CREATE TRIGGER {table}_scope_changed AFTER UPDATE OF scope ON {table} WHEN NEW.scope <> '' BEGIN {note}; END;
    """


def refuse_newer(connection: Connection, path: str) -> tuple[int, int]:
    """Return application id and schema version of a file, that below 0 for a copy that is not finished.

    Raises SchemaTooNew for a file of a newer graphmem.
    """
    application, version = connection.execute(
        "SELECT application_id, user_version FROM pragma_application_id, pragma_user_version"
    ).fetchone()
    if application == APPLICATION_ID and abs(version) > VERSION:
        reason = f"has schema {abs(version)}, this graphmem knows {VERSION} at the most"
        raise SchemaTooNew(f"{path} {reason}: upgrade graphmem")
    return application, version


def require_memory(connection: Connection, path: str, *, unfinished: bool = False) -> None:
    """Raise StoreFailed unless a file is a memory, of this schema or an older one; SchemaTooNew for a newer one.

    unfinished: it may be a copy that is not finished.
    """
    application, version = refuse_newer(connection, path)
    if application != APPLICATION_ID:
        raise StoreFailed(f"{path} is no graphmem memory: name a backup of one")
    if version < 0 and not unfinished:
        raise _unfinished(connection, path)


def is_current(connection: Connection, path: str, *, unfinished: bool = False) -> bool:
    """Tell by one read whether a file has this schema; refuse what is newer or not ours.

    Raises SchemaTooNew for a file of a newer graphmem, StoreFailed for a database of another program, and, unless
    `unfinished` is set, for a copy that is not finished.
    """
    application, version = refuse_newer(connection, path)
    if application == APPLICATION_ID:
        if version < 0 and not unfinished:
            raise _unfinished(connection, path)
        return abs(version) == VERSION
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if "scenes" in tables:
        reason = "has the schema of another engine, and graphmem writes to its own files alone"
        raise StoreFailed(
            f"{path} {reason}: 'graphmem import homeagent' takes what it holds into one of these, "
            "'graphmem dedupe --dry-run' shows what could be merged in it"
        )
    if application or version or tables:
        raise StoreFailed(f"{path} is the database of another program, not a graphmem memory: name another file")
    return False


def _unfinished(connection: Connection, path: str) -> StoreFailed:
    from graphmem.store import rows

    return rows.unfinished(connection, path)


def is_blank(connection: sqlite3.Connection) -> bool:
    """Tell whether nothing was ever written to a file, as where who made it was killed."""
    return bool(connection.execute("PRAGMA schema_version").fetchone()[0] == 0)


def migrate(connection: Connection, path: str) -> None:
    """Bring a file up to date: all pending migrations or none. Many processes may call it at once.

    It may be a copy that is not finished, which stays one: who may open it is told before.
    """
    if is_current(connection, path, unfinished=True):
        return
    # Table rewrites must not fire ON DELETE actions, and inside a transaction the pragma does nothing.
    connection.execute("PRAGMA foreign_keys = OFF")
    try:
        connection.execute("BEGIN IMMEDIATE")
        try:
            if not is_current(connection, path, unfinished=True):  # another process may have been first
                _, version = refuse_newer(connection, path)
                if is_blank(connection):
                    _make(connection)
                else:
                    _bring_up_to_date(connection, path)
                connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                connection.execute(f"PRAGMA user_version = {VERSION if version >= 0 else -VERSION}")
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
    finally:
        connection.execute("PRAGMA foreign_keys = ON")


def _make(connection: Connection) -> None:
    """Make the schema in a blank file, in the transaction that is open.

    In a third of the time that the migrations take, and without sqlite_utils, which takes longer to import than that.
    """
    from graphmem.store import fts5
    from graphmem.store.scripts import script

    for statement in script("schema.sql").split(SEPARATOR):
        connection.execute(statement)
    fts5.create(connection)


def _bring_up_to_date(connection: Connection, path: str) -> None:
    """Apply all pending migrations, in the transaction that is open."""
    from sqlite_utils import Database

    from graphmem.store import fts5, postings, text_index

    _migrations().apply(Database(connection))
    # What is derived is made anew by the code of today, and no migration touches it.
    postings.settle_all(connection)
    fts5.clear(connection)
    for _ in text_index.fill(connection):
        pass
    broken = connection.execute("PRAGMA foreign_key_check").fetchall()
    if broken:
        raise StoreCorrupt(f"{path}: {len(broken)} rows point at rows that are gone; restore a backup")


@contextlib.contextmanager
def open_empty(version: int) -> Iterator[Connection]:
    """Yield an empty database of an older schema, which is gone at the end; `migrate` brings it up to date."""
    from sqlite_utils import Database

    with contextlib.closing(sqlite3.connect("", isolation_level=None, factory=Connection)) as connection:
        migrations, database = _migrations(), Database(connection)
        names = [migration.name for migration in migrations.pending(database)]
        migrations.apply(database, stop_before=names[version])
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {version}")
        yield connection
