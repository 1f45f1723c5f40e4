"""Jobs: what is to be written, by whom, and how far it is. A job outlives the process that began it.

A job keeps its parts (`parts.job_id`) until it is done or failed, so that what is read once is read by one job, and
after a crash by the same one again. Its lease says how long nobody else may take it up.
"""

import contextlib
import functools
import os
import socket
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from graphmem.core.model import Job, StoredPart
from graphmem.core.times import days_before
from graphmem.records import history
from graphmem.records.history import stored_parts
from graphmem.store.lists import in_list, in_parts, of_scopes
from graphmem.store.transaction import Store, Transaction

MOST_FAILURES = 3  # in a row, until a session is left alone; that of opencode-promemory
MOST_ATTEMPTS = 3
_AT_WORK = "('queued', 'asked', 'answered')"
_COLUMNS = """j.id, j.kind, COALESCE(s.name, ''), j.scope, j.cause, j.state, j.attempts,
              (SELECT COUNT(*) FROM parts p WHERE p.job_id = j.id), j.note_id, j.error, j.lease_until, j.created_at,
              j.updated_at"""


class Held(NamedTuple):
    """A job at work, as the process sees it that wants to take it up."""

    id: int
    state: str
    owner: str
    lease_until: str
    attempts: int
    reply: str


# The owners of this process that are at work.
_HERE: set[str] = set()


@functools.cache
def _machine() -> str:
    """Return what tells this machine, and the processes that it can see, from others."""
    told = [socket.gethostname()]
    with contextlib.suppress(OSError):  # Linux tells more
        told.append(Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip())
        told.append(str(Path("/proc/self/ns/pid").readlink()))
    return "|".join(told)


@contextlib.contextmanager
def owning() -> Iterator[str]:
    """Yield the name of an owner of jobs: machine, process and a token of its own, so that others see it go."""
    owner = f"{_machine()}/{os.getpid()}/{os.urandom(8).hex()}"
    _HERE.add(owner)
    try:
        yield owner
    finally:
        _HERE.discard(owner)


