"""Hits: what is shown of an item, and what its score is made of."""

from collections.abc import Callable, Mapping

from graphmem.compose.evidence import Item
from graphmem.compose.pool import Pool, find_holdings
from graphmem.core.model import Hit, Reason
from graphmem.core.tokens import piece_of
from graphmem.graph import found
from graphmem.graph.found import StoredFact
from graphmem.records import history, standing
from graphmem.store.text_index import Passage

_Scores = Mapping[int, float]  # of the items of one kind, by id

_TOLD = {
    "words": "its words match: {}",
    "vector": "its words weigh alike",
    "symbol": "names the very number or version",
    "window": "matches together with what was said right before and after",
    "neighbours": "what was said beside it matches",
    "session": "its session is about this",
    "speaker": "said by somebody who is named",
    "meaning": "means much the same, or was said right beside what does",
    "date": "said at a time that is named",
    "scene": "held by a scene that answers the situation",
    "graph": "linked to what is named: {}",
    "association": "shares rare words with the best hits",
    "replaced": "superseded by what the words find",
}


def reasons_of(
    item: Item,
    values: Mapping[str, Mapping[Item, float]],
    weights: Mapping[str, float],
    details: Mapping[str, str],
) -> tuple[Reason, ...]:
    """Return what the score of an item is made of, the heaviest part first; the parts sum up to the score.

    details: what is to be told of some kinds of evidence.
    """
    reasons = [
        Reason(name, round(values[name][item], 6), round(weight, 6), _TOLD[name].format(details.get(name, "")))
        for name, weight in weights.items()
        if values[name].get(item)
    ]
    return tuple(sorted(reasons, key=lambda reason: -reason.value * reason.weight))


def shown(pool: Pool, scores: Mapping[Item, float], best: Mapping[Item, Passage]) -> dict[Item, Hit]:
    """Return items as hits with their scores, their texts read. best: the passage of each that matched best."""
    by_kind: dict[str, list[int]] = {}
    for item in scores:
        by_kind.setdefault(item[0], []).append(item[1])
    hits: dict[Item, Hit] = {}
    for kind, ids in by_kind.items():
        find_holdings(pool, kind, ids)
        rounded = {ref_id: round(scores[kind, ref_id], 6) for ref_id in ids}
        hits |= {(kind, ref_id): hit for ref_id, hit in _SHOW[kind](pool, rounded, best).items()}
    return hits


def _fact_line(fact: StoredFact, sentence: str) -> str:
    told = f"{fact.subject} {fact.relation} {fact.object}"
    return f"{told}: {sentence}" if sentence else told


def _show_parts(pool: Pool, scores: _Scores, best: Mapping[Item, Passage]) -> dict[int, Hit]:
    return {
        ref_id: Hit(
            "part",
            part.part,
            part.text,
            scores[ref_id],
            "/".join(filter(None, (part.session, part.author))),
            part.at,
            session=part.session,
        )
        for ref_id, part in history.parts(pool.tx, list(scores)).items()
    }


def _show_notes(pool: Pool, scores: _Scores, best: Mapping[Item, Passage]) -> dict[int, Hit]:
    return {
        one.id: Hit(
            "note",
            one.id,
            one.text,
            scores[one.id],
            one.source,
            one.at,
            _keys(pool, ("note", one.id)),
            one.status,
            one.pinned,
            one.reason,
            one.place,
        )
        for one in standing.shown(pool.tx, list(scores))
    }


def _show_facts(pool: Pool, scores: _Scores, best: Mapping[Item, Passage]) -> dict[int, Hit]:
    facts = found.facts(pool.tx, list(scores))
    heard: dict[int, int | None] = {}
    for ref_id, fact in facts.items():
        matched, holdings = best.get(("relation", ref_id)), pool.holdings.get(("relation", ref_id))
        if matched is not None and matched.item[0] == "sentence":
            heard[ref_id] = matched.item[1]
        else:
            heard[ref_id] = holdings[0].sentence_id if holdings else fact.sentence_id
    sentences = found.sentences(pool.tx, [sentence for sentence in heard.values() if sentence is not None])
    hits: dict[int, Hit] = {}
    for ref_id, fact in facts.items():
        text = _fact_line(fact, sentences.get(heard[ref_id] or 0, ""))
        keys = _keys(pool, ("relation", ref_id))
        hits[ref_id] = Hit("relation", ref_id, text, scores[ref_id], fact.source, fact.at, keys, fact.status)
    return hits


def _show_entities(pool: Pool, scores: _Scores, best: Mapping[Item, Passage]) -> dict[int, Hit]:
    return {
        ref_id: Hit("entity", ref_id, name, scores[ref_id], "", at, _keys(pool, ("entity", ref_id)))
        for ref_id, (name, at) in found.entity_names(pool.tx, list(scores)).items()
    }


def _show_scenes(pool: Pool, scores: _Scores, best: Mapping[Item, Passage]) -> dict[int, Hit]:
    return {
        ref_id: Hit("scene", key, key, scores[ref_id], "", at, (key,))
        for ref_id, (key, at) in found.scene_keys(pool.tx, list(scores)).items()
    }


def _show_blocks(pool: Pool, scores: _Scores, best: Mapping[Item, Passage]) -> dict[int, Hit]:
    return {
        ref_id: Hit(
            "block", block.id, block.text, scores[ref_id], block.source, block.at, _keys(pool, ("block", ref_id))
        )
        for ref_id, block in found.texts(pool.tx, "block", list(scores)).items()
    }


def _show_documents(pool: Pool, scores: _Scores, best: Mapping[Item, Passage]) -> dict[int, Hit]:
    hits: dict[int, Hit] = {}
    for ref_id, document in found.texts(pool.tx, "document", list(scores)).items():
        item = ("document", ref_id)
        piece = piece_of(document.text, best[item].place) if item in best else document.title
        hits[ref_id] = Hit(
            "document", document.id, piece, scores[ref_id], document.source, document.at, _keys(pool, item)
        )
    return hits


def _keys(pool: Pool, item: Item) -> tuple[str, ...]:
    return tuple(holding.key for holding in pool.holdings.get(item, ()) if holding.key)


_SHOW: Mapping[str, Callable[[Pool, _Scores, Mapping[Item, Passage]], dict[int, Hit]]] = {
    "part": _show_parts,
    "note": _show_notes,
    "relation": _show_facts,
    "entity": _show_entities,
    "scene": _show_scenes,
    "block": _show_blocks,
    "document": _show_documents,
}
