"""The text index: one table over everything that has words, kept in the transaction of the row it describes.

The database finds the candidates and counts (`tx.words`); scoring is not its business. A row of the table is one
passage of one text; its number holds the kind, the id and the passage, so that a kind is a range of numbers and needs
no second table. The columns hold tokens made by `core.tokens`, each between spaces of its own, so that plain text
search counts a token.
"""

import itertools
import math
import threading
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from graphmem.core.tokens import passages_of, tokens_of
from graphmem.errors import StoreCorrupt
from graphmem.store.lists import in_list, in_parts
from graphmem.store.transaction import Transaction

KINDS = ("scene", "relation", "sentence", "entity", "note", "part", "document", "block")
CODES = {kind: code for code, kind in enumerate(KINDS)}

KIND_SHIFT = 60
_PASSAGE_BITS = 10
LAST_PASSAGE = (1 << _PASSAGE_BITS) - 1
_IDS = (1 << KIND_SHIFT) - 1
# At most so many matches are scored by FTS5, which takes a microsecond each: of a query whose words are all common
# only the texts that hold its rarest ones are candidates.
MOST_MATCHES = 30_000
_READ_WHOLE = 4  # times the candidates that are wanted: so many matches are read at once
_FTS5_K1, _FTS5_B, _FTS5_LEAST = 1.2, 0.75, 1e-6  # https://www.sqlite.org/fts5.html#the_bm25_function

# What is indexed: id, title, labels and body of each row of a kind. Superseded notes answer questions about the past,
# those of the other states answer none.
_NUMBERED = ("document", "block")  # their ids are texts
_SOURCES: Mapping[str, str] = {
    "scene": "SELECT t.id, t.key, '', '' FROM scenes t",
    "relation": """SELECT t.id, a.name || ' ' || t.relation_type || ' ' || b.name, '', '' FROM relations t
                   JOIN entities a ON a.id = t.source_id JOIN entities b ON b.id = t.target_id""",
    "sentence": "SELECT t.id, '', '', t.text FROM sentences t",
    "entity": """SELECT t.id, t.name,
                     COALESCE((SELECT group_concat(a.key, ' ') FROM entity_aliases a WHERE a.entity_id = t.id), ''), ''
                 FROM entities t""",
    "note": """SELECT t.id, t.title || ' ' || t.slot,
                   COALESCE((SELECT group_concat(l.label, ' ') FROM note_labels l WHERE l.note_id = t.id), ''), t.body
               FROM (SELECT * FROM notes WHERE status IN ('live', 'superseded')) t""",
    "part": "SELECT t.id, '', '', t.text FROM parts t",
    "document": "SELECT t.num, t.summary, t.tags || ' ' || t.entities, t.text FROM documents t",
    "block": "SELECT t.num, '', '', t.text FROM blocks t",
}
_FILLED_AT_ONCE = 2_000
_COUNTED_AT_ONCE = 4_096  # SQLite takes 32 766 values
_COMMON = 64  # passages
_DAMAGED = "the text index is damaged: 'graphmem reindex' makes it anew, nothing else is lost"
_MOST_REMEMBERED = 1 << 15  # tokens


@dataclass(frozen=True, slots=True)
class Tokens:
    """A text as the index holds it: its columns for each passage, and its length in tokens.

    What a word of a title or a label counts is for the ranking to say.
    """

    passages: tuple[tuple[str, str, str], ...]
    length: int


@dataclass(frozen=True, slots=True)
class Text:
    """A text as it is stored: the id of its row, its title, its body."""

    ref_id: int
    head: str
    body: str


class Passage(NamedTuple):
    """A candidate: its number in the index, and the tokens of its columns."""

    number: int
    title: str
    labels: str
    body: str

    @property
    def item(self) -> tuple[str, int]:
        """Its kind, and its id within the kind."""
        return KINDS[self.number >> KIND_SHIFT], (self.number & _IDS) >> _PASSAGE_BITS

    @property
    def place(self) -> int:
        """Which passage of its text it is."""
        return self.number & LAST_PASSAGE


