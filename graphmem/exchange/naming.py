"""Entities and facts that come in from other memories which tell no times."""

from graphmem.core.keys import clean_text, name_problem
from graphmem.core.model import Refusal, Triple
from graphmem.core.redaction import find_secrets
from graphmem.exchange.importing import Tally, Target
from graphmem.graph import entities, relations, taken_in
from graphmem.store.transaction import Transaction


class Names:
    """The entities of one import: which were here before it, and which came with it."""

    def __init__(self, target: Target, tally: Tally) -> None:
        self._target = target
        self._tally = tally
        self._newest: int | None = None
        self._came: set[int] = set()

    def begin(self, tx: Transaction) -> None:
        """Note which entities there are before anything comes in; nothing happens from the second time on."""
        if self._newest is None:
            self._newest = entities.newest(tx)

    def take_in_entity(self, tx: Transaction, name: str, type_: str) -> None:
        """Make an entity, or let the one of this name have this type. name, type_: without white space around them."""
        self.begin(tx)
        secrets, at = find_secrets(f"{name}\n{type_}"), self._target.at
        if reason := f"it holds a secret ({secrets[0].kind})" if secrets else name_problem(name):
            self._tally.refuse("entity", name, reason)
            return
        foreign = taken_in.ForeignEntity(name, type_, 0, at, at, is_dated=False)
        (outcome,) = taken_in.take_in_entities(tx, [foreign], self._newest or 0, self._came)
        if outcome == "merged":
            self._tally.merge("entity", name, name)
        else:
            self._tally.count("entity", outcome)

    def take_in_fact(self, tx: Transaction, triple: Triple) -> bool:
        """Tell a fact in no scene, unless it was told from this source before; tell whether it may be a fact."""
        self.begin(tx)
        (fact,), _ = relations.check_triples([triple], self._target.config.zone)
        told = " ".join(clean_text(name).strip() for name in (triple.subject, triple.relation, triple.object))
        if isinstance(fact, Refusal):
            self._tally.refuse("fact", told, fact.reason)
            return False
        saying = relations.Saying("", 0, self._target.source, self._target.scope or "", self._target.at, ())
        if taken_in.told_before(tx, fact, saying, at_any_time=True) is not None:
            self._tally.count("fact", "known")
            return True
        (outcome,) = relations.tell(tx, [fact], saying, [])
        if outcome.created:
            self._tally.count("fact", "added")
        else:
            self._tally.merge("fact", told, f"fact {outcome.relation_id}, which says the same")
        return True
