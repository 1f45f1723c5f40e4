"""Precise recall: only what the query names, and nothing when it names nothing."""

from dataclasses import replace

from graphmem.compose.evidence import Item
from graphmem.compose.pool import Pool, Request, admit, visible_edges
from graphmem.compose.shown import shown
from graphmem.config import Ranking
from graphmem.core.model import Hit, Reason
from graphmem.core.precise import Match, NoteText, precise_matches
from graphmem.core.tokens import query_words, tokens_of
from graphmem.graph import found
from graphmem.records import notes, standing
from graphmem.store import text_index

_NAMES_COMPARED = 1_000


def named_notes(pool: Pool) -> list[Hit]:
    """Return the notes that the query names by their title, slot or labels."""
    text = pool.request.text
    ids = {*_ids_with_words(pool, "note"), *standing.pinned(pool.tx)}
    admit(pool, (("note", note_id) for note_id in ids))
    stored = notes.notes(pool.tx, [ref_id for kind, ref_id in pool.told if kind == "note"])
    texts = [
        NoteText(str(note.id), note.title, slot=note.slot, labels=note.labels, body=note.body, pinned=note.pinned)
        for note in stored.values()
    ]
    matches = {("note", int(match.item.key)): match for match in precise_matches(text, texts)}
    hits = shown(pool, {item: match.strength for item, match in matches.items()}, {})
    return [_told(hits[item], match, pool.request) for item, match in matches.items()]


def facts_of_named(pool: Pool, ranking: Ranking) -> list[Hit]:
    """Return the facts about the entities that the query names, of those only what holds another word of it, if any."""
    tx, request = pool.tx, pool.request
    names = found.entity_names(tx, _ids_with_words(pool, "entity"))
    texts = [NoteText(str(entity_id), name) for entity_id, (name, _) in names.items()]
    named = {int(match.item.key): match for match in precise_matches(request.text, texts)}
    matches: dict[Item, Match] = {}
    for edge in visible_edges(pool, named, ranking.edges):
        ends = [named[end] for end in (edge.source, edge.target) if end in named]
        matches["relation", edge.id] = max(ends, key=lambda match: match.strength)
    hits = shown(pool, {item: match.strength for item, match in matches.items()}, {})
    names_said = {token for entity_id in named for token in tokens_of(names[entity_id][0])}
    asked = {token for word in query_words(request.text) for token in word.tokens} - names_said
    return [
        _told(hits[item], match, request)
        for item, match in matches.items()
        if not asked or asked.intersection(tokens_of(hits[item].text))
    ]


def _ids_with_words(pool: Pool, kind: str) -> list[int]:
    """Return what holds a word of the query, stop words included, or one spelt much like an unknown one."""
    tokens = set(tokens_of(pool.request.text))
    known = pool.vocabulary.frequencies(pool.tx, tokens)
    for token in [token for token in tokens if not known[token] and token.isalpha() and token.isascii()]:
        known |= pool.vocabulary.frequencies(pool.tx, text_index.spellings(pool.tx, token))
    passages = text_index.first_candidates(pool.tx, known, known, [kind], _NAMES_COMPARED)
    return [passage.item[1] for passage in passages]


def _told(hit: Hit, match: Match, request: Request) -> Hit:
    return replace(hit, why=(Reason("named", match.strength, 1.0, match.reason),)) if request.explain else hit
