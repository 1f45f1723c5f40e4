"""Notes where they are wanted: in the scenes that hold them, at a trigger, before a tool, in every prompt.

A note comes back with its scene, by a trigger in the situation or in the words of a turn, and always where it is a rule
or pinned. What only scenes of other people hold comes back on no ground at all.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from graphmem.core.keys import entity_key, title_key
from graphmem.core.model import RecalledNote
from graphmem.core.situations import Situation
from graphmem.core.tokens import telling_tokens, tokens_of, words_of
from graphmem.graph import found
from graphmem.graph.scenes import Selection, are_notes, noted
from graphmem.records import notes, standing
from graphmem.records.standing import Found
from graphmem.store.transaction import Transaction


@dataclass(frozen=True, slots=True)
class Ground:
    """Why a note comes back: 'scene', 'trigger', 'tool', 'always' or 'ledger', how strongly, and the trigger."""

    name: str
    weight: float = 1.0
    load_when: str = ""


def of_scenes(
    tx: Transaction,
    held: Mapping[int, float],
    *,
    limit: int,
    scopes: Sequence[str] | None,
    as_of: str | None,
) -> tuple[RecalledNote, ...]:
    """Return the notes that scenes hold, by id with their weights, best first."""
    grounds = {note_id: Ground("scene", weight) for note_id, weight in held.items()}
    return _recalled(tx, grounds, limit=limit, scopes=scopes, as_of=as_of)


def of_situation(
    tx: Transaction,
    situation: Situation,
    selection: Selection | None,
    text: str,
    *,
    limit: int,
    scopes: Sequence[str] | None,
    as_of: str | None,
) -> tuple[RecalledNote, ...]:
    """Return the notes for a situation and the words of a turn: rules and pinned ones, those of scenes and triggers."""
    if not are_notes(tx):
        return ()
    binding = standing.residents(tx, scopes, situation.config.constraint_keys, past=as_of is not None)
    always = dict.fromkeys(binding, Ground("always", 0.0))
    grounds = _open(tx, situation, {**always, **triggered(tx, situation, text)})
    if selection is not None:
        grounds |= {note_id: Ground("scene", weight) for note_id, weight in noted(tx, selection).items()}
    return _recalled(tx, grounds, limit=limit, scopes=scopes, as_of=as_of)


def of_ledger(
    tx: Transaction, kinds: Sequence[str], *, scopes: Sequence[str] | None, limit: int
) -> tuple[RecalledNote, ...]:
    """Return the notes of some kinds that were told last, in no scene, for everybody."""
    if not limit:
        return ()
    stored = standing.latest(tx, kinds, scopes, limit)
    return _ranked(stored, dict.fromkeys([one.id for one in stored], Ground("ledger", 0.0)), limit)


def governing(
    tx: Transaction,
    situation: Situation,
    selection: Selection | None,
    text: str,
    *,
    tool: str,
    scopes: Sequence[str] | None,
) -> tuple[RecalledNote, ...]:
    """Return the rules for what is about to be done: those whose scene, trigger or tool fits."""
    bound = standing.found(tx, standing.residents(tx, scopes, ()), None, scopes)
    rules = {rule.id: rule for rule in bound if is_rule(rule)}
    name, said, labels = entity_key(tool), set(tokens_of(text)), notes.labels_of(tx, rules)
    grounds = {
        rule.id: Ground("tool")
        for rule in rules.values()
        if any(_names(label, name, said) for label in (rule.slot, *labels.get(rule.id, ())) if label)
    }
    grounds |= triggered(tx, situation, text)
    grounds = _open(tx, situation, {note_id: ground for note_id, ground in grounds.items() if note_id in rules})
    if selection is not None:
        held = noted(tx, selection)
        grounds |= {note_id: Ground("scene", held[note_id]) for note_id in held.keys() & rules.keys()}
    return _ranked([rules[note_id] for note_id in grounds], grounds, len(grounds))


def _names(label: str, tool: str, said: Collection[str]) -> bool:
    """Tell whether a label names a tool, by its key, or stands in what is said, by its tokens."""
    words = telling_tokens(tokens_of(label))
    return entity_key(label) == tool or (bool(words) and all(word in said for word in words))


def is_rule(note: Found) -> bool:
    """Tell whether a note is a rule."""
    return note.kind == "rule"


def triggered(tx: Transaction, situation: Situation, text: str) -> dict[int, Ground]:
    """Return the notes that the features of a situation, its topics or the words of a turn call to mind."""
    topics = [feature.value for feature in situation.features if feature.kind == "topic"]
    said = {token for words in (text, *topics) for token in _tokens_said(words)}
    called: dict[int, Ground] = {}
    for note_id, trigger, token in standing.routes(tx, [*situation.weights, *sorted(said)]):
        if token in situation.weights or said.issuperset(telling_tokens(tokens_of(trigger))):
            called.setdefault(note_id, Ground("trigger", 1.0, trigger))
    return called


def _tokens_said(text: str) -> Iterator[str]:
    """Yield the tokens of a text and, where a script writes no spaces, each character: it may be a word.

    >>> [*_tokens_said("报税了")]
    ['报税', '税了', '了', '报', '税', '了']
    """
    yield from tokens_of(text)
    if not text.isascii():
        yield from (word for word in words_of(text) if len(word) == 1)


def _open(tx: Transaction, situation: Situation, grounds: Mapping[int, Ground]) -> dict[int, Ground]:
    """Leave out the notes that only scenes of other people hold."""
    held = found.holders(tx, "note", list(grounds))
    closed = found.closed_to(tx, situation, [holding for own in held.values() for holding in own])
    return {
        note_id: ground
        for note_id, ground in grounds.items()
        if any(holding.scene_id not in closed for holding in held.get(note_id, ()))
    }


def _recalled(
    tx: Transaction,
    grounds: Mapping[int, Ground],
    *,
    limit: int,
    scopes: Sequence[str] | None,
    as_of: str | None,
) -> tuple[RecalledNote, ...]:
    """Return those of some notes that stand in these scopes, ranked."""
    if not grounds or not limit:
        return ()
    return _ranked(standing.found(tx, grounds, as_of, scopes), grounds, limit)


def _ranked(found_notes: Iterable[Found], grounds: Mapping[int, Ground], limit: int) -> tuple[RecalledNote, ...]:
    """Return notes on their grounds: rules first, then pinned ones, then by weight, then those told last."""
    stored = sorted(found_notes, key=lambda one: (one.updated_at, one.id), reverse=True)
    overridden = _overridden(stored)
    stored.sort(key=lambda one: (not is_rule(one), one.id in overridden, not one.pinned, -grounds[one.id].weight))
    return tuple(
        RecalledNote(
            one.id, one.kind, one.title, one.body, one.slot, one.scope, bool(one.pinned), one.source, one.reason,
            one.updated_at, grounds[one.id].weight, grounds[one.id].name, grounds[one.id].load_when,
            one.id in overridden,
        )
        for one in stored[:limit]
    )  # fmt: skip


def _overridden(stored: Iterable[Found]) -> set[int]:
    """Return the rules of the user beside which a project has one of its own, of that slot or else of that title."""
    rules = [one for one in stored if is_rule(one)]
    own = {_about(one) for one in rules if one.scope}
    return {one.id for one in rules if not one.scope and _about(one) in own}


def _about(note: Found) -> tuple[str, str]:
    slot = entity_key(note.slot)
    return slot, "" if slot else title_key(note.title)
