"""enter, writers and tenants with --store postgres: a server instead of a file."""

import contextlib
import os
import random
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import psycopg

from benchmarks.measure import SCRIPTS, Finding, Must, Row, in_blocks, median, microseconds, ratio, say, summary
from benchmarks.seeds import AT, SEED, feature_rows, scene_rows, situation
from benchmarks.writers import PROCESSES, ROUNDS, crowd, enter_in_turn, enter_turns, middle
from graphmem import Memory, Situation, Triple
from graphmem.store.postgres.address import parsed, role_of, schema_of
from graphmem.store.postgres.connecting import Connection, connect
from graphmem.store.postings import FOR_ALL, beside_channel, of_party

TURNS = 2000
_TOUCHED = (1, 100, 1000)  # tenants on one connection
_TENANT = (
    "SELECT set_config('role', $1, true), set_config('search_path', $2, true), set_config('lock_timeout', $3, true)"
)
_LOCK = "UPDATE store_state SET revision = revision + 1, writers = left($1 || writers, 512)"
_TELL = "SELECT pg_notify($1, '') FROM store_state WHERE watched_until > clock_timestamp()"
_FIND = """SELECT s.id, s.key, s.strength, s.visits, f.feature, f.mass
           FROM scene_features p JOIN scenes s ON s.id = p.scene_id JOIN scene_features f ON f.scene_id = s.id
           WHERE p.feature = $1 AND p.posted BETWEEN 0 AND $2 AND s.origin = 'emergent' AND s.visits > 0"""
_VISIT = """UPDATE scenes SET strength = strength + 1, visits = visits + 1, updated_at = greatest(updated_at, $1)
            WHERE id = $2"""
_FEEL = """UPDATE scene_features SET weight = greatest(weight, $1), mass = mass + $1, touched = $2
           WHERE scene_id = $3 AND feature = $4"""
_ADD = "INSERT INTO scene_features(scene_id, feature, weight, mass, touched, posted) VALUES ($1, $2, $3, $3, $4, $5)"


# ---- a server


@contextlib.contextmanager
def served() -> Iterator[str]:
    """Yield the URL of GRAPHMEM_POSTGRES, or else of a throw-away server that keeps what it commits."""
    if url := os.environ.get("GRAPHMEM_POSTGRES"):
        yield url
        return
    with tempfile.TemporaryDirectory() as temporary:
        Path(temporary).chmod(0o711)
        folder = f"{temporary}/server"
        script = SCRIPTS / "postgres"
        environment = {**os.environ, "GRAPHMEM_POSTGRES_DURABLE": "1"}
        started = subprocess.run(
            [script, "start", folder], env=environment, stdout=subprocess.PIPE, text=True, check=True
        )
        try:
            yield started.stdout.strip()
        finally:
            subprocess.run([script, "stop", folder], check=True)


def unsynced(url: str) -> str:
    """Return the URL by which the server answers a commit before the disk has it: what all else takes."""
    return f"{url}{'&' if '?' in url else '?'}options=-csynchronous_commit%3Doff"


def tenant_of(url: str, name: str) -> str:
    """Return the address of a tenant."""
    return f"{url}{'&' if '?' in url else '?'}tenant={name}"


def settings(url: str) -> str:
    """Return what the figures depend on, besides the machine."""
    names = ("server_version", "fsync", "synchronous_commit", "shared_buffers")
    with psycopg.connect(url) as connection:
        told = [f"{name} {connection.execute(f'SHOW {name}').fetchone()[0]}" for name in names]  # type: ignore[index]
    return f"PostgreSQL on loopback: {', '.join(told)}; psycopg {psycopg.__version__} ({psycopg.pq.__impl__})"


