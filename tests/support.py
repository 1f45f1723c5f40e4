"""Looking at files from outside, and acts of other users and processes."""

import ast
import contextlib
import http.server
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import zlib
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from graphmem import GraphmemError, Memory
from graphmem.core.tokens import tokens_of

NOBODY = 65534


def names_for_types(module):
    """Return what a module imports only for who checks types, by name."""
    names = {}
    for node in ast.parse(Path(module.__file__).read_text("utf-8")).body:
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            exec("\n".join(map(ast.unparse, node.body)), names)  # noqa: S102
    names.pop("__builtins__", None)
    return names


def leave_settings(monkeypatch):
    """Leave nothing in the environment of what whoever runs the tests has set for a memory or its hosts."""
    for name in [name for name in os.environ if name.startswith(("GRAPHMEM_", "XDG_", "CLAUDE_"))]:
        monkeypatch.delenv(name)


def node_package(package):
    """Return the folder in which npm has put a package, such as 'name' or 'name@1.2'; skip the test where it cannot."""
    if shutil.which("node") is None or shutil.which("npm") is None:
        pytest.skip("no node here")
    base = Path(os.environ.get("GRAPHMEM_NODE_MODULES", Path(tempfile.gettempdir(), f"graphmem-node-{os.getuid()}")))
    folder = base / package.replace("/", "-")
    name = package if package.rfind("@") <= 0 else package[: package.rfind("@")]
    if not (folder / "node_modules" / name).is_dir():
        base.mkdir(mode=0o700, exist_ok=True)
        folder.mkdir(exist_ok=True)
        install = ["npm", "install", "--silent", "--prefix", str(folder), package]
        try:
            subprocess.run(install, check=True, capture_output=True, timeout=180)
        except (subprocess.SubprocessError, OSError) as error:
            pytest.skip(f"{package} cannot be installed: {error}")
    return folder / "node_modules" / name


def connecting(kind):
    """What connects like sqlite3.connect, by connections that are of a kind as well as of the store's own."""
    connect = sqlite3.connect

    def connect_both(*arguments, factory=sqlite3.Connection, **named):
        kinds = (kind,) if factory is sqlite3.Connection else (kind, factory)
        return connect(*arguments, factory=type(kind.__name__, kinds, {}), **named)

    return connect_both


def examples(number):
    """How many examples a long property is tried with: all in the slow tests, else a quarter.

    On PostgreSQL, where each takes ten times as long, a tenth.
    """
    if os.environ.get("GRAPHMEM_TEST_STORE") == "postgres":
        return number // 10
    return number if os.environ.get("GRAPHMEM_TEST_EXAMPLES") == "all" else number // 4


def _on_postgres(path):
    """Return the module that knows the tenant that stands for a file, None for a file that is one."""
    known = sys.modules.get("postgres_store")
    return known if known and known.stands_for(path) else None


def sql(path, statement, *parameters):
    """Run one statement on a connection of its own."""
    if there := _on_postgres(path):
        return there.sql(path, statement, parameters)
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        return connection.execute(statement, parameters).fetchall()


@contextlib.contextmanager
def planting(path):
    """Yield what writes into the tables of a memory, as a foreign program would."""
    with contextlib.ExitStack() as stack:
        if there := _on_postgres(path):
            yield stack.enter_context(there.planting(path))
        else:
            connection = stack.enter_context(contextlib.closing(sqlite3.connect(path)))
            yield stack.enter_context(connection)


def plant(path, *statements):
    """Run statements as a foreign program would, whose foreign keys are off; return the rows of the last one."""
    if there := _on_postgres(path):
        return there.plant(path, statements)
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        return [connection.execute(statement).fetchall() for statement in statements][-1]


def place_of(path):
    """Return where another process finds the memory that a file of a test is."""
    there = _on_postgres(path)
    return there.address(there.tenant_of(path)) if there else str(path)


def sql_unchecked(path, statement, *parameters):
    """Run one statement as `sql` does, where no key looks at what it leads to, as SQLite's never do there."""
    if there := _on_postgres(path):
        return there.sql(path, statement, parameters, checked=False)
    return sql(path, statement, *parameters)


