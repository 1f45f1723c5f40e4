"""What is wrong with scopes and with what stands beside notes, and its repair: all of it follows from the rest."""

from collections.abc import Iterator
from dataclasses import dataclass

from graphmem.records import drafts, provenance, scopes
from graphmem.store.transaction import Transaction

# Rows that belong to another: their table, the column that names it, and where it lies.
_BESIDE = (
    ("note_labels", "note_id", "notes", "id"),
    ("note_triggers", "note_id", "notes", "id"),
    ("note_usage", "note_id", "notes", "id"),
    ("note_sources", "note_id", "notes", "id"),
    ("note_sources", "source_id", "notes", "id"),
    ("scope_aliases", "scope", "scopes", "key"),
)
# Rows that stay when what they name is gone.
_NAMING = {"incidents": "note_id", "notes": "superseded_by"}
_ORIGINLESS = "NOT EXISTS (SELECT 1 FROM provenance p WHERE p.kind = 'note' AND p.ref_id = notes.id AND p.seq = 0)"
_OF_NOTHING = "kind = 'note' AND ref_id NOT IN (SELECT id FROM notes)"

# By table, what is found by its foreign keys and mended here: the table that they lead to.
MENDED = {table: parent for table, _, parent, _ in _BESIDE} | dict.fromkeys(_NAMING, "notes")


@dataclass(frozen=True, slots=True)
class Flaw:
    """Rows that are wrong in one way. rows: their ids. mended: what a repair does with them."""

    table: str
    rows: tuple[int | str, ...]
    what: str
    mended: str


def flaws(tx: Transaction) -> Iterator[Flaw]:
    """Yield what is wrong, but for rows that point at none, which foreign keys tell of."""
    if unnoted := tuple(sorted(scopes.unnoted(tx))):
        yield Flaw("scopes", unnoted, "hold something, and are not known to: it may be shown elsewhere", "notes it")
    if originless := tuple(_ids(tx, f"SELECT id FROM notes WHERE {_ORIGINLESS} ORDER BY id")):
        yield Flaw("notes", originless, "no origin is kept", "makes it of what the note tells")
    if of_nothing := tuple(_ids(tx, f"SELECT DISTINCT ref_id FROM provenance WHERE {_OF_NOTHING} ORDER BY 1")):
        yield Flaw("provenance", of_nothing, "there is no such note", "removes it")
    if misled := tuple(dict.fromkeys(note_id for note_id, _, _ in _misled(tx))):
        yield Flaw("note_triggers", misled, "looked for by another word than theirs", "makes it anew")
    for loop in _loops(tx):
        yield Flaw("notes", tuple(sorted(loop)), "each took the slot of the other", "cuts the loop at the latest")


def mend(tx: Transaction) -> None:
    """Mend all that `flaws` tells of, and what points at notes and scopes that are gone."""
    scopes.note(tx, scopes.unnoted(tx))
    for table, column, parent, key in _BESIDE:
        tx.execute(f"DELETE FROM {table} WHERE {column} NOT IN (SELECT {key} FROM {parent})")
    for table, column in _NAMING.items():
        tx.execute(f"UPDATE {table} SET {column} = NULL WHERE {column} NOT IN (SELECT id FROM notes)")
    for note_id, source, at in tx.execute(f"SELECT id, source, created_at FROM notes WHERE {_ORIGINLESS}").fetchall():
        provenance.begin(tx, "note", note_id, provenance.presumed(source, at))
    tx.execute(f"DELETE FROM provenance WHERE {_OF_NOTHING}")
    tx.executemany(
        "UPDATE note_triggers SET token = ?3 WHERE note_id = ?1 AND load_when = ?2",
        _misled(tx),
    )
    for loop in _loops(tx):
        tx.execute("UPDATE notes SET superseded_by = NULL WHERE id = ?", (loop[0],))


def _ids(tx: Transaction, statement: str) -> list[int]:
    return [row_id for (row_id,) in tx.execute(statement)]


def _misled(tx: Transaction) -> list[tuple[int, str, str]]:
    """Return the triggers that are looked for neither by their own word, with it, nor as a feature."""
    rows = tx.execute("SELECT note_id, load_when, token FROM note_triggers ORDER BY note_id, load_when")
    return [
        (note_id, trigger, own)
        for note_id, trigger, token in rows
        if token not in ((own := drafts.token_of(trigger)), trigger)
    ]


def _loops(tx: Transaction) -> list[list[int]]:
    """Return the notes that lead to themselves by who took their slots; the one that took it last comes first."""
    rows = tx.execute(
        "SELECT id, superseded_by, status = 'live', created_at FROM notes WHERE superseded_by IS NOT NULL"
    )
    told = {note_id: (successor, (is_live, at, note_id)) for note_id, successor, is_live, at in rows}
    loops: list[list[int]] = []
    seen: set[int] = set()
    for start in told:
        way: list[int] = []
        while start in told and start not in seen:
            seen.add(start)
            way.append(start)
            start = told[start][0]
        if start in way:
            loop = way[way.index(start) :]
            loops.append(sorted(loop, key=lambda note_id: told[note_id][1], reverse=True))
    return loops