@contextlib.contextmanager
def tenant(url: str, name: str, scenes: int) -> Iterator[str]:
    """Yield the address of a tenant of grown scenes, gone at the end."""
    from graphmem.store.postgres import tenants

    address = tenant_of(url, name)
    Memory.open(address).close()
    try:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(f'SET search_path = "{parsed(address).schema}"')
            for columns, rows in (
                ("scenes(id, key, strength, visits, origin, created_at, updated_at)", scene_rows(scenes)),
                ("scene_features(scene_id, feature, weight, mass, touched, posted)", feature_rows(scenes)),
            ):
                with connection.cursor() as cursor, cursor.copy(f"COPY {columns} FROM STDIN") as copy:
                    for row in rows:
                        copy.write_row(row)
            connection.execute("SELECT setval(pg_get_serial_sequence('scenes', 'id'), %s)", (max(scenes, 1),))
            connection.execute("ANALYZE scenes, scene_features")
        yield address
    finally:
        with psycopg.connect(url, autocommit=True, cursor_factory=psycopg.RawCursor) as connection:
            tenants.remove(connection, parsed(address))


# ---- enter


class Bare:
    """A bare pipeline that issues the statements of one join and no more, in two round trips."""

    def __init__(self, address: str) -> None:
        told = parsed(address)
        self.connection = connect(told.server, 5)
        role = role_of(self.connection.info.dbname, told.schema)
        self._tenant = role, f'"{told.schema}", graphmem', "5000"
        self._channel = told.schema

    def join(self, scene_id: int, here: Situation) -> None:
        execute = self.connection.execute
        led_by = next(iter(here.peers or here.channels))
        execute("BEGIN")
        execute(_TENANT, self._tenant)
        execute(_LOCK, ("0123456789abcdef",))
        found = execute(_FIND, (led_by, of_party(1, channels=True) if here.peers else FOR_ALL))
        self.connection.settle()
        rows = found.fetchall()
        visit = next(visits for found_id, _, _, visits, *_ in rows if found_id == scene_id) + 1
        known = {feature for found_id, *_, feature, _ in rows if found_id == scene_id}
        execute(_VISIT, (AT, scene_id))
        with self.connection.cursor() as cursor:
            cursor.executemany(
                _FEEL, [(w, visit, scene_id, feature) for feature, w in here.weights.items() if feature in known]
            )
        posted = None if here.peers else beside_channel(here.weights[min(here.channels)])
        fresh = [(scene_id, feature, w, visit, posted) for feature, w in here.weights.items() if feature not in known]
        if fresh:
            with self.connection.cursor() as cursor:
                cursor.executemany(_ADD, fresh)
        execute(_TELL, (self._channel,))
        execute("COMMIT")
        self.connection.settle()

    def commit(self) -> None:
        """Change one row and wait until that is kept: what the disk takes of every write."""
        execute = self.connection.execute
        execute("BEGIN")
        execute(_TENANT, self._tenant)
        execute(_LOCK, ("0123456789abcdef",))
        execute("COMMIT")
        self.connection.settle()

    def ask(self) -> None:
        """Wait for the least that a server can answer."""
        self.connection.execute("SELECT 1")
        self.connection.settle()


@contextlib.contextmanager
def counted() -> Iterator[list[int]]:
    """Yield a list of one number: how often a connection waited for its server."""
    waits = [0]
    settle = Connection.settle

    def counting(self: Connection) -> None:
        waits[0] += 1
        settle(self)

    Connection.settle = counting  # type: ignore[method-assign]
    try:
        yield waits
    finally:
        Connection.settle = settle  # type: ignore[method-assign]