def number_of(kind: str, ref_id: int, place: int = 0) -> int:
    """Return the number in the index of a passage of a text."""
    return CODES[kind] << KIND_SHIFT | ref_id << _PASSAGE_BITS | place


def tokens(*, title: str = "", labels: str = "", body: str = "") -> Tokens:
    """Return what the index will hold of a text; no transaction is needed for this, the slow part of indexing."""
    head = (tokens_of(title), tokens_of(labels))
    passages = passages_of(body)
    # What a very long text has more is its last passage, however long: nothing of it is lost.
    if len(passages) > LAST_PASSAGE:
        passages[LAST_PASSAGE:] = [list(itertools.chain(*passages[LAST_PASSAGE:]))]
    first = (_line(head[0]), _line(head[1]), _line(passages[0]))
    others = (("", "", _line(passage)) for passage in passages[1:])
    return Tokens((first, *others), sum(map(len, (*head, *passages))))


def put(tx: Transaction, kind: str, texts: Sequence[tuple[int, Tokens]]) -> None:
    """Index texts by the ids of their rows; what the index held under these ids must have been dropped."""
    _insert(tx, kind, texts)
    if tx.indexed is not None:
        tx.indexed.setdefault(kind, set()).update(ref_id for ref_id, _ in texts)


def noted(tx: Transaction, kind: str) -> list[int]:
    """Return the ids of the texts of a kind that were indexed in this transaction, where it notes them."""
    return sorted((tx.indexed or {}).get(kind, ()))


def forget_noted(tx: Transaction) -> None:
    """Forget what was noted, at the end of a transaction."""
    if tx.indexed is not None:
        tx.indexed.clear()


def _insert(tx: Transaction, kind: str, texts: Iterable[tuple[int, Tokens]]) -> None:
    rows: list[tuple[int, str, str, str]] = []
    length = 0
    for ref_id, text in texts:
        first = number_of(kind, ref_id)
        rows += [(first + place, *columns) for place, columns in enumerate(text.passages)]
        length += text.length
    tx.executemany("INSERT INTO text_index(rowid, title, labels, body) VALUES (?, ?, ?, ?)", rows)
    _resize(tx, kind, len(rows), length)


def add(tx: Transaction, kind: str, ref_ids: Collection[int]) -> None:
    """Index rows that were just written, as they are stored."""
    for ids, _ in in_parts(ref_ids):
        put(tx, kind, list(_made(tx, kind, ids).items()))


def _made(tx: Transaction, kind: str, ref_ids: Collection[int]) -> dict[int, Tokens]:
    marks, ids = in_list(ref_ids)
    rows = tx.execute(f"{_SOURCES[kind]} WHERE {_number(kind)} IN ({marks})", ids).fetchall()
    return {row[0]: tokens(title=row[1], labels=row[2], body=row[3]) for row in rows}


def replace(tx: Transaction, kind: str, ref_ids: Collection[int]) -> None:
    """Index rows that were changed, or removed, as they are stored now."""
    drop(tx, kind, ref_ids)
    add(tx, kind, ref_ids)


def fill(tx: Transaction, kinds: Iterable[str] = tuple(_SOURCES)) -> Iterator[int]:
    """Index all rows of some kinds, none of which may be indexed yet; yield the number of rows done so far."""
    done = 0
    for kind in kinds:
        rows = tx.execute(f"{_SOURCES[kind]} ORDER BY 1").fetchall()
        for start in range(0, len(rows), _FILLED_AT_ONCE):
            chunk = rows[start : start + _FILLED_AT_ONCE]
            _insert(tx, kind, [(row[0], tokens(title=row[1], labels=row[2], body=row[3])) for row in chunk])
            done += len(chunk)
            yield done


def stored(tx: Transaction) -> int:
    """Return how many rows there are to index."""
    counts = " UNION ALL ".join(f"SELECT COUNT(*) AS texts FROM ({source}) one" for source in _SOURCES.values())
    (rows,) = tx.execute(f"SELECT SUM(texts) FROM ({counts}) counted").fetchone()
    return int(rows)


