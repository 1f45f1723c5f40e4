"""What lies around a name: entities found by keywords, then facts from them, layer by layer."""

import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from graphmem.core.keys import clean_text, entity_key
from graphmem.core.model import Neighbour, Neighbourhood, RecalledRelation
from graphmem.core.tokens import content_words
from graphmem.errors import InvalidInput
from graphmem.graph.entities import visible
from graphmem.graph.scenes import facts_of
from graphmem.graph.validity import holding
from graphmem.store.lists import in_parts, of_scopes, prefix_range, rows_about
from graphmem.store.transaction import Transaction

# Words that name every second thing: what only they find comes after what a particular word finds.
_GENERIC = frozenset(
    """
    端口 服务 版本 地址 配置 系统 文件 数据 项目 用户 名称 信息 问题 方法 时间 状态 类型 内容 设置 功能
    port service version address config system file data project user name info problem method time status type
    content setting feature
    """.split()  # noqa: SIM905 (a list of quoted words would be five times as long)
)
_TIERS = ("exact", "prefix", "contains")
_EXACT, _PREFIX, _CONTAINS = range(len(_TIERS))
_HITS_OF_A_KEYWORD = 50
_KEYWORDS = 100  # each is one more pattern in the scan of the names
_WORDS_OF_A_QUESTION = 25  # the names and the numbers in it are keywords as well
_LONGEST_KEY = 900  # a name has 50 characters; folded, one of them may be 18
_LONGEST_NAME = 50
_QUESTION = 400  # characters of a question in which names are looked for

_SEPARATOR = re.compile("[,，、;；]")
_NUMBER = re.compile(r"\d[\d.]*\d")
# Scripts that put no space between words: there a name may begin and end anywhere.
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U000323af]"
)


@dataclass(frozen=True, slots=True)
class Reading:
    """What of the graph is looked at: facts that hold at an instant, of some scopes and of none, None for all."""

    at: str
    scopes: Sequence[str] | None

    def condition(self) -> tuple[str, list[str]]:
        """Return the condition that a relation `r` may be read, and its parameters."""
        (holds, held), (in_scope, scopes) = holding(self.at), of_scopes(self.scopes)
        return f"{holds} {in_scope}", [*held, *scopes]


class Edge(NamedTuple):
    """A fact as a line between two entities. turn: of the session that told it last, where that was asked for."""

    id: int
    source: int
    target: int
    confidence: float
    updated_at: str
    turn: int


class _Entity(NamedTuple):
    id: int
    key: str
    name: str
    type: str
    mentions: int
    updated_at: str


_SELECT = "SELECT e.id, e.key, e.name, e.type, e.mention_count, e.updated_at FROM entities e"
_Found = dict[int, tuple[_Entity, int]]  # entities by id, each with the number of its tier

# Found by generic words alone, the best tier, how many particular words found it (negative). The least comes first.
_Rank = tuple[bool, int, int]
_REACHED: _Rank = (True, len(_TIERS), 0)
_Place = tuple[int, _Rank]  # hops of the nearer end, and how well its name fits


class _Hit(NamedTuple):
    entity: _Entity
    rank: _Rank
    tier: str


def neighbours(
    tx: Transaction,
    names: str | Sequence[str],
    reading: Reading,
    *,
    depth: int,
    limit: int,
    recent: bool,
) -> Neighbourhood:
    """Return the entities that keywords find and what is reached from them, with the facts between.

    A layer is put in order, then cut to what is left of the limit: the nearest come first, so that what lies beyond a
    full layer is never read.
    """
    keywords = _keywords(tx, names, reading.scopes)
    hits = {hit.entity.id: hit for hit in _hits(tx, keywords, reading.scopes)}
    hops: dict[int, int] = {}
    found: list[Neighbour] = []
    edges: dict[int, tuple[_Place, Edge]] = {}
    ranks = {entity_id: hit.rank for entity_id, hit in hits.items()}
    layer = _in_order((hit.entity for hit in hits.values()), ranks, recent=recent)
    for distance in itertools.count():
        layer = layer[: limit - len(found)]
        for entity in layer:
            hops[entity.id] = distance
            tier = hits[entity.id].tier if entity.id in hits else ""
            found.append(Neighbour(entity.id, entity.name, entity.type, entity.mentions, distance, tier))
        if distance == depth or not layer:
            break
        reached = facts_around(tx, [entity.id for entity in layer], reading, turns=recent)
        for edge in reached:
            place = min((hops[end], ranks.get(end, _REACHED)) for end in (edge.source, edge.target) if end in hops)
            edges.setdefault(edge.id, (place, edge))
        fresh = {end for edge in reached for end in (edge.source, edge.target)} - hops.keys()
        layer = _in_order(_entities(tx, fresh), ranks, recent=recent)

    def nearness(placed: tuple[_Place, Edge]) -> tuple[object, ...]:
        place, edge = placed
        return place, not (edge.source in hops and edge.target in hops), -edge.confidence, edge.id

    def recency(placed: tuple[_Place, Edge]) -> tuple[object, ...]:
        return placed[1].updated_at, placed[1].turn, placed[1].id

    ordered = sorted(edges.values(), key=recency if recent else nearness, reverse=recent)
    return Neighbourhood(keywords, tuple(found), told(tx, [edge.id for _, edge in ordered[:limit]]))