def _enter_at(url: str, scenes: int, turns: int, synced: str) -> tuple[Row, list[Must]]:
    rng = random.Random(SEED + 1)
    say(f"enter: filling {scenes} scenes")
    with tenant(url, f"enter{scenes}", scenes) as address, Memory.open(address) as memory:
        bare = Bare(address)
        say(f"enter: at {scenes} scenes, commits wait for the disk: {synced}")

        def entering() -> Callable[[], object]:
            here = situation(rng, rng.randrange(scenes))
            return lambda: memory.enter_scene(here)

        def floor() -> Callable[[], object]:
            i = rng.randrange(scenes)
            here = situation(rng, i)
            return lambda: bare.join(i + 1, here)

        works = {"enter": entering, "floor": floor, "commit": lambda: bare.commit, "ask": lambda: bare.ask}
        times = in_blocks(works, measured=turns)
        with counted() as waits:
            trips = []
            for _ in range(min(turns, 200)):
                before = waits[0]
                entering()()
                trips.append(waits[0] - before)
        bare.connection.close()
    row: Row = {
        "scenes": scenes,
        "synced": synced,
        **summary(times["enter"]),
        "floor_us": median(times["floor"]),
        "floor_p99_us": summary(times["floor"])["p99_us"],
        "to_floor": ratio(times["enter"], times["floor"]),
        "commit_us": median(times["commit"]),
        "ask_us": median(times["ask"]),
        "round_trips": median(trips),
        "most_round_trips": max(trips),
    }
    at = f"enter at {scenes} scenes" + ("" if synced == "yes" else ", unsynced")
    return row, [
        Must(f"{at}, times a bare pipeline", float(row["to_floor"]), 2.0, to_floor=True),
        Must(f"{at}, round trips of a turn", float(row["round_trips"]), 2),
    ]


def run_enter(sizes: Sequence[int], turns: int) -> Finding:
    """Measure one enter_scene that joins, and the bare pipeline of its statements, in alternating blocks."""
    finding = Finding()
    with served() as url:
        finding.notes.append(settings(url))
        for scenes in sizes:
            for synced, address in (("yes", url), ("no", unsynced(url))):
                row, musts = _enter_at(address, scenes, turns, synced)
                finding.rows.append(row)
                finding.musts += musts
    finding.notes.append(
        "synced: whether a commit waits for the disk, where the server is so set; commit: one row changed and kept, in "
        "one round trip; ask: SELECT 1"
    )
    finding.growth_of("enter", "scenes", "median_us", 0.1, synced="no")
    finding.growth_of("floor", "scenes", "floor_us", is_floor=True, synced="no")
    return finding


# ---- writers


def enter_bare(address: str, seed: int, turns: int, scenes: int) -> Row:
    """Enter turns by the bare pipeline alone."""
    bare = Bare(address)

    def ready(i: int) -> Callable[[], object]:
        here = situation(random.Random(f"{seed} {i}"), i)
        return lambda: bare.join(i + 1, here)

    return enter_in_turn(ready, seed, turns, scenes)


def server_seconds(url: str) -> float:
    """Return the processor time of a server on this machine, with all that worked for it."""
    with psycopg.connect(url) as connection:
        backend = connection.info.backend_pid
        postmaster = int(_stat(backend)[1])
        own = _stat(postmaster)
        ticks = sum(
            int(own[place]) for place in (11, 12, 13, 14)
        )  # user and system, of its own and of those that ended
        for folder in Path("/proc").iterdir():
            if folder.name.isdigit():
                with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                    one = _stat(int(folder.name))
                    ticks += sum(int(one[place]) for place in (11, 12)) if int(one[1]) == postmaster else 0
    return ticks / os.sysconf("SC_CLK_TCK")


def _stat(process: int) -> list[str]:
    """Return what Linux tells of a process, from its state on."""
    return Path(f"/proc/{process}/stat").read_text("utf-8").rpartition(")")[2].split()


def run_writers(sizes: Sequence[int], turns: int) -> Finding:
    """Measure how many turns a second one process enters on one tenant, and eight on eight; and so bare pipelines."""
    finding = Finding()
    with served() as url:
        finding.notes.append(settings(url))
        for scenes in sizes:
            for synced, address in (("yes", url), ("no", unsynced(url))):
                _writers_at(finding, address, scenes, turns, synced)
    finding.notes += [
        f"busy: processors kept busy by clients and server, of {os.cpu_count()}; what is left waits for disk and wire, "
        "or for other work of the machine",
        "client_us, server_us: processor time of a turn",
    ]
    return finding