@dataclass(frozen=True, slots=True)
class Comparison:
    """A kind of texts as they are stored and as they are indexed.

    wrong: the ids of texts that are indexed otherwise, or not, or are not there. counted: the number of passages and of
    tokens that there should be, and those that are written down.
    """

    kind: str
    wrong: tuple[int, ...]
    counted: tuple[tuple[int, int], tuple[int, int]]


def compare(tx: Transaction) -> Iterator[Comparison]:
    """Compare the index with what is stored, kind by kind. Raises StoreCorrupt where it cannot be read."""
    with tx.words.told_as_damage():
        yield from _compare(tx)


def _compare(tx: Transaction) -> Iterator[Comparison]:
    written = {
        code: (texts, tokens) for code, texts, tokens in tx.execute("SELECT kind, texts, tokens FROM text_sizes")
    }
    for kind, code in CODES.items():
        wrong: set[int] = set()
        passages = length = 0
        first = code << KIND_SHIFT
        rows = tx.execute(f"{_SOURCES[kind]} ORDER BY 1")
        while True:
            batch = rows.fetchmany(_FILLED_AT_ONCE)
            last = number_of(kind, batch[-1][0], LAST_PASSAGE) if batch else ((code + 1) << KIND_SHIFT) - 1
            expected: dict[int, tuple[str, ...]] = {}
            for ref_id, title, labels, body in batch:
                text = tokens(title=title, labels=labels, body=body)
                expected.update(enumerate(text.passages, number_of(kind, ref_id)))
                length += text.length
            passages += len(expected)
            within = "SELECT rowid, title, labels, body FROM text_index WHERE rowid BETWEEN ? AND ?"
            indexed = {row[0]: row[1:] for row in tx.execute(within, (first, last))}
            numbers = (number for number in expected.keys() | indexed if expected.get(number) != indexed.get(number))
            wrong.update((number & _IDS) >> _PASSAGE_BITS for number in numbers)
            if not batch:
                break
            first = last + 1
        yield Comparison(kind, tuple(sorted(wrong)), ((passages, length), written.get(code, (0, 0))))


def drop(tx: Transaction, kind: str, ref_ids: Collection[int]) -> None:
    """Take texts out of the index, and their vectors away; ids that are not in it are nothing."""
    drop_vectors(tx, kind, ref_ids)
    for ids, _ in in_parts(ref_ids):
        rows = tx.words.of_texts(tx, [number_of(kind, ref_id) for ref_id in {*ids}])
        tx.executemany("DELETE FROM text_index WHERE rowid = ?", [(row[0],) for row in rows])
        _resize(tx, kind, -len(rows), -sum(len(column.split()) for row in rows for column in row[1:]))


def drop_vectors(tx: Transaction, kind: str, ref_ids: Iterable[int]) -> None:
    """Remove the vectors of texts, and count them for the indexes that others hold in memory."""
    for ids, marks in in_parts(ref_ids):
        gone = tx.execute(f"DELETE FROM vectors WHERE kind = ? AND ref_id IN ({marks})", (CODES[kind], *ids)).rowcount
        if gone:
            tx.execute("UPDATE counters SET value = value + ? WHERE name = 'vectors_removed'", (gone,))


def texts(tx: Transaction, kind: str, ref_ids: Collection[int]) -> list[Text]:
    """Return the texts of rows, as they are stored."""
    return [
        text
        for ids, marks in in_parts(ref_ids)
        for text in _texts(tx, kind, f"WHERE {_number(kind)} IN ({marks})", ids)
    ]


def texts_without_vectors(tx: Transaction, kind: str, fingerprint: str, after: int, most: int) -> list[Text]:
    """Return the first texts of a kind behind an id that have no vectors with a fingerprint."""
    condition = f"WHERE {_number(kind)} > ? AND {_lacks_vectors(kind)} ORDER BY 1 LIMIT ?"
    return _texts(tx, kind, condition, [after, CODES[kind], fingerprint, most])