def _in_order(entities: Iterable[_Entity], ranks: Mapping[int, _Rank], *, recent: bool) -> list[_Entity]:
    """Put entities in order: how well their names fit, then the most mentioned; or the latest first."""
    if recent:
        by_mentions = sorted(entities, key=lambda one: (-one.mentions, len(one.name), -one.id))
        return sorted(by_mentions, key=lambda one: one.updated_at, reverse=True)
    return sorted(entities, key=lambda one: (ranks.get(one.id, _REACHED), -one.mentions, len(one.name), one.id))


def facts_around(
    tx: Transaction,
    entity_ids: Iterable[int],
    reading: Reading,
    *,
    turns: bool = False,
    most: int | None = None,
) -> list[Edge]:
    """Return the facts that begin or end at some entities, each once, in the order of their ids.

    most: only so many of them, and the surest and latest come first; None for all.
    """
    condition, parameters = reading.condition()
    order, limit = "", []
    if most is not None:
        order, limit = "ORDER BY r.confidence DESC, r.updated_at DESC, r.id DESC LIMIT ?", [most]
    turn = "(SELECT MAX(v.turn) FROM evidence v WHERE v.relation_id = r.id AND v.at = r.updated_at)" if turns else "0"
    found: dict[int, Edge] = {}
    for ids, places in in_parts(entity_ids):
        rows = tx.execute(
            f"""SELECT r.id, r.source_id, r.target_id, r.confidence, r.updated_at, COALESCE({turn}, 0)
                FROM relations r WHERE (r.source_id IN ({places}) OR r.target_id IN ({places})) AND {condition}
                {order}""",
            (*ids, *ids, *parameters, *limit),
        )
        found |= {row[0]: Edge(*row) for row in rows}
    if most is not None:
        return sorted(found.values(), key=lambda one: (one.confidence, one.updated_at, one.id), reverse=True)[:most]
    return [found[relation_id] for relation_id in sorted(found)]


def told(tx: Transaction, relation_ids: Sequence[int]) -> tuple[RecalledRelation, ...]:
    """Return facts with the sentence that told them last, in the order of the given ids."""
    found: dict[int, RecalledRelation] = {}
    for ids, places in in_parts(relation_ids):
        chosen = f"(SELECT id, 1.0 AS weight, sentence_id FROM relations WHERE id IN ({places}))"
        found |= {row[0]: RecalledRelation(*row) for row in tx.execute(facts_of(chosen), ids)}
    return tuple(found[relation_id] for relation_id in relation_ids)


# ---- finding entities by words


def _entities(tx: Transaction, entity_ids: Iterable[int]) -> list[_Entity]:
    return [_Entity(*row) for row in rows_about(tx, f"{_SELECT} WHERE e.id IN ({{marks}})", entity_ids)]


def _keywords(tx: Transaction, names: str | Sequence[str], scopes: Sequence[str] | None) -> tuple[str, ...]:
    """Return what to look for: the names of a list, or what a text means.

    A text is a list when commas part it, else a name when it is one; else it is a question, and the names in it, its
    content words and its numbers are looked for.
    """
    if isinstance(names, str):
        names = clean_text(names)
        whole = entity_key(names)
        pieces = [entity_key(piece) for piece in _SEPARATOR.split(names)]
        known = _named(tx, [whole], scopes)
        if known or len(pieces) == 1:
            question = whole[:_QUESTION]
            inside = known or _longest(_named(tx, _windows(question), scopes))
            words = () if known else (*content_words(question, _WORDS_OF_A_QUESTION), *_NUMBER.findall(question))
            pieces = [*inside, *(word for word in words if not any(word in name for name in inside))] or [whole]
    else:
        pieces = [entity_key(clean_text(name)) for name in names]
    keywords = tuple(dict.fromkeys(piece for piece in pieces if piece))
    if not keywords:
        raise InvalidInput("names", names, "nothing to look for; give a name, a word or a question")
    if len(keywords) > _KEYWORDS:
        raise InvalidInput("names", len(keywords), f"more than {_KEYWORDS} at once; look for them in parts")
    return keywords


