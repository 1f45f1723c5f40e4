"""What a model proposes to remember: compared with what is stored, written where it is new."""

from collections.abc import Callable
from dataclasses import replace

from graphmem.config import Config
from graphmem.core.candidates import Candidate, Screened, screen
from graphmem.core.keys import entity_key
from graphmem.core.model import Note, Proposed, Provenance
from graphmem.core.tokens import tokens_of
from graphmem.records import drafts, notes
from graphmem.store import text_index
from graphmem.store.text_index import Vocabulary
from graphmem.store.transaction import Transaction

_ENDS = " .。!！"
_COMPARED = 50  # notes that share the rarest words with a candidate


def propose(
    tx: Transaction,
    vocabulary: Vocabulary,
    candidates: tuple[Candidate, ...],
    scope_of: Callable[[str], str],
    origin: Provenance,
    config: Config,
) -> tuple[Proposed, ...]:
    """Write what is new of some candidates; scope_of: gives the scope of a kind. What is known is seen once more."""

    def known(candidate: Candidate) -> list[Note]:
        return alike(tx, vocabulary, candidate, scope_of(candidate.kind))

    settled: list[Proposed] = []
    for one in screen(candidates, known):
        twin = None if one.same_place is None else settled[one.same_place].note
        same_id = one.same_id if twin is None else twin.id
        settled.append(_settled(tx, one, same_id, scope_of(one.candidate.kind), origin, config))
    return tuple(settled)


def alike(tx: Transaction, vocabulary: Vocabulary, candidate: Candidate, scope: str) -> list[Note]:
    """Return the notes of a scope that may say the same: those of the title, those that share its rarest words."""
    tokens = vocabulary.frequencies(tx, dict.fromkeys(tokens_of(f"{candidate.title} {candidate.body}")))
    passages = text_index.first_candidates(tx, tokens, tokens, ["note"], _COMPARED)
    ids = dict.fromkeys([*notes.of_title(tx, scope, candidate.title), *(passage.item[1] for passage in passages)])
    return [note for note in notes.notes(tx, list(ids)).values() if note.scope == scope]


def _settled(
    tx: Transaction, one: Screened, same_id: int | None, scope: str, origin: Provenance, config: Config
) -> Proposed:
    candidate, note = one.candidate, None
    if one.outcome == "accepted":
        # A person is told of a trigger that calls nothing; a model's is left out.
        repeats = entity_key(candidate.body).rstrip(_ENDS) == entity_key(candidate.title).rstrip(_ENDS)
        triggers = [trigger for trigger in candidate.load_when if drafts.token_of(trigger, config.weights)]
        draft = drafts.check_note(
            candidate.title, body="" if repeats else candidate.body, kind=candidate.kind, slot="", labels=(),
            load_when=triggers, summary=candidate.summary[: drafts.LONGEST_SUMMARY],
            highlight=candidate.highlight, scope=scope, pinned=False, status=candidate.status, source=origin.actor,
            reason="", config=config,
        )  # fmt: skip
        report = notes.remember(tx, draft, replace(origin, reason=draft.reason))
        note = report.note
        if not report.created:
            return Proposed(
                candidate.title, candidate.body, candidate.kind, "duplicate", "; ".join(report.remarks), 1.0, note
            )
    elif same_id is not None:
        notes.see_again(tx, same_id, origin.at)
        note = notes.note(tx, same_id)
    return Proposed(candidate.title, candidate.body, candidate.kind, one.outcome, one.reason, one.score, note)
