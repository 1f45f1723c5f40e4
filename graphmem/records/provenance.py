"""Where things come from, and what was done to them since. The origin of a thing, seq 0, is written once."""

from collections.abc import Sequence

from graphmem.core.model import Provenance
from graphmem.store.lists import rows_about
from graphmem.store.transaction import Transaction

_COLUMNS = "seq, act, actor, place, session, message, quote, reason, at"


def begin(tx: Transaction, kind: str, ref_id: int, origin: Provenance) -> None:
    """Write the origin of something new."""
    _insert(tx, kind, ref_id, 0, origin)


def presumed(source: str, at: str) -> Provenance:
    """Return the origin of what another program wrote without one: who says so, and when."""
    return Provenance(0, "remember", source, "", "", "", "", "", at)


def add(tx: Transaction, kind: str, ref_id: int, act: Provenance) -> None:
    """Write what was done to something, behind all before."""
    (seq,) = tx.execute(
        "SELECT COALESCE(MAX(seq), -1) + 1 FROM provenance WHERE kind = ? AND ref_id = ?", (kind, ref_id)
    ).fetchone()
    _insert(tx, kind, ref_id, seq, act)


def _insert(tx: Transaction, kind: str, ref_id: int, seq: int, one: Provenance) -> None:
    tx.execute(
        f"INSERT INTO provenance(kind, ref_id, {_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (kind, ref_id, seq, one.act, one.actor, one.place, one.session, one.message, one.quote, one.reason, one.at),
    )


def acts(tx: Transaction, kind: str, ref_id: int) -> tuple[Provenance, ...]:
    """Return all that was done to something, its origin first."""
    rows = tx.execute(f"SELECT {_COLUMNS} FROM provenance WHERE kind = ? AND ref_id = ? ORDER BY seq", (kind, ref_id))
    return tuple(Provenance(*row) for row in rows)


def origins(tx: Transaction, kind: str, ref_ids: Sequence[int]) -> dict[int, Provenance]:
    """Return the origins of things by id."""
    asked = f"SELECT ref_id, {_COLUMNS} FROM provenance WHERE ref_id IN ({{marks}}) AND kind = ? AND seq = 0"
    return {ref_id: Provenance(*one) for ref_id, *one in rows_about(tx, asked, ref_ids, kind)}