def count_without_vectors(tx: Transaction, kind: str, fingerprint: str) -> int:
    """Return how many texts of a kind have no vectors with a fingerprint."""
    counted = f"SELECT COUNT(*) FROM ({_SOURCES[kind]} WHERE {_lacks_vectors(kind)}) lacking"
    (count,) = tx.execute(counted, (CODES[kind], fingerprint)).fetchone()
    return int(count)


def _texts(tx: Transaction, kind: str, condition: str, parameters: Sequence[object]) -> list[Text]:
    rows = tx.execute(f"{_SOURCES[kind]} {condition}", parameters)
    return [Text(ref_id, title, body) for ref_id, title, _, body in rows]


def _lacks_vectors(kind: str) -> str:
    return f"""NOT EXISTS (SELECT 1 FROM vectors v
                   WHERE v.kind = ? AND v.ref_id = {_number(kind)} AND v.passage = 0 AND v.fingerprint = ?)"""


def _number(kind: str) -> str:
    return "t.num" if kind in _NUMBERED else "t.id"


def _line(tokens: Sequence[str]) -> str:
    return f" {'  '.join(tokens)} " if tokens else ""


def _resize(tx: Transaction, kind: str, texts: int, tokens: int) -> None:
    if texts:
        tx.execute(
            """INSERT INTO text_sizes(kind, texts, tokens) VALUES (?, ?, ?)
               ON CONFLICT (kind) DO UPDATE SET texts = text_sizes.texts + excluded.texts,
                   tokens = text_sizes.tokens + excluded.tokens""",
            (CODES[kind], texts, tokens),
        )


def sizes(tx: Transaction) -> dict[str, tuple[int, int]]:
    """Return the number of passages and of tokens by kind."""
    return {KINDS[code]: (texts, tokens) for code, texts, tokens in tx.execute("SELECT * FROM text_sizes")}


class Vocabulary:
    """In how many passages tokens are: a look-up asks every segment of FTS5, and counts one by one.

    All are remembered until anything is written, by whomever. Those of common ones outlast that, and are counted anew
    when the index has grown or shrunk by a tenth: how telling a common word is changes slowly.
    """

    def __init__(self) -> None:
        self._common: dict[str, int] = {}
        self._at_least: dict[str, int] = {}  # of common ones that were not counted to the end
        self._counted_at = 0
        self._local = threading.local()  # a thread has its own connection, whose states only it can compare

    def frequencies(self, tx: Transaction, tokens: Iterable[str]) -> dict[str, int]:
        """Return in how many passages each token is."""
        counted = self._counted_in(tx)
        found = {token: self._common.get(token) or counted.get(token, -1) for token in tokens}
        unknown = [token for token, number in found.items() if number < 0]
        for start in range(0, len(unknown), _COUNTED_AT_ONCE):
            chunk = unknown[start : start + _COUNTED_AT_ONCE]
            new = dict.fromkeys(chunk, 0) | tx.words.frequencies(tx, chunk)
            self._common.update((token, number) for token, number in new.items() if number >= _COMMON)
            found |= new
            if len(counted) < _MOST_REMEMBERED:
                counted |= new
        return found

    def rare(self, tx: Transaction, tokens: Iterable[str], most: int) -> dict[str, int]:
        """Return in how many passages those tokens are that are in at most so many.

        FTS5 need not walk through all passages of the others, which takes milliseconds among a million.
        """
        counted = self._counted_in(tx)
        enough = max(most + 1, _COMMON)
        found: dict[str, int] = {}
        unknown: list[str] = []
        for token in tokens:
            number = self._common.get(token) or counted.get(token)
            if number is not None:
                found[token] = number
            elif self._at_least.get(token, 0) <= most:
                unknown.append(token)
        for token, number in zip(unknown, tx.words.counted_up_to(tx, unknown, enough), strict=True):
            found[token] = number
            if number >= enough:
                self._at_least[token] = number
            elif number >= _COMMON:
                self._common[token] = number
            elif len(counted) < _MOST_REMEMBERED:
                counted[token] = number
        return {token: number for token, number in found.items() if number <= most}

    def _counted_in(self, tx: Transaction) -> dict[str, int]:
        """Return what was counted in the state of the store that a transaction sees, to which may be added."""
        state = tx.words.state(tx)
        if state is None:
            return {}  # what it writes may yet be rolled back, and no number would tell
        if getattr(self._local, "state", None) != state:
            self._local.state = state
            self._local.counted = {}
        counted: dict[str, int] = self._local.counted
        return counted

    def notice(self, texts: int) -> None:
        """Forget what was counted when the index had another size."""
        if abs(texts - self._counted_at) > self._counted_at // 10:
            self._common.clear()
            self._at_least.clear()
            self._counted_at = texts


