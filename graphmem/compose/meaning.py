"""What means much the same as a query: the vectors of a memory, kept in arrays, and their cosines."""

import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from graphmem.compose.evidence import Item
from graphmem.compose.pool import Pool, admit_turns, heard
from graphmem.config import Ranking
from graphmem.core.embedding import Embedder, vectors_of
from graphmem.core.ranking import scaled
from graphmem.records import history
from graphmem.records.history import Turn
from graphmem.store import text_index, vectors
from graphmem.store.text_index import Passage
from graphmem.store.transaction import Transaction
from graphmem.store.vectors import StoredVector

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_Number = TypeVar("_Number", bound="np.generic")
_BATCHES = 10


@dataclass(frozen=True, slots=True)
class Near:
    """A passage without its words, and how much closer to the query it is than the average: 1 for the closest."""

    passage: Passage
    share: float


class MeaningIndex:
    """The vectors of one embedder in memory; before each use it reads what was written since, by any process."""

    def __init__(self, embedder: Embedder) -> None:
        import numpy as np  # takes 60 ms: only who has an embedder pays it

        self._embedder = embedder
        self._lock = threading.Lock()
        self._state = (0, 0)
        # Row by row: the id of a vector, the kind and the number of its passage, and the vector. The arrays have
        # spare room, so that one more needs no copy of all.
        self._count = 0
        self._places = np.empty((0, 3), dtype=np.int64)
        self._vectors = np.empty((0, embedder.dimensions), dtype=np.float32)

    def nearest(self, tx: Transaction, text: str, kinds: Collection[str], batch: int) -> Iterator[list[Near]]:
        """Yield the passages of some kinds that are closer to a text than the average one, the closest first.

        Ten batches at the most, so that what may not be shown costs little.
        """
        import numpy as np

        places, stored = self._caught_up(tx)
        wanted = np.flatnonzero(np.isin(places[:, 1], [text_index.CODES[kind] for kind in kinds]))
        (query,) = vectors_of(self._embedder, [text])
        cosines = (stored @ query)[wanted]
        best = float(cosines.max(initial=0.0))
        if best <= 0:
            return
        average = max(min(float(cosines.mean()), best / 2), 0.0)  # one alone is not its own average
        order = np.argpartition(-cosines, min(_BATCHES * batch, len(cosines)) - 1)[: _BATCHES * batch]
        order = order[np.lexsort((wanted[order], -cosines[order]))]
        order = order[cosines[order] > average]
        shares = (cosines[order] - average) / (best - average)
        near = [
            Near(Passage(number, "", "", ""), share)
            for number, share in zip(places[wanted[order], 2].tolist(), shares.tolist(), strict=True)
        ]
        for start in range(0, len(near), batch):
            yield near[start : start + batch]

    def _caught_up(self, tx: Transaction) -> "tuple[NDArray[np.int64], NDArray[np.float32]]":
        with self._lock:
            state = vectors.state(tx)
            if state[1] != self._state[1]:
                self._forget(vectors.ids(tx, self._embedder.fingerprint))
            if state != self._state:
                last = int(self._places[: self._count, 0].max(initial=0))
                for chunk in vectors.behind(tx, self._embedder.fingerprint, last):
                    self._append(chunk)
                self._state = state
            return self._places[: self._count], self._vectors[: self._count]

    def _forget(self, stored: Collection[int]) -> None:
        """Leave out what is not stored any more; all of it where something came back, as an aborted removal does."""
        import numpy as np

        ids = self._places[: self._count, 0]
        numbers = np.fromiter(stored, dtype=np.int64, count=len(stored))
        kept = np.isin(ids, numbers)
        if int(kept.sum()) < int((numbers <= ids.max(initial=0)).sum()):
            kept[:] = False
        self._places, self._vectors = self._places[: self._count][kept], self._vectors[: self._count][kept]
        self._count = len(self._places)

    def _append(self, rows: Sequence[StoredVector]) -> None:
        import numpy as np

        size = self._vectors.itemsize * self._embedder.dimensions
        count = self._count + len(rows)
        if count > len(self._places):
            self._places = _grown(self._places, count + count // 4)
            self._vectors = _grown(self._vectors, count + count // 4)
        # One without direction, or made for other dimensions, is close to nothing.
        packed = b"".join(row.vector if len(row.vector) == size else bytes(size) for row in rows)
        new = slice(self._count, count)
        self._places[new] = [(row.id, row.kind, row.passage) for row in rows]
        self._vectors[new] = np.frombuffer(packed, dtype="<f4").reshape(len(rows), -1)
        self._count = count


def _grown(rows: "NDArray[_Number]", capacity: int) -> "NDArray[_Number]":
    import numpy as np

    larger = np.empty((capacity, rows.shape[1]), dtype=rows.dtype)
    larger[: len(rows)] = rows
    return larger


def of_meaning(pool: Pool, meanings: MeaningIndex, ranking: Ranking) -> dict[Item, float]:
    """Score what means much the same as the query, and what was said right beside it."""
    request = pool.request
    most = ranking.meaning_of * request.effort
    shares: dict[Item, float] = {}
    for batch in meanings.nearest(pool.tx, request.text, request.indexed_kinds, most):
        share_of = {near.passage.number: near.share for near in batch}
        for item, passage in heard(pool, [near.passage for near in batch]):
            if item not in shares:  # the closest of its passages comes first
                shares[item] = share_of[passage.number]
                pool.nearest[item] = passage
        if len(shares) >= most:
            break
    near = [turn for part, turn in pool.turns.items() if ("part", part) in shares]
    admit_turns(pool, history.beside(pool.tx, near))
    return with_neighbours(shares, pool.turns.values(), ranking.meaning_beside)


def with_neighbours(shares: Mapping[Item, float], turns: Collection[Turn], share: float) -> dict[Item, float]:
    """Add to what means much the same a share of the better turn beside it: an answer seldom repeats its question."""
    said = {(turn.session_id, turn.seq): shares.get(("part", turn.id), 0.0) for turn in turns}
    lifted = dict(shares)
    for turn in turns:
        beside = max(said.get((turn.session_id, turn.seq + step), 0.0) for step in (-1, 1))
        if beside:
            item = ("part", turn.id)
            lifted[item] = shares.get(item, 0.0) + share * beside
    return scaled(lifted)
