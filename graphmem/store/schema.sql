-- What all migrations of schema.py leave, and a new file is made of. Written by tests/test_migrations.py.
CREATE TABLE "_sqlite_migrations" (
   "id" INTEGER PRIMARY KEY,
   "migration_set" TEXT,
   "name" TEXT,
   "applied_at" TEXT
);

CREATE UNIQUE INDEX "idx__sqlite_migrations_migration_set_name"
ON "_sqlite_migrations" ("migration_set", "name");

CREATE TABLE entities(
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL,                   -- as first written
    key TEXT NOT NULL UNIQUE,             -- canonical
    type TEXT NOT NULL DEFAULT 'Concept',
    mention_count INTEGER NOT NULL DEFAULT 1,
    created_at TEXT NOT NULL CHECK (length(created_at) = 24),
    updated_at TEXT NOT NULL CHECK (length(updated_at) = 24)
) STRICT;

CREATE TABLE entity_aliases(
    key TEXT PRIMARY KEY,
    entity_id INTEGER NOT NULL REFERENCES entities(id)
) STRICT, WITHOUT ROWID;

CREATE TABLE sentences(
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    hash BLOB NOT NULL UNIQUE,
    text TEXT NOT NULL,
    created_at TEXT NOT NULL CHECK (length(created_at) = 24)
) STRICT;

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

CREATE INDEX relations_target ON relations(target_id);

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
, openly INTEGER NOT NULL DEFAULT 0 CHECK (openly IN (0, 1)), confidence REAL CHECK (confidence > 0 AND confidence <= 1), scenes TEXT, valid_from TEXT CHECK (length(valid_from) = 24), valid_to TEXT CHECK (length(valid_to) = 24), functional INTEGER CHECK (functional IN (0, 1))) STRICT;

CREATE INDEX evidence_relation ON evidence(relation_id);

CREATE TABLE scenes(
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    key TEXT NOT NULL UNIQUE,
    strength INTEGER NOT NULL DEFAULT 1,
    visits INTEGER NOT NULL DEFAULT 0,
    origin TEXT NOT NULL CHECK (origin IN ('declared', 'emergent')),
    created_at TEXT NOT NULL CHECK (length(created_at) = 24),
    updated_at TEXT NOT NULL CHECK (length(updated_at) = 24)
, strengths TEXT NOT NULL DEFAULT '') STRICT;

CREATE TABLE scene_aliases(
    key TEXT PRIMARY KEY,
    scene_id INTEGER NOT NULL REFERENCES scenes(id)
) STRICT, WITHOUT ROWID;

CREATE TABLE scene_features(
    scene_id INTEGER NOT NULL REFERENCES scenes(id),
    feature TEXT NOT NULL,
    weight REAL NOT NULL CHECK (weight > 0),
    mass REAL NOT NULL DEFAULT 0 CHECK (mass >= 0),
    touched INTEGER NOT NULL DEFAULT 0, posted INTEGER DEFAULT 0,
    PRIMARY KEY (scene_id, feature)
) STRICT, WITHOUT ROWID;

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

CREATE TABLE situation_evidence(
    label TEXT PRIMARY KEY,
    count INTEGER NOT NULL DEFAULT 1,
    updated_at TEXT NOT NULL CHECK (length(updated_at) = 24)
) STRICT, WITHOUT ROWID;

CREATE TABLE counters(
    name TEXT PRIMARY KEY,
    value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE active_days(
    day TEXT PRIMARY KEY CHECK (length(day) = 10)
) STRICT, WITHOUT ROWID;

CREATE TABLE operations(
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    kind TEXT NOT NULL,
    at TEXT NOT NULL CHECK (length(at) = 24),
    summary TEXT NOT NULL,                -- JSON
    undone_at TEXT CHECK (length(undone_at) = 24)
, marks TEXT) STRICT;

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

CREATE TABLE sessions(
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE,
    scope TEXT NOT NULL DEFAULT '',
    parts INTEGER NOT NULL DEFAULT 0,
    length INTEGER NOT NULL DEFAULT 0,
    created_at TEXT NOT NULL CHECK (length(created_at) = 24),
    updated_at TEXT NOT NULL CHECK (length(updated_at) = 24)
, failures INTEGER NOT NULL DEFAULT 0, own INTEGER NOT NULL DEFAULT 0 CHECK (own IN (0, 1)), named INTEGER NOT NULL DEFAULT 0 CHECK (named IN (0, 1))) STRICT;

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
    recorded_at TEXT NOT NULL CHECK (length(recorded_at) = 24), message TEXT NOT NULL DEFAULT '', tool TEXT NOT NULL DEFAULT '', outcome TEXT NOT NULL DEFAULT '' CHECK (outcome IN ('', 'done', 'failed')), job_id INTEGER,
    UNIQUE (session_id, part),
    UNIQUE (session_id, seq)
) STRICT;

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
, summary TEXT NOT NULL DEFAULT '', highlight TEXT NOT NULL DEFAULT '', reason TEXT NOT NULL DEFAULT '', openly INTEGER NOT NULL DEFAULT 1 CHECK (openly IN (0, 1))) STRICT;

