"""Removing facts: softly, as deleted rows that an undo brings back, or for good. First a plan, then its work.

Entities stay, also those left without a fact: they are only told of.
"""

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, replace

from graphmem.core.keys import clean_text, entity_key
from graphmem.core.model import PurgeReport
from graphmem.errors import InvalidInput, NotFound
from graphmem.graph.scenes import sweep_refs
from graphmem.store import text_index
from graphmem.upkeep import journal
from graphmem.upkeep.journal import Journal, rows_of

# Any number of ids in one parameter.
_GONE = "(SELECT value FROM json_each(?))"


@dataclass(frozen=True, slots=True)
class Criteria:
    """What facts to purge, in canonical form; '' where it does not matter."""

    subject_contains: str
    object_contains: str
    relation: str
    session: str


def check_criteria(*, subject_contains: str, object_contains: str, relation: str, session: str) -> Criteria:
    """Return the criteria; raise InvalidInput when there is none, and for one that nothing is left of.

    >>> check_criteria(subject_contains=" ＱＱ ", object_contains="", relation="", session="").subject_contains
    'qq'
    """
    folded: dict[str, str] = {}
    names = {"subject_contains": subject_contains, "object_contains": object_contains, "relation": relation}
    for argument, text in {**names, "session": session}.items():
        if not isinstance(text, str):
            raise InvalidInput(argument, text, "give a text")
        folded[argument] = entity_key(clean_text(text)) if argument in names else clean_text(text)
        # A filter that was given and fell away would purge too much.
        if text and not folded[argument]:
            raise InvalidInput(
                argument, text, "nothing is left of it to look for; leave it out or give a part of a name"
            )
    if not any(folded.values()):
        raise InvalidInput(
            "criteria", None, f"give at least one of {', '.join(folded)}: a purge is never of everything"
        )
    return Criteria(**folded)


def plan_purge(tx: sqlite3.Connection, criteria: Criteria, *, hard: bool) -> PurgeReport:
    """Return what a purge would remove: facts that meet all criteria, deleted ones only where it is for good."""
    rows = tx.execute(
        """SELECT r.id FROM relations r JOIN entities a ON a.id = r.source_id JOIN entities b ON b.id = r.target_id
           WHERE instr(a.key, ?) > 0 AND instr(b.key, ?) > 0 AND ? IN ('', r.relation_key)
               AND (? = '' OR EXISTS (SELECT 1 FROM evidence v WHERE v.relation_id = r.id AND v.session = ?))
               AND (? OR r.status <> 'deleted')
           ORDER BY r.id""",
        (
            criteria.subject_contains, criteria.object_contains, criteria.relation,
            criteria.session, criteria.session, hard,
        ),
    )  # fmt: skip
    return _plan(tx, [relation_id for (relation_id,) in rows], hard=hard)


def plan_delete(tx: sqlite3.Connection, relation_id: int, *, hard: bool) -> PurgeReport:
    """Return what the deletion of one fact would remove; raise NotFound for an unknown one, or one that is deleted."""
    if not rows_of(tx, "relations", "id = ? AND (? OR status <> 'deleted')", (relation_id, hard)):
        raise NotFound(f"relation {relation_id}: there is no such fact, or it was deleted; recall tells the ids")
    return _plan(tx, [relation_id], hard=hard)


def _plan(tx: sqlite3.Connection, relation_ids: Sequence[int], *, hard: bool) -> PurgeReport:
    gone = json.dumps(relation_ids)
    orphaned = tx.execute(
        f"""SELECT e.name FROM entities e
            WHERE e.id IN (SELECT source_id FROM relations WHERE id IN {_GONE}
                           UNION SELECT target_id FROM relations WHERE id IN {_GONE})
                AND NOT EXISTS (SELECT 1 FROM relations r WHERE (r.source_id = e.id OR r.target_id = e.id)
                                AND r.status IN ('active', 'superseded') AND r.id NOT IN {_GONE})
            ORDER BY e.id""",
        (gone, gone, gone),
    )
    return PurgeReport(tuple(relation_ids), tuple(name for (name,) in orphaned), hard=hard, applied=False)


def apply_purge(tx: sqlite3.Connection, plan: PurgeReport, kind: str, at: str) -> PurgeReport:
    """Do what a plan of this same transaction says, as an operation of a kind."""
    if not plan.relations:
        return replace(plan, applied=True)
    summary = {"relations": len(plan.relations), "entities_left_alone": len(plan.orphaned)}
    changes = Journal(tx)
    if plan.hard:
        summary["sentences"] = _remove(tx, plan.relations)
        kind = f"hard {kind}"
    else:
        for row in rows_of(tx, "relations", f"id IN {_GONE}", (json.dumps(plan.relations),)):
            changes.update("relations", row, status="deleted", closed_at=at)
    return replace(plan, applied=True, operation=changes.close(kind, at, summary))


def _remove(tx: sqlite3.Connection, relation_ids: Sequence[int]) -> int:
    """Remove facts with all that speaks of them alone; return the number of sentences that went with them."""
    gone = json.dumps(relation_ids)
    told = {
        sentence_id
        for (sentence_id,) in tx.execute(
            f"""SELECT sentence_id FROM relations WHERE id IN {_GONE}
                UNION SELECT sentence_id FROM evidence WHERE relation_id IN {_GONE}
                UNION SELECT sentence_id FROM scene_refs WHERE kind = 'relation' AND ref_id IN {_GONE}""",
            (gone, gone, gone),
        )
        if sentence_id is not None
    }
    # A name that a scene knows by these facts alone would seem to stand there by itself, for everybody.
    tx.execute(
        f"""DELETE FROM scene_refs
            WHERE kind = 'entity' AND ref_id IN (SELECT source_id FROM relations WHERE id IN {_GONE}
                                                 UNION SELECT target_id FROM relations WHERE id IN {_GONE})
                AND 1 = (SELECT MIN(r.id IN {_GONE}) FROM relations r
                         CROSS JOIN scene_refs k ON k.scene_id = scene_refs.scene_id AND k.kind = 'relation'
                                                 AND k.ref_id = r.id
                         WHERE r.source_id = scene_refs.ref_id OR r.target_id = scene_refs.ref_id)""",
        (gone, gone, gone),
    )
    tx.execute(f"DELETE FROM evidence WHERE relation_id IN {_GONE}", (gone,))
    tx.execute(f"DELETE FROM relations WHERE id IN {_GONE}", (gone,))
    text_index.drop(tx, "relation", relation_ids)
    sweep_refs(tx)
    journal.forget_relations(tx, relation_ids)
    unused = [
        sentence_id
        for (sentence_id,) in tx.execute(
            f"""SELECT value FROM json_each(?) WHERE value NOT IN (
                    SELECT sentence_id FROM relations WHERE sentence_id IS NOT NULL
                    UNION SELECT sentence_id FROM evidence WHERE sentence_id IS NOT NULL
                    UNION SELECT sentence_id FROM scene_refs WHERE sentence_id IS NOT NULL
                    UNION {journal.SENTENCES})""",
            (json.dumps(sorted(told)),),
        )
    ]
    text_index.drop(tx, "sentence", unused)
    tx.execute(f"DELETE FROM sentences WHERE id IN {_GONE}", (json.dumps(unused),))
    return len(unused)
