"""The sentences that sessions were reminded of, each once; nothing of them is kept but a hash."""

import hashlib
from collections.abc import Sequence

from graphmem.core.keys import entity_key
from graphmem.core.times import days_before
from graphmem.store.lists import of_scopes
from graphmem.store.transaction import Transaction

# No session lasts as long.
_KEPT_DAYS = 90
_LAST_FACTS = 1000  # tellings, that a turn has room for


def claim(tx: Transaction, session: str, sentence: str, at: str) -> bool:
    """Take the one reminder of a sentence in a session; tell whether it was still there."""
    statement = "INSERT INTO reminders(hash, at) VALUES (?, ?) ON CONFLICT (hash) DO NOTHING"
    return tx.execute(statement, (_digest(session, sentence), at)).rowcount == 1


def is_claimed(tx: Transaction, session: str, sentence: str) -> bool:
    """Tell whether the one reminder of a sentence in a session was taken."""
    asked = tx.execute("SELECT 1 FROM reminders WHERE hash = ?", (_digest(session, sentence),))
    return asked.fetchone() is not None


def _digest(session: str, sentence: str) -> bytes:
    return hashlib.sha256(f"{session}\0{entity_key(sentence)}".encode()).digest()


def is_anything_saved(tx: Transaction, session: str, since: str, scopes: Sequence[str] | None) -> bool:
    """Tell whether a note or a fact was written since a time, in a session or in none, in scopes and in none.

    A checkpoint is no such note. One that was told again has no act of its own, so whoever did it counts.
    """
    in_scope, parameters = of_scopes(scopes, column="scope")
    found = tx.execute(
        f"""SELECT EXISTS(SELECT 1 FROM notes n WHERE updated_at >= ? AND kind <> 'checkpoint'
                          AND status IN ('live', 'proposed') {in_scope}
                          AND COALESCE((SELECT p.session FROM provenance p
                                        WHERE p.kind = 'note' AND p.ref_id = n.id AND p.at >= ?
                                        ORDER BY p.seq DESC LIMIT 1), '') IN ('', ?))
            OR EXISTS(SELECT 1 FROM relations WHERE id IN (
                          SELECT relation_id FROM evidence WHERE id > (SELECT MAX(id) FROM evidence) - ? AND at >= ?
                          AND session IN ('', ?))
                      {in_scope})""",
        (since, *parameters, since, session, _LAST_FACTS, since, session, *parameters),
    ).fetchone()
    return bool(found[0])


def count_old(tx: Transaction, at: str) -> int:
    """Return how many reminders are of sessions long ago."""
    (count,) = tx.execute("SELECT COUNT(*) FROM reminders WHERE at < ?", (days_before(at, _KEPT_DAYS),)).fetchone()
    return int(count)


def drop_old(tx: Transaction, at: str) -> None:
    """Forget the reminders of sessions long ago."""
    tx.execute("DELETE FROM reminders WHERE at < ?", (days_before(at, _KEPT_DAYS),))