CREATE INDEX notes_title ON notes(scope, title_key);

CREATE INDEX notes_superseded_by ON notes(superseded_by);

CREATE TABLE note_labels(
    note_id INTEGER NOT NULL REFERENCES notes(id),
    label TEXT NOT NULL,
    PRIMARY KEY (note_id, label)
) STRICT, WITHOUT ROWID;

CREATE INDEX evidence_sentence ON evidence(sentence_id, relation_id);

CREATE TABLE text_sizes(
    kind INTEGER PRIMARY KEY,
    texts INTEGER NOT NULL,
    tokens INTEGER NOT NULL
) STRICT;

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

CREATE TABLE document_blocks(
    document_id TEXT NOT NULL REFERENCES documents(id),
    block_id TEXT NOT NULL REFERENCES blocks(id),
    place INTEGER NOT NULL,
    PRIMARY KEY (document_id, block_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX document_blocks_block ON document_blocks(block_id);

CREATE INDEX scene_refs_text ON scene_refs(kind, ref_text) WHERE ref_text <> '';

CREATE TABLE vectors(
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    kind INTEGER NOT NULL,
    ref_id INTEGER NOT NULL,
    passage INTEGER NOT NULL,
    fingerprint TEXT NOT NULL,
    vector BLOB NOT NULL,
    UNIQUE (kind, ref_id, passage, fingerprint)
) STRICT;

CREATE TABLE entities_apart(
    a INTEGER NOT NULL REFERENCES entities(id),
    b INTEGER NOT NULL REFERENCES entities(id),
    rounds INTEGER CHECK (rounds > 0),
    at TEXT NOT NULL CHECK (length(at) = 24),
    PRIMARY KEY (a, b),
    CHECK (a < b)
) STRICT, WITHOUT ROWID;

CREATE INDEX entities_apart_b ON entities_apart(b);

CREATE TABLE leases(
    name TEXT PRIMARY KEY,
    owner TEXT NOT NULL,
    until TEXT NOT NULL CHECK (length(until) = 24)
) STRICT, WITHOUT ROWID;

CREATE INDEX relations_sentence ON relations(sentence_id) WHERE sentence_id IS NOT NULL;

CREATE INDEX scene_refs_sentence ON scene_refs(sentence_id) WHERE sentence_id IS NOT NULL;

CREATE INDEX entity_aliases_entity ON entity_aliases(entity_id);

CREATE INDEX scene_aliases_scene ON scene_aliases(scene_id);

CREATE INDEX scene_features_posted ON scene_features(feature, posted) WHERE posted IS NOT NULL;

CREATE INDEX relations_source ON relations(source_id, relation_key, target_id);

CREATE INDEX relations_order ON relations(source_id, relation_key, scope, COALESCE(valid_from, recorded_at))
WHERE status = 'superseded';

CREATE INDEX relations_end ON relations(source_id, relation_key, scope, valid_to)
WHERE status = 'superseded';

CREATE INDEX notes_withdrawn ON notes(id) WHERE status <> 'live';

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

CREATE TABLE scope_aliases(
    scheme TEXT NOT NULL,
    value TEXT NOT NULL,
    scope TEXT NOT NULL REFERENCES scopes(key),
    PRIMARY KEY (scheme, value)
) STRICT, WITHOUT ROWID;

CREATE INDEX scope_aliases_scope ON scope_aliases(scope);

CREATE INDEX notes_resident ON notes(scope) WHERE status = 'live' AND (pinned = 1 OR kind = 'rule');

CREATE INDEX notes_kind ON notes(scope, kind, updated_at) WHERE status = 'live' AND openly = 1;

CREATE UNIQUE INDEX notes_slot ON notes(slot_key, scope) WHERE status = 'live' AND slot_key != '';

CREATE TABLE note_triggers(
    note_id INTEGER NOT NULL REFERENCES notes(id),
    load_when TEXT NOT NULL,
    token TEXT NOT NULL,
    PRIMARY KEY (note_id, load_when)
) STRICT, WITHOUT ROWID;

CREATE INDEX note_triggers_token ON note_triggers(token);

CREATE TABLE note_usage(
    note_id INTEGER PRIMARY KEY REFERENCES notes(id),
    hits INTEGER NOT NULL DEFAULT 0,
    last_at TEXT NOT NULL CHECK (length(last_at) = 24)
) STRICT;

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

CREATE TABLE reminders(
    hash BLOB PRIMARY KEY,
    at TEXT NOT NULL CHECK (length(at) = 24)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER relations_scope_written AFTER INSERT ON relations WHEN NEW.scope <> '' BEGIN INSERT INTO scopes(key, kind, filled, created_at)
    VALUES (NEW.scope, CASE WHEN NEW.scope GLOB 'project:*' THEN 'project' WHEN NEW.scope GLOB 'session:*' THEN 'session' ELSE 'named' END, 1, NEW.recorded_at)
ON CONFLICT (key) DO UPDATE SET filled = 1 WHERE filled = 0; END;

CREATE TRIGGER relations_scope_changed AFTER UPDATE OF scope ON relations WHEN NEW.scope <> '' BEGIN INSERT INTO scopes(key, kind, filled, created_at)
    VALUES (NEW.scope, CASE WHEN NEW.scope GLOB 'project:*' THEN 'project' WHEN NEW.scope GLOB 'session:*' THEN 'session' ELSE 'named' END, 1, NEW.recorded_at)
ON CONFLICT (key) DO UPDATE SET filled = 1 WHERE filled = 0; END;

CREATE TRIGGER notes_scope_written AFTER INSERT ON notes WHEN NEW.scope <> '' BEGIN INSERT INTO scopes(key, kind, filled, created_at)
    VALUES (NEW.scope, CASE WHEN NEW.scope GLOB 'project:*' THEN 'project' WHEN NEW.scope GLOB 'session:*' THEN 'session' ELSE 'named' END, 1, NEW.created_at)
ON CONFLICT (key) DO UPDATE SET filled = 1 WHERE filled = 0; END;

CREATE TRIGGER notes_scope_changed AFTER UPDATE OF scope ON notes WHEN NEW.scope <> '' BEGIN INSERT INTO scopes(key, kind, filled, created_at)
    VALUES (NEW.scope, CASE WHEN NEW.scope GLOB 'project:*' THEN 'project' WHEN NEW.scope GLOB 'session:*' THEN 'session' ELSE 'named' END, 1, NEW.created_at)
ON CONFLICT (key) DO UPDATE SET filled = 1 WHERE filled = 0; END;

CREATE TRIGGER sessions_scope_written AFTER INSERT ON sessions WHEN NEW.scope <> '' BEGIN INSERT INTO scopes(key, kind, filled, created_at)
    VALUES (NEW.scope, CASE WHEN NEW.scope GLOB 'project:*' THEN 'project' WHEN NEW.scope GLOB 'session:*' THEN 'session' ELSE 'named' END, 1, NEW.created_at)
ON CONFLICT (key) DO UPDATE SET filled = 1 WHERE filled = 0; END;

CREATE TRIGGER sessions_scope_changed AFTER UPDATE OF scope ON sessions WHEN NEW.scope <> '' BEGIN INSERT INTO scopes(key, kind, filled, created_at)
    VALUES (NEW.scope, CASE WHEN NEW.scope GLOB 'project:*' THEN 'project' WHEN NEW.scope GLOB 'session:*' THEN 'session' ELSE 'named' END, 1, NEW.created_at)
ON CONFLICT (key) DO UPDATE SET filled = 1 WHERE filled = 0; END;

CREATE TRIGGER incidents_scope_written AFTER INSERT ON incidents WHEN NEW.scope <> '' BEGIN INSERT INTO scopes(key, kind, filled, created_at)
    VALUES (NEW.scope, CASE WHEN NEW.scope GLOB 'project:*' THEN 'project' WHEN NEW.scope GLOB 'session:*' THEN 'session' ELSE 'named' END, 1, NEW.first_at)
ON CONFLICT (key) DO UPDATE SET filled = 1 WHERE filled = 0; END;

CREATE TRIGGER incidents_scope_changed AFTER UPDATE OF scope ON incidents WHEN NEW.scope <> '' BEGIN INSERT INTO scopes(key, kind, filled, created_at)
    VALUES (NEW.scope, CASE WHEN NEW.scope GLOB 'project:*' THEN 'project' WHEN NEW.scope GLOB 'session:*' THEN 'session' ELSE 'named' END, 1, NEW.first_at)
ON CONFLICT (key) DO UPDATE SET filled = 1 WHERE filled = 0; END;

CREATE INDEX parts_undigested ON parts(session_id, seq) WHERE job_id IS NULL;

CREATE INDEX parts_job ON parts(job_id) WHERE job_id IS NOT NULL;

CREATE INDEX parts_part ON parts(part);

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

CREATE TABLE transcripts(
    path TEXT NOT NULL,
    kind TEXT NOT NULL,
    cursor TEXT NOT NULL,
    redact INTEGER CHECK (redact IN (0, 1)),
    updated_at TEXT NOT NULL CHECK (length(updated_at) = 24),
    PRIMARY KEY (path, kind)
) STRICT, WITHOUT ROWID;

CREATE TABLE removed_sessions(name BLOB PRIMARY KEY, scope BLOB NOT NULL) STRICT, WITHOUT ROWID;

CREATE TABLE note_sources(
    note_id INTEGER NOT NULL REFERENCES notes(id) ON DELETE CASCADE,
    source_id INTEGER NOT NULL REFERENCES notes(id) ON DELETE CASCADE,
    PRIMARY KEY (note_id, source_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX note_sources_source ON note_sources(source_id);

CREATE TABLE writer_usage(
    day TEXT PRIMARY KEY CHECK (length(day) = 10),
    tokens INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE trees(
    root TEXT PRIMARY KEY,
    scope TEXT NOT NULL
, form TEXT NOT NULL DEFAULT 'notes', trust INTEGER NOT NULL DEFAULT 0 CHECK (trust IN (0, 1, 2))) STRICT, WITHOUT ROWID;

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

CREATE TRIGGER note_labels_insert_page AFTER INSERT ON note_labels BEGIN
UPDATE tree_files SET changes = changes + 1 WHERE note_id = NEW.note_id; END;

CREATE TRIGGER note_labels_delete_page AFTER DELETE ON note_labels BEGIN
UPDATE tree_files SET changes = changes + 1 WHERE note_id = OLD.note_id; END;

CREATE TRIGGER note_triggers_insert_page AFTER INSERT ON note_triggers BEGIN
UPDATE tree_files SET changes = changes + 1 WHERE note_id = NEW.note_id; END;

CREATE TRIGGER note_triggers_delete_page AFTER DELETE ON note_triggers BEGIN
UPDATE tree_files SET changes = changes + 1 WHERE note_id = OLD.note_id; END;

CREATE TRIGGER notes_page_changed
AFTER UPDATE OF scope, kind, slot, title, body, summary, highlight, status, pinned, source, reason, created_at
ON notes BEGIN UPDATE tree_files SET changes = changes + 1 WHERE note_id = NEW.id; END;

CREATE TRIGGER notes_page_gone AFTER DELETE ON notes BEGIN
UPDATE tree_files SET changes = changes + 1, path = '', conflict = 0 WHERE note_id = OLD.id; END;

INSERT INTO _sqlite_migrations(migration_set, name, applied_at) VALUES
    ('graphmem', 'm001_scenes_and_graph', strftime('%Y-%m-%d %H:%M:%f+00:00', 'now')),
    ('graphmem', 'm002_text', strftime('%Y-%m-%d %H:%M:%f+00:00', 'now')),
    ('graphmem', 'm003_blocks_and_documents', strftime('%Y-%m-%d %H:%M:%f+00:00', 'now')),
    ('graphmem', 'm004_vectors', strftime('%Y-%m-%d %H:%M:%f+00:00', 'now')),
    ('graphmem', 'm005_upkeep', strftime('%Y-%m-%d %H:%M:%f+00:00', 'now')),
    ('graphmem', 'm006_speed', strftime('%Y-%m-%d %H:%M:%f+00:00', 'now')),
    ('graphmem', 'm007_ledger', strftime('%Y-%m-%d %H:%M:%f+00:00', 'now')),
    ('graphmem', 'm008_history', strftime('%Y-%m-%d %H:%M:%f+00:00', 'now')),
    ('graphmem', 'm009_trees', strftime('%Y-%m-%d %H:%M:%f+00:00', 'now')),
    ('graphmem', 'm010_strengths', strftime('%Y-%m-%d %H:%M:%f+00:00', 'now')),
    ('graphmem', 'm011_forms_of_trees', strftime('%Y-%m-%d %H:%M:%f+00:00', 'now'));

INSERT INTO counters(name, value) VALUES ('vectors_removed', 0)