def traces_of(path, word):
    """Return where a word still stands: in a file and what lies beside it, or in the rows of a tenant."""
    there = _on_postgres(path)
    if there:
        return tuple(line for line in there.dump(path) if word in line)
    return Memory.verify_forgotten(path, word, copied=False).found


def refuse(path, act, when="TRUE"):
    """Let an act such as 'INSERT ON notes' fail from now on for the rows NEW that meet a condition."""
    there = _on_postgres(path)
    name = act.lower().replace(" ", "_")
    does = there.refusal(path) if there else "BEGIN SELECT RAISE(ABORT, 'full'); END"
    row = "FOR EACH ROW" if there else ""
    sql(path, f"CREATE TRIGGER {name}_fails BEFORE {act} {row} WHEN ({when}) {does}")


def relent(path, act):
    """Take a refusal back."""
    name = act.lower().replace(" ", "_")
    sql(path, f"DROP TRIGGER {name}_fails" + (f" ON {act.split()[-1]}" if _on_postgres(path) else ""))


def orphans(path):
    """The rows that point at one that is gone."""
    if there := _on_postgres(path):
        return there.orphans(path)
    return sql(path, "PRAGMA foreign_key_check")


def dump(path):
    """Everything the file holds, as SQL."""
    if there := _on_postgres(path):
        return there.dump(path)
    with contextlib.closing(sqlite3.connect(path)) as connection:
        return list(connection.iterdump())


# What is made anew from the rest, and who is just at work.
DERIVED = {"counters", "leases", "text_sizes", "vectors", "_sqlite_migrations"}


def rows_of(path):
    """The rows of each table that is not derived, with what SQLite knows of numbers; no payload file is looked at."""
    if there := _on_postgres(path):
        found = there.rows_of(path)
    else:
        with contextlib.closing(sqlite3.connect(path)) as connection:
            names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
            names = [name for name in names if not name.startswith("text_")]
            found = {name: sorted(connection.execute(f"SELECT * FROM {name}"), key=repr) for name in names}
    kept = {name: rows for name, rows in found.items() if name not in DERIVED}
    return kept | {"sqlite_sequence": [row for row in kept["sqlite_sequence"] if row[0] not in DERIVED]}


def assert_comes_back_whole(memory, path, clock):
    """What is exported and imported again is the same, row by row and in the text index."""
    with tempfile.TemporaryDirectory() as folder:
        file, other = Path(folder, "all.jsonl"), Path(folder, "other.db")
        memory.export_to("jsonl", file)
        with Memory.open(other, clock=clock) as copy:
            copy.import_from("jsonl", file)
        assert rows_of(other) == rows_of(path)
        assert text_index_of(other) == text_index_of(path)


def plans_of(memory, act):
    """The query plans of what an act asks while it reads."""
    with memory._store.read() as tx:
        return _plans_on(tx, act)


def plans_of_writing(memory, act):
    """The query plans of what an act does while it writes, without what FTS5 does of its own."""
    return _plans_on(memory._store._writer, act)