def _writers_at(finding: Finding, url: str, scenes: int, turns: int, synced: str) -> None:
    seen: dict[tuple[str, int], list[Row]] = {}
    rounds = min(ROUNDS, turns)
    with contextlib.ExitStack() as filled:
        say(f"writers: filling {PROCESSES} tenants of {scenes} scenes")
        places = [filled.enter_context(tenant(url, f"writer{n}", scenes)) for n in range(PROCESSES)]
        for number in range(rounds):
            say(f"writers: round {number + 1} of {rounds}")
            for who, act in (("graphmem", enter_turns), ("floor", enter_bare)):
                for processes in (1, PROCESSES):
                    before = server_seconds(url)
                    told = crowd(act, places[:processes], turns, scenes)
                    told["server_us"] = (server_seconds(url) - before) * 1e6 / float(told["done"])
                    seen.setdefault((who, processes), []).append(told)
    rates = {key: middle(told, "a_second") for key, told in seen.items()}
    for (who, processes), told in seen.items():
        client, server = middle(told, "cpu_us"), middle(told, "server_us")
        row: Row = {
            "who": who,
            "synced": synced,
            "processes": processes,
            "scenes": scenes,
            "turns_a_second": round(rates[who, processes]),
            "times_one": round(rates[who, processes] / rates[who, 1], 2),
            "client_us": round(client),
            "server_us": round(server),
            "busy": round(rates[who, processes] * (client + server) / 1e6, 2),
            "longest_ms": round(middle(told, "longest_ms"), 1),
            "refused": sum(int(one["refused"]) for one in told),
        }
        finding.rows.append(row)
    what = f"{PROCESSES} processes on {PROCESSES} tenants, times the throughput of one"
    what += "" if synced == "yes" else ", unsynced"
    finding.musts.append(Must(what, rates["graphmem", PROCESSES] / rates["graphmem", 1], 1.5, at_most=False))


# ---- tenants


def _disk(connection: psycopg.Connection[tuple[object, ...]]) -> int:
    connection.execute("CHECKPOINT")
    return int(connection.execute("SELECT pg_database_size(current_database())").fetchone()[0])  # type: ignore[index,arg-type]


def _count(connection: psycopg.Connection[tuple[object, ...]], statement: str) -> int:
    return int(connection.execute(statement).fetchone()[0])  # type: ignore[index,arg-type]


_CATALOGUES = (
    "pg_class",
    "pg_attribute",
    "pg_index",
    "pg_constraint",
    "pg_trigger",
    "pg_depend",
    "pg_type",
    "pg_sequence",
)


# A table of long values has one beside it, with an index.
_FILES = f"""SELECT COUNT(*) + 2 * COUNT(NULLIF(reltoastrelid, 0)) FROM pg_class
             WHERE relfilenode <> 0 AND relnamespace = to_regnamespace('"{schema_of("many0")}"')"""

_HELD = f"""SELECT SUM(pg_total_relation_size(oid)) FROM pg_class
            WHERE relkind = 'r' AND relnamespace = to_regnamespace('"{schema_of("many0")}"')"""


def turn(memory: Memory, rng: random.Random, n: int) -> None:
    """Enter a scene and commit one fact with its sentence to it."""
    visit = memory.enter_scene(situation(rng, n % 20))
    name = f"person {n % 200}"
    fact = Triple(name, f"likes{n % 7}", f"thing {n}", sentence=f"In turn {n} they said that {name} likes thing {n}.")
    memory.commit([fact], scenes=visit.write_keys)


def run_tenants(sizes: Sequence[int], turns: int) -> Finding:
    """Measure what tenants take: to make, empty, with turns, and to change between on one connection."""
    finding = Finding()
    with served() as url:
        finding.notes.append(settings(url))
        for count in sizes:
            _tenants_at(finding, url, count, turns)
    return finding