def is_gone(owner: str) -> bool:
    """Tell whether an owner is no longer at work: a call of this process, or a process of this machine, that ended.

    For others nobody can tell.
    """
    machine, _, process = owner.rpartition("/")[0].rpartition("/")
    # On Windows signal 0 is Ctrl-C.
    if machine != _machine() or not process.isdigit() or sys.platform == "win32":
        return False
    if int(process) == os.getpid():
        return owner not in _HERE
    try:
        os.kill(int(process), 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False


def at_work(tx: Transaction, kind: str, scope: str, session_id: int | None) -> Held | None:
    """Return the job of a kind that is at work on a session, or on a scope."""
    of_whom = "session_id IS NULL AND scope = ?" if session_id is None else "session_id = ?"
    row = tx.execute(
        f"""SELECT id, state, owner, COALESCE(lease_until, ''), attempts, COALESCE(reply, '') FROM jobs
            WHERE kind = ? AND {of_whom} AND state IN {_AT_WORK}""",
        (kind, scope if session_id is None else session_id),
    ).fetchone()
    return None if row is None else Held(*row)


def is_taken(held: Held, at: str) -> bool:
    """Tell whether somebody is at work on a job and may be for a while."""
    return held.state == "asked" and held.lease_until > at and not is_gone(held.owner)


def take_up(tx: Transaction, kind: str, scope: str, session_id: int | None, at: str) -> tuple[Held | None, bool]:
    """Return the job that is at work on a session, or on a scope, and whether it is that of another who is still at it.

    One that ended too many processes before it was done is given up.
    """
    held = at_work(tx, kind, scope, session_id)
    if held is None or is_taken(held, at):
        return held, held is not None
    if held.state != "answered" and held.attempts >= MOST_ATTEMPTS:
        fail(tx, held.id, f"left by {held.attempts} processes before it was done", at)
        return None, False
    return held, False


def queue(tx: Transaction, kind: str, scope: str, session_id: int | None, cause: str, at: str) -> int:
    """Put a job into the queue and return its number."""
    (job_id,) = tx.execute(
        """INSERT INTO jobs(kind, session_id, scope, cause, state, created_at, updated_at)
           VALUES (?, ?, ?, ?, 'queued', ?, ?) RETURNING id""",
        (kind, session_id, scope, cause, at, at),
    ).fetchone()
    number: int = job_id
    return number


def ask(tx: Transaction, job_id: int, owner: str, lease_until: str, at: str) -> None:
    """Note that an owner asks a writer until a time at most."""
    tx.execute(
        """UPDATE jobs SET state = 'asked', owner = ?, lease_until = ?, attempts = attempts + 1, error = '',
                           updated_at = ?
           WHERE id = ?""",
        (owner, lease_until, at, job_id),
    )


def answer(tx: Transaction, job_id: int, owner: str, reply: str, at: str) -> bool:
    """Keep a reply until it is settled; tell whether the job was still that of its owner."""
    kept = tx.execute(
        """UPDATE jobs SET state = 'answered', reply = ?, updated_at = ?
           WHERE id = ? AND owner = ? AND state = 'asked'""",
        (reply, at, job_id, owner),
    )
    return kept.rowcount == 1


def count_failure(tx: Transaction, job_id: int, error: str, at: str) -> None:
    """Note that a reply could not be settled. It waits, so that nobody has to be asked again."""
    tx.execute("UPDATE jobs SET error = ?, updated_at = ? WHERE id = ?", (error, at, job_id))
    _count_failure(tx, job_id)


def forgive(tx: Transaction, session_id: int) -> None:
    """Let the failures of a session count no more."""
    tx.execute("UPDATE sessions SET failures = 0 WHERE id = ?", (session_id,))


def _count_failure(tx: Transaction, job_id: int) -> None:
    tx.execute(
        "UPDATE sessions SET failures = failures + 1 WHERE id = (SELECT session_id FROM jobs WHERE id = ?)", (job_id,)
    )


def finish(tx: Transaction, job_id: int, note_id: int | None, at: str) -> None:
    """End a job that did what it was to do. note_id: of the checkpoint that came of it."""
    tx.execute(
        """UPDATE jobs SET state = 'done', reply = NULL, error = '', lease_until = NULL,
                           note_id = COALESCE(?, note_id), updated_at = ?
           WHERE id = ?""",
        (note_id, at, job_id),
    )


def state_of(tx: Transaction, job_id: int) -> tuple[str, str]:
    """Return the state and the owner of a job; 'gone' for one that went with its session."""
    row = tx.execute("SELECT state, owner FROM jobs WHERE id = ?", (job_id,)).fetchone()
    return ("gone", "") if row is None else (row[0], row[1])


def fail(tx: Transaction, job_id: int, error: str, at: str) -> None:
    """End a job that did not; what it read is free to be read again, and the failure counts."""
    tx.execute(
        """UPDATE jobs SET state = 'failed', reply = NULL, error = ?, lease_until = NULL, updated_at = ?
           WHERE id = ?""",
        (error, at, job_id),
    )
    tx.execute("UPDATE parts SET job_id = NULL WHERE job_id = ?", (job_id,))
    _count_failure(tx, job_id)


def put_back(tx: Transaction, job_id: int, error: str, at: str) -> None:
    """Put a job that could not be done for no fault of its own back into the queue."""
    tx.execute(
        """UPDATE jobs SET state = 'queued', owner = '', lease_until = NULL, attempts = attempts - 1, error = ?,
                           updated_at = ?
           WHERE id = ?""",
        (error, at, job_id),
    )
    tx.execute("UPDATE parts SET job_id = NULL WHERE job_id = ?", (job_id,))


def release(tx: Transaction, session_ids: Iterable[int]) -> None:
    """Drop what is at work on sessions that go; their parts were read by nobody."""
    for ids, marks in in_parts(list(session_ids)):
        at_work = f"SELECT id FROM jobs WHERE session_id IN ({marks}) AND state IN {_AT_WORK}"
        tx.execute(f"UPDATE parts SET job_id = NULL WHERE job_id IN ({at_work})", ids)
        tx.execute(f"DELETE FROM jobs WHERE id IN ({at_work})", ids)


def delete_session(tx: Transaction, name: str) -> int:
    """Remove a session with its parts and what is at work on it; return how many parts there were."""
    release(tx, [history.require_session(tx, name).id])
    return history.delete_session(tx, name)


# ---- what jobs read


def undigested(tx: Transaction, session_id: int, size: int) -> list[StoredPart]:
    """Return parts of a session that no job has read, in order: whole messages, of so many bytes together or more."""
    found: list[StoredPart] = []
    for part in stored_parts(tx, "p.session_id = ? AND p.job_id IS NULL ORDER BY p.seq", (session_id,)):
        if size <= 0 and not (part.message and part.message == found[-1].message):
            break
        found.append(part)
        size -= len(part.text.encode())
    return found


def count_undigested(tx: Transaction, session_id: int) -> int:
    """Return how many parts of a session no job has read."""
    (count,) = tx.execute(
        "SELECT COUNT(*) FROM parts WHERE session_id = ? AND job_id IS NULL", (session_id,)
    ).fetchone()
    return int(count)


# What a user said and no job has read; in a session without roles, what anybody said.
_TURNS = """SELECT CASE COUNT(*) FILTER (WHERE p.role <> '') WHEN 0 THEN COUNT(*)
                   ELSE COUNT(*) FILTER (WHERE p.role = 'user') END
            FROM parts p WHERE p.session_id = s.id AND p.job_id IS NULL"""


def count_turns(tx: Transaction, session_id: int) -> int:
    """Return how many turns of a session no job has read: parts of the user, without any roles all."""
    (count,) = tx.execute(f"SELECT ({_TURNS}) FROM sessions s WHERE s.id = ?", (session_id,)).fetchone()
    return int(count)


def parts_of(tx: Transaction, job_id: int) -> list[StoredPart]:
    """Return the parts that a job reads or has read, in order."""
    return list(stored_parts(tx, "p.job_id = ? ORDER BY p.seq", (job_id,)))


def take_parts(tx: Transaction, job_id: int, part_ids: Sequence[int]) -> None:
    """Give parts to a job, and none besides."""
    tx.execute("UPDATE parts SET job_id = NULL WHERE job_id = ?", (job_id,))
    tx.executemany("UPDATE parts SET job_id = ? WHERE id = ?", [(job_id, part_id) for part_id in part_ids])


def idle_sessions(tx: Transaction, before: str, least: int) -> list[str]:
    """Return the sessions in which nothing was said since a time and at least so many turns are not digested yet.

    A turn is a part of the user or, in a session without roles, any part.
    """
    rows = tx.execute(
        f"""SELECT s.name FROM sessions s
           WHERE s.own = 0 AND s.failures < ? AND s.parts > 0
               AND (SELECT COALESCE(p.at, p.recorded_at) FROM parts p WHERE p.session_id = s.id
                    ORDER BY p.seq DESC LIMIT 1) <= ?
               AND ({_TURNS}) >= ?
           ORDER BY s.id""",
        (MOST_FAILURES, before, max(least, 1)),
    )
    return [name for (name,) in rows]


def waiting(tx: Transaction, kind: str, at: str) -> dict[str, str]:
    """Return the sessions with a job that is queued, or whose owner has left it, and the cause of each."""
    rows = tx.execute(
        f"""SELECT s.name, j.cause, j.id, j.state, j.owner, COALESCE(j.lease_until, ''), j.attempts,
                   COALESCE(j.reply, '')
            FROM jobs j JOIN sessions s ON s.id = j.session_id
            WHERE j.kind = ? AND j.state IN {_AT_WORK} AND s.failures < ? ORDER BY j.id""",
        (kind, MOST_FAILURES),
    )
    return {name: cause for name, cause, *job in rows if not is_taken(Held(*job), at)}


def list_jobs(
    tx: Transaction, *, session: str, states: Sequence[str], scopes: Sequence[str] | None, limit: int
) -> tuple[Job, ...]:
    """Return jobs, the latest first. session: '' for all. states: all when empty."""
    within, parameters = of_scopes(scopes, column="j.scope")
    if session:
        within, parameters = f"{within} AND s.name = ?", [*parameters, session]
    if states:
        marks, wanted = in_list(states)
        within, parameters = f"{within} AND j.state IN ({marks})", [*parameters, *wanted]
    rows = tx.execute(
        f"""SELECT {_COLUMNS} FROM jobs j LEFT JOIN sessions s ON s.id = j.session_id
            WHERE TRUE {within} ORDER BY j.id DESC LIMIT ?""",
        (*parameters, limit),
    )
    return tuple(Job(*row) for row in rows)


def failed_since_done(tx: Transaction, kind: str, scope: str) -> int:
    """Return how many jobs of a kind failed for a scope since one was done last."""
    (failed,) = tx.execute(
        """SELECT COUNT(*) FROM jobs WHERE kind = ?1 AND scope = ?2 AND state = 'failed'
               AND id > COALESCE((SELECT MAX(id) FROM jobs WHERE kind = ?1 AND scope = ?2 AND state = 'done'), 0)""",
        (kind, scope),
    ).fetchone()
    return int(failed)


def last_done(tx: Transaction, kind: str, scope: str) -> str | None:
    """Return when a job of a kind was last done for a scope, None for never."""
    (at,) = tx.execute(
        "SELECT MAX(updated_at) FROM jobs WHERE kind = ? AND scope = ? AND state = 'done'", (kind, scope)
    ).fetchone()
    when: str | None = at
    return when


def keep_read(tx: Transaction, job_id: int, note_id: int | None) -> None:
    """Note up to which checkpoint a job on a scope reads; that counts when it is done."""
    tx.execute("UPDATE jobs SET note_id = ? WHERE id = ?", (note_id, job_id))


def last_read(tx: Transaction, kind: str, scope: str) -> int | None:
    """Return the last checkpoint of a scope that a writer has read for a kind of job, None for none."""
    (note_id,) = tx.execute(
        "SELECT MAX(note_id) FROM jobs WHERE kind = ? AND scope = ? AND state = 'done'", (kind, scope)
    ).fetchone()
    last: int | None = note_id
    return last


# When a kind was last done of a scope says when it is due again.
_OLD = """state IN ('done', 'failed') AND updated_at < ?
          AND id NOT IN (SELECT MAX(id) FROM jobs WHERE state = 'done' GROUP BY kind, scope)"""


def count_old(tx: Transaction, at: str, *, days: float) -> int:
    """Return how many jobs ended, and days of writers' use are over, so many days ago that nobody asks for them."""
    limit = days_before(at, days)
    (count,) = tx.execute(
        f"SELECT (SELECT COUNT(*) FROM jobs WHERE {_OLD}) + (SELECT COUNT(*) FROM writer_usage WHERE day < ?)",
        (limit, limit[:10]),
    ).fetchone()
    return int(count)


def drop_old(tx: Transaction, at: str, *, days: float) -> None:
    """Drop the jobs that ended so many days ago, and what writers used on days before."""
    limit = days_before(at, days)
    tx.execute(f"DELETE FROM jobs WHERE {_OLD}", (limit,))
    tx.execute("DELETE FROM writer_usage WHERE day < ?", (limit[:10],))


# ---- what it costs


@dataclass(frozen=True, slots=True)
class Budget:
    """The tokens that writers used, by day, kept in the file for all processes."""

    store: Store

    def used(self, day: str, /) -> int:
        """Return how many tokens a day has had."""
        with self.store.read() as tx:
            row = tx.execute("SELECT tokens FROM writer_usage WHERE day = ?", (day,)).fetchone()
        return 0 if row is None else int(row[0])

    def add(self, day: str, tokens: int, /) -> None:
        """Count tokens; fewer than none takes some back."""
        with self.store.write() as tx:
            tx.execute(
                """INSERT INTO writer_usage(day, tokens) VALUES (?, ?)
                   ON CONFLICT (day) DO UPDATE SET tokens = writer_usage.tokens + excluded.tokens""",
                (day, tokens),
            )
