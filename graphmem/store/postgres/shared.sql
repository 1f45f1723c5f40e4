-- What all memories of a database share: the functions of SQLite that statements use, and those of triggers. They find
-- tables by the search path, so each role uses its own memory's. Statements end with a semicolon at the end of a line.

CREATE SCHEMA IF NOT EXISTS graphmem;
GRANT USAGE ON SCHEMA graphmem TO PUBLIC;

-- The greater and the lesser of two values; NULL where one is, as in SQLite.
CREATE OR REPLACE FUNCTION graphmem.max(a anycompatible, b anycompatible) RETURNS anycompatible
    LANGUAGE sql IMMUTABLE PARALLEL SAFE AS 'SELECT CASE WHEN a IS NULL OR b IS NULL THEN NULL WHEN a >= b THEN a ELSE b END';
CREATE OR REPLACE FUNCTION graphmem.min(a anycompatible, b anycompatible) RETURNS anycompatible
    LANGUAGE sql IMMUTABLE PARALLEL SAFE AS 'SELECT CASE WHEN a IS NULL OR b IS NULL THEN NULL WHEN a <= b THEN a ELSE b END';
CREATE OR REPLACE FUNCTION graphmem.instr(text, text) RETURNS bigint
    LANGUAGE sql IMMUTABLE PARALLEL SAFE AS 'SELECT strpos($1, $2)::bigint';
CREATE OR REPLACE FUNCTION graphmem.substr(text, bigint) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE AS 'SELECT pg_catalog.substr($1, $2::integer)';
CREATE OR REPLACE FUNCTION graphmem.substr(text, bigint, bigint) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE AS 'SELECT pg_catalog.substr($1, $2::integer, $3::integer)';

-- Of JSON that is kept as text. What is found is text too, whatever it was: a number is had by CAST.
CREATE OR REPLACE FUNCTION graphmem.json_extract(text, text) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$SELECT jsonb_path_query_first($1::jsonb, $2::jsonpath) #>> '{}'$$;
CREATE OR REPLACE FUNCTION graphmem.json_each(text, OUT key text, OUT value text) RETURNS SETOF record
    LANGUAGE sql IMMUTABLE PARALLEL SAFE ROWS 10
    AS $$SELECT (place - 1)::text, value FROM json_array_elements_text($1::json) WITH ORDINALITY AS each(value, place)$$;

-- Sets one member of an object to a number or to null; the others stay as they are written.
CREATE OR REPLACE FUNCTION graphmem.json_set(text, text, bigint) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN $1 IS NOT NULL THEN
        '{' || string_agg(to_json(key)::text || ':' || value, ',' ORDER BY place) || '}' END
    FROM (SELECT key, CASE WHEN key = right($2, -2) THEN COALESCE($3::text, 'null') ELSE value::text END AS value, place
          FROM pg_catalog.json_each($1::json) WITH ORDINALITY AS each(key, value, place)
          UNION ALL
          SELECT right($2, -2), COALESCE($3::text, 'null'), NULL
          WHERE right($2, -2) NOT IN (SELECT json_object_keys($1::json))) members
    $$;
CREATE OR REPLACE FUNCTION graphmem.json_valid(text) RETURNS boolean LANGUAGE plpgsql IMMUTABLE STRICT AS $$
BEGIN
    PERFORM $1::json;
    RETURN TRUE;
EXCEPTION WHEN data_exception THEN
    RETURN FALSE;
END $$;

CREATE OR REPLACE FUNCTION graphmem.joined(text, text, text) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS 'SELECT CASE WHEN $1 IS NULL THEN $2 WHEN $2 IS NULL THEN $1 ELSE $1 || $3 || $2 END';
CREATE OR REPLACE AGGREGATE graphmem.group_concat(text, text) (SFUNC = graphmem.joined, STYPE = text);

-- The tokens of a passage. A lexeme has at most 2046 bytes, all of a row together at most a megabyte: the end of a very
-- long word, and words of a passage of megabytes, are not looked up.
CREATE OR REPLACE FUNCTION graphmem.words_of(title text, labels text, body text) RETURNS tsvector
    LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN octet_length(title) + octet_length(labels) + octet_length(body) <= 2046 THEN
        array_to_tsvector(array_remove(string_to_array(title || labels || body, ' '), ''))
    ELSE
        array_to_tsvector(ARRAY(
            SELECT DISTINCT left(word, 511) FROM unnest(string_to_array(title || labels || body, ' ')) word
            WHERE word <> '' LIMIT 20000))
    END $$;

-- A scope is known as soon as a table has a row of it; the argument is the column of the time.
CREATE OR REPLACE FUNCTION graphmem.note_scope() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO scopes(key, kind, filled, created_at) VALUES (
        NEW.scope,
        CASE WHEN starts_with(NEW.scope, 'project:') THEN 'project'
             WHEN starts_with(NEW.scope, 'session:') THEN 'session' ELSE 'named' END,
        1, to_jsonb(NEW) ->> TG_ARGV[0])
    ON CONFLICT (key) DO UPDATE SET filled = 1 WHERE scopes.filled = 0;
    RETURN NULL;
END $$;

-- A sync reads no note that nobody changed.
CREATE OR REPLACE FUNCTION graphmem.page_changed() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    note bigint;
BEGIN
    IF TG_TABLE_NAME = 'notes' THEN note := NEW.id;
    ELSIF TG_OP = 'DELETE' THEN note := OLD.note_id;
    ELSE note := NEW.note_id;
    END IF;
    UPDATE tree_files SET changes = changes + 1 WHERE note_id = note;
    RETURN NULL;
END $$;
CREATE OR REPLACE FUNCTION graphmem.page_gone() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE tree_files SET changes = changes + 1, path = '', conflict = 0 WHERE note_id = OLD.id;
    RETURN NULL;
END $$;