def _windows(question: str) -> list[str]:
    """Return the pieces of a folded text that may be a name: two characters or more, from border to border.

    >>> _windows("our cat")
    ['our', 'our cat', 'cat']
    >>> _windows("看qq")
    ['看qq', 'qq']
    """
    inside = [a.isalnum() and b.isalnum() and not _UNSPACED.search(a + b) for a, b in itertools.pairwise(question)]
    borders = [place for place in range(len(question) + 1) if not 0 < place < len(question) or not inside[place - 1]]
    windows = (
        question[start:end]
        for place, start in enumerate(borders)
        for end in borders[place + 1 : place + 1 + _LONGEST_NAME]
        if 2 <= end - start <= _LONGEST_NAME and not question[start].isspace() and not question[end - 1].isspace()
    )
    return list(dict.fromkeys(windows))


def _named(tx: Transaction, keys: Sequence[str], scopes: Sequence[str] | None) -> list[str]:
    """Return those of some keys that name an entity."""
    seen, parameters = visible(scopes)
    known: set[str] = set()
    for part, places in in_parts(keys):
        rows = tx.execute(
            f"""SELECT e.key FROM entities e WHERE e.key IN ({places}) {seen}
                UNION SELECT a.key FROM entity_aliases a JOIN entities e ON e.id = a.entity_id
                WHERE a.key IN ({places}) {seen}""",
            (*part, *parameters, *part, *parameters),
        )
        known |= {key for (key,) in rows}
    return [key for key in keys if key in known]


def _longest(keys: Sequence[str]) -> list[str]:
    """Drop keys that are a part of another one: New York in New York Times is another thing.

    >>> _longest(["new york", "new york times", "mei"])
    ['new york times', 'mei']
    """
    return [key for key in keys if not any(key != other and key in other for other in keys)]


def _hits(tx: Transaction, keywords: Sequence[str], scopes: Sequence[str] | None) -> list[_Hit]:
    """Return the entities whose names the keywords find, at most 50 a keyword, with their rank and tier."""
    best: dict[int, _Entity] = {}
    tiers: dict[int, dict[str, int]] = {}
    for keyword, entities in _candidates(tx, keywords, scopes).items():
        ranked = sorted(entities.values(), key=lambda one: (one[1], -one[0].mentions, len(one[0].name), one[0].id))
        for entity, tier in ranked[:_HITS_OF_A_KEYWORD]:
            best[entity.id] = entity
            tiers.setdefault(entity.id, {})[keyword] = tier
    hits = []
    for entity_id, found in tiers.items():
        specific = [tier for keyword, tier in found.items() if keyword not in _GENERIC]
        rank = (not specific, min(specific or found.values()), -len(specific))
        hits.append(_Hit(best[entity_id], rank, _TIERS[rank[1]]))
    return hits


def _candidates(tx: Transaction, keywords: Sequence[str], scopes: Sequence[str] | None) -> dict[str, _Found]:
    """Return for each keyword the entities it may find, with the tier: the index first, the scan where that is few."""
    seen, parameters = visible(scopes)
    found: dict[str, _Found] = {}
    for keyword in keywords:
        alias = tx.execute(
            f"{_SELECT} WHERE e.id = (SELECT entity_id FROM entity_aliases WHERE key = ?) {seen}",
            (keyword, *parameters),
        )
        begins = tx.execute(
            f"""{_SELECT} WHERE e.key >= ? AND e.key < ? {seen}
                ORDER BY e.key <> ?, e.mention_count DESC, length(e.name), e.id LIMIT {_HITS_OF_A_KEYWORD}""",
            (*prefix_range(keyword), *parameters, keyword),
        )
        prefixed = {
            entity.id: (entity, _EXACT if entity.key == keyword else _PREFIX) for entity in map(_Entity._make, begins)
        }
        found[keyword] = prefixed | {row[0]: (_Entity(*row), _EXACT) for row in alias}
    wanting = [word for word in keywords if len(found[word]) < _HITS_OF_A_KEYWORD and len(word) <= _LONGEST_KEY]
    if wanting:
        patterns = " OR ".join([r"e.key LIKE ? ESCAPE '\'"] * len(wanting))
        escaped = (re.sub(r"([\\%_])", r"\\\1", word) for word in wanting)
        rows = tx.execute(
            f"{_SELECT} WHERE ({patterns}) {seen}", (*(f"%{pattern}%" for pattern in escaped), *parameters)
        )
        for entity in map(_Entity._make, rows):
            for word in wanting:
                if word in entity.key:
                    found[word].setdefault(entity.id, (entity, _CONTAINS))
    return found