def prefix_frequency(tx: Transaction, prefix: str) -> int:
    """Return how often tokens that begin so are in passages."""
    return tx.words.prefix_frequency(tx, prefix)


def spellings(tx: Transaction, token: str) -> list[str]:
    """Return the tokens of the index that begin with the same two letters and are about as long."""
    return tx.words.spellings(tx, token[:2], len(token) - 2, len(token) + 2)


def candidates(
    tx: Transaction, tokens: Mapping[str, bool], known: Mapping[str, int], kinds: Collection[str], at_once: int
) -> Iterator[list[Passage]]:
    """Yield the passages that hold all of the tokens, then the others that hold some, some at once.

    tokens: whether each is only the beginning of one. known: their frequencies. Where there are few matches all of them
    are looked at anyway, in one order.
    """
    passages = _all_then_some(tx, tokens, known, kinds, at_once)
    while batch := list(itertools.islice(passages, at_once)):
        yield batch


def _all_then_some(
    tx: Transaction, tokens: Mapping[str, bool], known: Mapping[str, int], kinds: Collection[str], at_once: int
) -> Iterator[Passage]:
    rarest_first = sorted(filter(known.get, tokens), key=lambda one: (known[one], one))
    matches = sum(known[token] for token in rarest_first)
    if matches <= _READ_WHOLE * at_once:
        yield from _few(tx, {token: tokens[token] for token in rarest_first}, kinds, scored=matches > at_once)
        return
    yielded: set[int] = set()
    if len(rarest_first) > 1:
        every = {token: tokens[token] for token in rarest_first}
        for batch in _matching(tx, every, kinds, at_once, most=known[rarest_first[0]], every=True):
            yielded |= {passage.number for passage in batch}
            yield from batch
    for batch in _holding_some(tx, tokens, known, kinds, at_once):
        yield from (passage for passage in batch if passage.number not in yielded)


def _few(tx: Transaction, tokens: Mapping[str, bool], kinds: Collection[str], *, scored: bool) -> list[Passage]:
    """Return all passages that hold some of the tokens; where they are scored, in the order of `candidates`.

    A statement that reads them all takes less time than two that leave the order to FTS5.
    """
    if not tokens:
        return []
    if not scored:
        return passages(tx.words.holding(tx, tokens, _bits(kinds)))
    # Those of other kinds as well: in how many texts a word is makes its weight.
    codes = {CODES[kind] for kind in kinds}
    ranked = as_fts5_ranks(tx, passages(tx.words.holding(tx, tokens)), tokens)
    return [passage for passage in ranked if passage.number >> KIND_SHIFT in codes]


def as_fts5_ranks(tx: Transaction, matching: Sequence[Passage], tokens: Mapping[str, bool]) -> list[Passage]:
    """Return all that match some tokens, in the order of their numbers, as `candidates` orders them.

    FTS5 would look every token up once more, and the length of every text.
    """
    known = sizes(tx).values()
    texts = max(sum(texts for texts, _ in known), len(matching))
    average = max(sum(length for _, length in known), 1) / texts
    lines = [title + labels + body for _, title, labels, body in matching]
    damping = [_FTS5_K1 * (1 - _FTS5_B + _FTS5_B * (line.count("  ") + 1) / average) for line in lines]
    scores = [0.0] * len(lines)
    lacking = [len(tokens)] * len(lines)
    for token, prefix in tokens.items():
        pattern = f" {token}" if prefix else f" {token} "
        rows = [row for row, line in enumerate(lines) if pattern in line]
        weight = max(math.log((texts - len(rows) + 0.5) / (len(rows) + 0.5)), _FTS5_LEAST)
        for row in rows:
            count = lines[row].count(pattern)
            scores[row] -= weight * (count * (_FTS5_K1 + 1) / (count + damping[row]))
            lacking[row] -= 1
    order = sorted((lack > 0, score, row) for row, (lack, score) in enumerate(zip(lacking, scores, strict=True)))
    return [matching[row] for _, _, row in order]