def _plans_on(connection, act):
    seen = []
    connection.set_trace_callback(seen.append)
    act()
    connection.set_trace_callback(None)
    own = [one for one in seen if not one.startswith(("--", "BEGIN", "COMMIT"))]
    return [[row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {one}")] for one in own]


def refusal(act):
    """Return class and message of an error, None when there is none."""
    try:
        act()
    except (GraphmemError, sqlite3.Error, OSError, ValueError) as error:
        return type(error).__name__, str(error)
    return None


def unprivileged(act):
    """Return what an act returns, or class and message of its error, in a child process that is not root."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            if os.getuid() == 0:
                os.setgroups([])
                os.setgid(NOBODY)
                os.setuid(NOBODY)
            told = []
            error = refusal(lambda: told.append(act()))
            os.write(writing, json.dumps(error or told[0]).encode())
            os._exit(0)
        finally:
            os._exit(1)
    os.close(writing)
    with os.fdopen(reading, "rb") as answer:
        told = answer.read()
    assert os.waitpid(child, 0)[1] == 0, "the child failed"
    return json.loads(told)


def assert_one_line_naming(path, message):
    assert str(path) in message
    assert "\n" not in message


@contextlib.contextmanager
def another_process(path, *statements):
    """A process with a connection of its own that has run some SQL and holds on; yields a function that ends it."""
    script = """if True:
        import json, sqlite3, sys
        connection = sqlite3.connect(sys.argv[1], isolation_level=None)
        for statement in json.loads(sys.argv[2]):
            connection.execute(statement)
        print("ready", flush=True)
        sys.stdin.read()
        connection.close()"""
    command = [sys.executable, "-c", script, str(path), json.dumps(statements)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "ready\n"

        def end():
            process.stdin.close()
            assert process.wait() == 0

        yield end
        end()


def text_index_of(path):
    """What the text index holds, and what it counts."""
    rows = sql(path, "SELECT rowid, title, labels, body FROM text_index ORDER BY rowid")
    return rows, sql(path, "SELECT kind, texts, tokens FROM text_sizes WHERE texts > 0 ORDER BY kind")


# Words that mean the same to the embedder of these tests, and to nothing else.
SYNONYMS = {"automobile": "car", "vehicle": "car", "purchased": "bought"}
SAME = {tokens_of(word)[0]: tokens_of(same)[0] for word, same in SYNONYMS.items()}


class HashEmbedder:
    """Sums a random direction for each token; synonyms have one direction."""

    dimensions = 64

    def __init__(self, fingerprint="hash 1"):
        self.fingerprint = fingerprint
        self.calls = []

    def embed(self, texts):
        self.calls.append(list(texts))
        return [self.vector(text) for text in texts]

    def vector(self, text):
        vector = np.zeros(self.dimensions)
        for token in sorted(set(tokens_of(text))):
            meant = SAME.get(token, token)
            vector += np.random.default_rng(zlib.crc32(meant.encode())).standard_normal(self.dimensions)
        return vector


class Served(NamedTuple):
    """What a server gives. delay: seconds before it, drip: between its bytes. raw: all of it, with its own head."""

    body: bytes = b""
    status: int = 200
    delay: float = 0.0
    drip: float = 0.0
    headers: tuple = ()
    raw: bytes | None = None


class Asked(NamedTuple):
    path: str
    authorization: str | None
    body: dict


def answer_of(content, **more):
    """An answer of a model; what more there is of it stands where endpoints have it."""
    usage = {"usage": more.pop("usage")} if "usage" in more else {}
    return json.dumps({"choices": [{"message": {"content": content}, **more}], **usage}).encode()


@contextlib.contextmanager
def model_server(*served):
    """A server on this machine that gives one answer after another, the last for ever; its address and what it got."""
    asked = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            asked.append(Asked(self.path, self.headers["Authorization"], json.loads(body)))
            answer = served[min(len(asked), len(served)) - 1]
            time.sleep(answer.delay)
            with contextlib.suppress(OSError):
                if answer.raw is None:
                    self.send_response(answer.status)
                    for name, value in answer.headers:
                        self.send_header(name, value)
                    self.end_headers()
                said = answer.body if answer.raw is None else answer.raw
                if not answer.drip:
                    self.wfile.write(said)
                    return
                for byte in said:
                    self.wfile.write(bytes([byte]))
                    time.sleep(answer.drip)

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/v1", asked
        finally:
            server.shutdown()


KILLED = """
import datetime as dt, importlib, os, sys
from graphmem import Memory
from graphmem.records import jobs

path, moment, reply, settling, verb, *arguments = sys.argv[1:]

def writer(task):
    if moment == "asked":
        os._exit(9)
    return reply

def dies(*_):
    os._exit(9)

if moment == "answered":
    importlib.import_module(settling).settle = dies
if moment == "settled":
    jobs.finish = dies
clock = lambda: dt.datetime(2026, 9, 7, 8, tzinfo=dt.UTC)
with Memory.open(path, clock=clock, writer=writer) as memory:
    getattr(memory, verb)(*arguments)
"""


def die_at(moment, path, reply, settling, verb, *arguments):
    """Let a process work on a job of a writer until it ends: when it asks, when it has the answer, when it settles."""
    command = [sys.executable, "-c", KILLED, place_of(path), moment, reply, settling, verb, *arguments]
    assert subprocess.run(command, check=False).returncode == 9