def _tenants_at(finding: Finding, url: str, count: int, turns: int) -> None:
    from graphmem.store.postgres import tenants

    addresses = [tenant_of(url, f"many{n}") for n in range(count)]
    rng = random.Random(SEED)
    with psycopg.connect(url, autocommit=True) as looking:
        Memory.open(tenant_of(url, "first")).close()  # makes what all share
        rows_before = {name: _count(looking, f"SELECT COUNT(*) FROM {name}") for name in _CATALOGUES}
        disk = _disk(looking)
        say(f"tenants: making {count}")
        made = [microseconds(lambda address=address: Memory.open(address).close()) for address in addresses]
        again = [microseconds(lambda address=address: Memory.open(address).close()) for address in addresses]
        empty = (_disk(looking) - disk) / count
        rows = {
            name: round((_count(looking, f"SELECT COUNT(*) FROM {name}") - rows_before[name]) / count, 1)
            for name in _CATALOGUES
        }
        files = _count(looking, _FILES)
        say(f"tenants: {turns} turns with facts in one")
        before = _count(looking, _HELD)
        with Memory.open(addresses[0]) as memory:
            for _ in range(3):
                memory.enter_scene(situation(rng, 0))  # there is a scene, however few the turns
            for n in range(turns):
                turn(memory, rng, n)
            full = _count(looking, _HELD) - before
            recalls = [microseconds(lambda n=n: memory.recall_by_situation(situation(rng, n % 20))) for n in range(200)]
            key = memory.scenes(limit=1)[0].key
            by_scene = [microseconds(lambda: memory.recall_by_scene(key)) for _ in range(200)]
            briefs = [microseconds(lambda n=n: memory.brief(situation(rng, n % 20))) for n in range(100)]
        finding.rows.append({
            "tenants": count,
            "make_ms": round(median(made) / 1000, 1),
            "open_ms": round(median(again) / 1000, 2),
            "empty_kib": round(empty / 1024),
            "files": files,
            "catalogue_rows": round(sum(rows.values())),
            "turns": turns,
            "after_turns_kib": round(full / 1024),
            "recall_by_situation_us": median(recalls),
            "recall_by_scene_us": median(by_scene),
            "brief_us": median(briefs),
        })  # fmt: skip
        finding.notes.append(f"rows of the catalogue that a tenant adds: {rows}")
        for touched in dict.fromkeys(min(each, count) for each in _TOUCHED):
            _changes(finding, [tenant_of(unsynced(url), f"many{n}") for n in range(touched)])
        say(f"tenants: removing {count}")
        with psycopg.connect(url, autocommit=True, cursor_factory=psycopg.RawCursor) as connection:
            for address in (tenant_of(url, "first"), *addresses):
                tenants.remove(connection, parsed(address))


def _changes(finding: Finding, addresses: Sequence[str]) -> None:
    """Add what turns take that go round tenants on one connection, and what its server process then holds."""
    from graphmem.store.postgres import connecting

    say(f"tenants: turns that go round {len(addresses)}")
    connecting.close_pools()  # a new server process, which remembers nothing
    with contextlib.ExitStack() as opened:
        memories = [opened.enter_context(Memory.open(address)) for address in addresses]
        here = [situation(random.Random(7), 1)] * len(memories)
        for _ in range(3):
            for memory, one in zip(memories, here, strict=True):
                memory.enter_scene(one)
        rounds = max(1, 300 // len(memories))
        times = [
            microseconds(lambda memory=memory, one=one: memory.enter_scene(one))
            for _ in range(rounds)
            for memory, one in zip(memories, here, strict=True)
        ]
        with memories[0]._store.read() as tx:
            (process,) = tx.execute("SELECT pg_backend_pid()").fetchone()
        held = _private(process)
        finding.rows.append({
            "tenants": len(addresses),
            "on_one_connection_us": median(times),
            "p99_us": summary(times)["p99_us"],
            "server_mib": round(held / 2**20, 1),
        })  # fmt: skip


def _private(process: int) -> int:
    """Return the bytes of memory that a process shares with no other."""
    lines = Path(f"/proc/{process}/smaps_rollup").read_text("ascii").splitlines()
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Private_"))