def passages(rows: Sequence[tuple[Any, ...]]) -> list[Passage]:
    """Return rows of the index as passages; raise StoreCorrupt for one whose text is gone."""
    read = list(map(Passage._make, rows))
    if any(passage[1] is None for passage in read):
        raise StoreCorrupt(_DAMAGED)
    return read


def first_candidates(
    tx: Transaction, tokens: Iterable[str], known: Mapping[str, int], kinds: Collection[str], most: int
) -> list[Passage]:
    """Return the first of the passages that hold some of the tokens."""
    return next(_holding_some(tx, dict.fromkeys(tokens, False), known, kinds, most), [])


def latest_candidates(tx: Transaction, tokens: Iterable[str], kinds: Collection[str], most: int) -> list[Passage]:
    """Return the passages written last that hold some of the tokens, which spares FTS5 to score them."""
    batches = tx.words.latest(tx, dict.fromkeys(tokens, False), _bits(kinds), most)
    return next(map(passages, batches), [])


def _holding_some(
    tx: Transaction, tokens: Mapping[str, bool], known: Mapping[str, int], kinds: Collection[str], at_once: int
) -> Iterator[list[Passage]]:
    """Yield the passages that hold some of the tokens.

    Of tokens that are in very many passages only the rarest ones are looked for.
    """
    chosen: dict[str, bool] = {}
    matches = 0
    for token in sorted(filter(known.get, tokens), key=lambda one: (known[one], one)):
        if not chosen or matches + known[token] <= MOST_MATCHES:
            matches += known[token]
            chosen[token] = tokens[token]
    if chosen:
        yield from _matching(tx, chosen, kinds, at_once, most=matches)


def _matching(
    tx: Transaction,
    tokens: Mapping[str, bool],
    kinds: Collection[str],
    at_once: int,
    *,
    most: int,
    every: bool = False,
) -> Iterator[list[Passage]]:
    """Yield the passages that hold some of the tokens, or every one, some at once, in the best order that can be had.

    most: how many there may be.
    """
    found = tx.words.best if most <= MOST_MATCHES else tx.words.latest
    return map(passages, found(tx, tokens, _bits(kinds), at_once, every=every))


def _bits(kinds: Collection[str]) -> int:
    """Return kinds as the bits of a number, by their codes."""
    return sum(1 << CODES[kind] for kind in kinds)


def check(tx: Transaction) -> None:
    """Raise StoreCorrupt when the index does not find a word that stands in it; asked when a query finds nothing."""
    row = tx.execute(
        "SELECT rowid, title || ' ' || labels || ' ' || body FROM text_index ORDER BY rowid DESC LIMIT 1"
    ).fetchone()
    if row is None or not row[1].split():
        return
    if not tx.words.finds(tx, row[1].split()[0], row[0]) or not sizes(tx):
        raise StoreCorrupt(_DAMAGED)


def stale(tx: Transaction, wanted: Collection[str]) -> list[Passage]:
    """Return the passages that hold all of some tokens and are not those of a stored text as it is now."""
    rows = map(Passage._make, tx.words.everything(tx))
    holding = [
        passage for passage in rows if all(any(f" {token} " in column for column in passage[1:]) for token in wanted)
    ]
    made: dict[tuple[str, int], Tokens] = {}
    for kind in KINDS:
        for ids, _ in in_parts({ref_id for of_kind, ref_id in (one.item for one in holding) if of_kind == kind}):
            made |= {(kind, ref_id): text for ref_id, text in _made(tx, kind, ids).items()}
    return [one for one in holding if one.item not in made or tuple(one[1:]) not in made[one.item].passages]
