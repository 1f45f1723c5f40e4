"""The in-memory index behind `enter_scene`: which emergent scene fits a situation best, exactly.

Each scene is a row of features with their masses, packed into numpy arrays; postings lead from a feature to the scenes
that may hold it. A scene that names people can only answer a situation that names one of them, so it is posted under
its people alone; any other scene is posted under all of its features. Candidates are taken from the rarest features
first, until what the remaining features weigh could no longer reach the threshold; then the rows themselves are scored,
so postings may hold scenes that have lost the feature.

A revision counter in the file tells whether the index is current; scenes that other threads or processes changed are
read again one by one from the change log. Only a reader that is older than the trimmed log loads everything once more.
"""

import sqlite3
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from graphmem.config import Config
from graphmem.core.keys import PERSON_KINDS, kind_of
from graphmem.core.situations import DIGITS, Situation, kept_features, of_kind, recall_ground

_Slots = npt.NDArray[np.int64]
_Floats = npt.NDArray[np.float64]
_Rows = npt.NDArray[np.void]

# One scene: where its cells lie, how many they are and how many would fit there, and the sums of their masses.
_ROW = np.dtype(
    [("scene", "i8"), ("strength", "i8"), ("visits", "f8"), ("mass", "f8"), ("identity", "f8"),
     ("first", "i8"), ("count", "i4"), ("room", "i4"), ("people", "i4")]
)  # fmt: skip
# One feature of one scene.
_CELL = np.dtype([("mass", "f8"), ("feature", "i4"), ("touched", "i4")])

_IDENTITY, _CHANNEL, _PERSON = 1, 2, 4
_NOBODY = 0
_NONE: _Slots = np.zeros(0, np.int64)
_NOTHING: _Floats = np.zeros(0)
# Below this many candidates a bound costs more than the scoring that it saves.
_BOUND_FROM = 64
_LEAST_TO_PACK = 4096

_SELECT_ROWS = """
    SELECT s.id, s.visits, s.strength, f.feature, f.mass, f.touched
    FROM scenes s JOIN scene_features f ON f.scene_id = s.id
    WHERE s.origin = 'emergent' AND s.visits > 0
"""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A scene that may be joined or recalled, with its score; ground as in `recall_ground`."""

    scene_id: int
    score: float
    strength: int
    ground: str = "score"


class SceneIndex:
    """Emergent scenes by their features. All methods may be called from any thread."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._lock = threading.RLock()
        self._clear()

    def _clear(self) -> None:
        self.revision = -1
        self._number: dict[str, int] = {}
        self._names: list[str] = []
        self._flags: npt.NDArray[np.int8] = np.zeros(16, np.int8)
        self._own: _Floats = np.zeros(16)
        self._slot: dict[int, int] = {}
        self._rows: _Rows = np.zeros(16, _ROW)
        self._rows_used = 0
        self._cells: _Rows = np.zeros(64, _CELL)
        self._cells_used = 0
        self._people: dict[frozenset[int], int] = {frozenset(): _NOBODY}
        self._people_names: list[tuple[str, ...]] = [()]
        self._posted_from: _Slots = np.zeros(1, np.int64)
        self._posted: _Slots = _NONE
        self._posted_since: dict[int, list[int]] = {}
        self._slack = 0

    def __len__(self) -> int:
        return len(self._slot)

    @property
    def nbytes(self) -> int:
        """Bytes held by the arrays, without the names of the features."""
        arrays = (self._flags, self._own, self._rows, self._cells, self._posted_from, self._posted)
        return sum(array.nbytes for array in arrays)

    # ---- keeping current

    def catch_up(self, tx: sqlite3.Connection, revision: int) -> None:
        """Bring the index to a revision of the file, which the open transaction sees."""
        with self._lock:
            if self.revision >= revision:
                return
            changed = self._changed_since(tx)
            if changed is None:
                self._clear()
                self._load(tx.execute(_SELECT_ROWS + " ORDER BY s.id"))
            else:
                for scene_id in changed:
                    self._remove(scene_id)
                    self._load(tx.execute(_SELECT_ROWS + " AND s.id = ?", (scene_id,)))
            self.revision = revision
            self._pack_when_due()

    def _changed_since(self, tx: sqlite3.Connection) -> list[int] | None:
        """Return the scenes changed since the last look, None when the log does not reach back that far."""
        if self.revision < 0:
            return None
        trimmed = tx.execute("SELECT value FROM counters WHERE name = 'scene_revision_trimmed'").fetchone()
        if trimmed and trimmed[0] > self.revision:
            return None
        return [
            scene_id
            for (scene_id,) in tx.execute(
                "SELECT DISTINCT scene_id FROM scene_changes WHERE revision > ? ORDER BY scene_id", (self.revision,)
            )
        ]

    def _load(self, found: Iterable[tuple[int, int, int, str, float, int]]) -> None:
        """Append scenes; the rows of one scene stand together."""
        scene_id, head, cells = 0, (0, 0), []
        for row in found:
            if row[0] != scene_id:
                self._append(scene_id, *head, cells)
                scene_id, head, cells = row[0], (row[1], row[2]), []
            cells.append((row[4], self._numbered(row[3]), row[5]))
        self._append(scene_id, *head, cells)

    def _numbered(self, feature: str) -> int:
        number = self._number.get(feature)
        if number is None:
            number = self._number[feature] = len(self._names)
            self._names.append(feature)
            self._slack += 1
            if number >= len(self._flags):
                self._flags, self._own = _grown(self._flags, number + 1), _grown(self._own, number + 1)
            kind = kind_of(feature)
            self._flags[number] = (
                (_IDENTITY if self._config.weight_of(kind) >= self._config.identity_floor else 0)
                | (_CHANNEL if kind == "chan" else 0)
                | (_PERSON if kind in PERSON_KINDS else 0)
            )
        return number

    def _append(self, scene_id: int, visits: int, strength: int, cells: list[tuple[float, int, int]]) -> None:
        if not cells:
            return
        slot = self._rows_used
        if slot >= len(self._rows):
            self._rows = _grown(self._rows, slot + 1)
        numbers = [cell[1] for cell in cells]
        flags = self._flags[numbers].tolist()
        people = frozenset(number for number, flag in zip(numbers, flags, strict=True) if flag & _PERSON)
        self._rows[slot] = (scene_id, strength, visits, 0.0, 0.0, 0, 0, 0, self._people_number(people))
        self._rows_used += 1
        self._slot[scene_id] = slot
        self._put_cells(slot, cells)
        for number in people or numbers:
            self._post(number, slot)

    def _people_number(self, people: frozenset[int]) -> int:
        number = self._people.get(people)
        if number is None:
            number = self._people[people] = len(self._people_names)
            self._people_names.append(tuple(self._names[feature] for feature in people))
        return number

    def _put_cells(self, slot: int, cells: Sequence[tuple[float, int, int]]) -> None:
        row = self._rows[slot]
        count = len(cells)
        if count > row["room"]:
            # A row that has grown once will grow again.
            room = count + (count // 2 if row["room"] else 0)
            self._slack += room
            first = self._cells_used
            if first + room > len(self._cells):
                self._cells = _grown(self._cells, first + room)
            self._cells_used += room
            row["first"], row["room"] = first, room
        first = int(row["first"])
        packed = np.array(cells, _CELL)
        self._cells[first : first + count] = packed
        row["count"] = count
        row["mass"] = packed["mass"].sum()
        row["identity"] = packed["mass"][(self._flags[packed["feature"]] & _IDENTITY) > 0].sum()

    def _remove(self, scene_id: int) -> None:
        slot = self._slot.pop(scene_id, None)
        if slot is not None:
            self._slack += int(self._rows[slot]["count"])
            self._rows[slot]["count"] = 0  # its postings are passed over from now on

    def _post(self, number: int, slot: int) -> None:
        self._posted_since.setdefault(number, []).append(slot)
        self._slack += 1

    def _pack_when_due(self) -> None:
        """Lay everything out anew once what was added or left behind since the last time is as much as what lives.

        So the work is a constant for each change, and features that no scene holds any more are forgotten.
        """
        if self._slack <= max(_LEAST_TO_PACK, 4 * len(self._slot)):
            return
        live = np.fromiter(self._slot.values(), np.int64, len(self._slot))
        rows = self._rows[live]
        where, starts = _spans(rows)
        cells = self._cells[where]
        held, numbers = np.unique(cells["feature"], return_inverse=True)
        names = [self._names[number] for number in held.tolist()]
        parties = [self._people_names[number] for number in rows["people"].tolist()]

        self._names, self._number = names, {name: number for number, name in enumerate(names)}
        self._flags = self._flags[held]
        self._own = np.zeros(len(held))
        self._people, self._people_names = {frozenset(): _NOBODY}, [()]
        rows["people"] = [self._people_number(frozenset(self._known(party))) for party in parties]
        rows["first"], rows["room"] = starts, rows["count"]
        cells["feature"] = numbers
        self._rows, self._rows_used = rows, len(rows)
        self._cells, self._cells_used = cells, len(cells)
        self._slot = {scene_id: slot for slot, scene_id in enumerate(rows["scene"].tolist())}

        slots = np.repeat(np.arange(len(rows)), rows["count"])
        posted = (rows["people"][slots] == _NOBODY) | ((self._flags[numbers] & _PERSON) > 0)
        order = np.argsort(numbers[posted], kind="stable")
        self._posted = slots[posted][order]
        counts = np.bincount(numbers[posted], minlength=len(held))
        self._posted_from = np.concatenate([[0], np.cumsum(counts)])
        self._posted_since = {}
        self._slack = 0

    def joined(self, revision: int, scene_id: int, situation: Situation, dropped: Iterable[str]) -> None:
        """Apply a visit that this process has committed as `revision`; a later look must not read it again."""
        with self._lock:
            if self.revision != revision - 1:
                return  # a reader came first and has it from the log, or nothing was loaded
            slot = self._slot[scene_id]
            row = self._rows[slot]
            row["strength"] += 1
            row["visits"] += 1
            known, cells = self._visited(slot, situation, int(row["visits"]))
            gone = {self._number[feature] for feature in dropped if feature in self._number}
            self._put_cells(
                slot, [(mass, number, touched) for number, (mass, touched) in cells.items() if number not in gone]
            )
            if row["people"] == _NOBODY:
                for number in cells:
                    if number not in known and number not in gone:
                        self._post(number, slot)
            self.revision = revision
            self._pack_when_due()

    def to_drop(self, scene_id: int, situation: Situation) -> list[str]:
        """Return the features that a scene has to give up when this situation joins it."""
        with self._lock:
            slot = self._slot[scene_id]
            row = self._rows[slot]
            if int(row["count"]) + len(situation.weights) <= self._config.scene_features:
                return []
            _, cells = self._visited(slot, situation, int(row["visits"]) + 1)
            features = {self._names[number]: cell for number, cell in cells.items()}
            return sorted(features.keys() - kept_features(features, self._config))

    def _visited(self, slot: int, situation: Situation, visit: int) -> tuple[set[int], dict[int, tuple[float, int]]]:
        """Return the features a scene had, and mass and last visit of each with one more visit counted."""
        row = self._rows[slot]
        held = self._cells[int(row["first"]) : int(row["first"] + row["count"])].tolist()
        cells = {number: (mass, touched) for mass, number, touched in held}
        known = set(cells)
        for feature, weight in situation.weights.items():
            number = self._numbered(feature)
            cells[number] = (cells.get(number, (0.0, 0))[0] + weight, visit)
        return known, cells

    # ---- finding

    def best(self, situation: Situation) -> Candidate | None:
        """Return the scene that the situation joins: the best score, then the strongest, then the oldest."""
        with self._lock:
            people = situation.peers | situation.groups
            if people:
                slots = self._with_people(people)
            else:
                slots = self._reaching(situation, self._config.join_score)
            if not len(slots):
                return None
            slots, scores = self._scored(slots, situation, self._config.join_score)
            if not len(slots):
                return None
            best = scores.max()
            if best < self._config.join_score:
                return None
            rows = self._rows[slots[scores == best]]
            first = min(range(len(rows)), key=lambda i: (-int(rows[i]["strength"]), int(rows[i]["scene"])))
            return Candidate(int(rows[first]["scene"]), float(best), int(rows[first]["strength"]))

    def answering(self, situation: Situation) -> list[Candidate]:
        """Return the scenes that a situation recalls, best first."""
        with self._lock:
            named = [self._posting(number) for number in self._known(situation.peers | situation.groups)]
            slots, scores = self._scored(np.unique(np.concatenate([_NONE, *named])), situation, 0.0, veto=False)
            found = []
            for row, score in zip(self._rows[slots], scores.tolist(), strict=True):
                if ground := recall_ground(situation, self._people_names[int(row["people"])]):
                    found.append(Candidate(int(row["scene"]), score, int(row["strength"]), ground))
            least = self._config.recall_score
            slots, scores = self._scored(np.unique(self._reaching(situation, least)), situation, least)
            fit = scores >= least
            for row, score in zip(self._rows[slots[fit]], scores[fit].tolist(), strict=True):
                found.append(Candidate(int(row["scene"]), score, int(row["strength"])))
            return sorted(found, key=lambda one: (-one.score, -one.strength, one.scene_id))

    def joins(self, scene_id: int, situation: Situation) -> bool:
        """Tell whether the situation would be admitted to the scene, whatever better scene there may be."""
        with self._lock:
            row = self._rows[self._slot[scene_id]]
            people = self._people_names[int(row["people"])]
            if of_kind(people, "peer") != situation.peers or of_kind(people, "peer_group") != situation.groups:
                return False
            _, scores = self._scored(np.array([self._slot[scene_id]]), situation, 0.0)
            return bool(len(scores)) and bool(scores[0] >= self._config.join_score)

    def profile(self, scene_id: int) -> Mapping[str, float]:
        """Return what a scene's turns contributed on average, by feature."""
        with self._lock:
            row = self._rows[self._slot[scene_id]]
            held = self._cells[int(row["first"]) : int(row["first"] + row["count"])].tolist()
            return {self._names[number]: mass / float(row["visits"]) for mass, number, _ in held}

    def _known(self, features: Iterable[str]) -> list[int]:
        return [number for feature in features if (number := self._number.get(feature)) is not None]

    def _posting(self, number: int) -> _Slots:
        held = _NONE
        if number + 1 < len(self._posted_from):
            held = self._posted[self._posted_from[number] : self._posted_from[number + 1]]
        since = self._posted_since.get(number)
        return np.concatenate([held, since]).astype(np.int64) if since else held

    def _with_people(self, people: frozenset[str]) -> _Slots:
        """Scenes that name exactly these people and groups."""
        numbers = frozenset(self._known(people))
        party = self._people.get(numbers) if len(numbers) == len(people) else None
        if party is None:
            return _NONE
        shortest = min((self._posting(number) for number in numbers), key=len)
        return shortest[self._rows["people"][shortest] == party]

    def _reaching(self, situation: Situation, least: float) -> _Slots:
        """Scenes without people that could reach a score: those with one of the rarest features."""
        weights, identity = situation.weights, set(situation.identity)
        rest, rest_identity = sum(weights.values()), sum(weights[key] for key in identity)
        # Rounded scores: what rounds up to the threshold reaches it.
        enough, enough_identity = (least - 10.0**-DIGITS) * rest, (least - 10.0**-DIGITS) * rest_identity
        people = situation.peers | situation.groups
        postings = {
            feature: _NONE if number is None or feature in people else self._posting(number)
            for feature, number in ((feature, self._number.get(feature)) for feature in weights)
        }
        taken = []
        for feature, posting in sorted(postings.items(), key=lambda one: len(one[1])):
            if rest < enough and (not rest_identity or rest_identity < enough_identity):
                break
            if len(posting):
                taken.append(posting)
            rest -= weights[feature]
            if feature in identity:
                rest_identity -= weights[feature]
        if not taken:
            return _NONE
        return taken[0] if len(taken) == 1 else np.unique(np.concatenate(taken))

    def _scored(
        self, slots: _Slots, situation: Situation, least: float, *, veto: bool = True
    ) -> tuple[_Slots, _Floats]:
        """Return the live ones among the slots that may reach a score, and the exact score of each, rounded.

        With veto, those that name channels of which the situation shares none score 0.
        """
        rows = self._rows[slots]
        weight = sum(situation.weights.values())
        identity_weight = sum(situation.weights[key] for key in situation.identity)
        alive = rows["count"] > 0
        if least and len(slots) > _BOUND_FROM:
            in_all = _bound(weight, rows["mass"] / rows["visits"])
            in_identity = _bound(identity_weight, rows["identity"] / rows["visits"])
            alive &= np.maximum(in_all, in_identity) >= least - 10.0**-DIGITS
        if not alive.all():
            slots, rows = slots[alive], rows[alive]
        if not len(slots):
            return _NONE, _NOTHING
        where, starts = _spans(rows)
        cells = self._cells[where]
        features = cells["feature"]
        numbers = self._known(situation.weights)
        own = self._own
        own[numbers] = [situation.weights[self._names[number]] for number in numbers]
        here = own[features]
        own[numbers] = 0.0
        flags = self._flags[features]
        shared = np.minimum(here, cells["mass"] / np.repeat(rows["visits"], rows["count"]))
        in_all = np.add.reduceat(shared, starts)
        in_identity = np.add.reduceat(np.where(flags & _IDENTITY, shared, 0.0), starts)
        scores = in_all / (weight + rows["mass"] / rows["visits"] - in_all)
        if identity_weight:
            union = identity_weight + rows["identity"] / rows["visits"] - in_identity
            scores = np.maximum(scores, in_identity / union)
        if veto and situation.channels:
            channel = (flags & _CHANNEL) > 0
            foreign = np.logical_or.reduceat(channel, starts) & ~np.logical_or.reduceat(channel & (here > 0), starts)
            scores[foreign] = 0.0
        return slots, np.round(scores, DIGITS)


def _grown(array: npt.NDArray[np.generic], need: int) -> "npt.NDArray[np.generic]":
    grown = np.zeros(max(need, len(array) * 3 // 2), array.dtype)
    grown[: len(array)] = array
    return grown


def _spans(rows: _Rows) -> tuple[_Slots, _Slots]:
    """Return the places of all cells of the rows, and where among them each row starts."""
    counts = rows["count"].astype(np.int64)
    ends = np.cumsum(counts)
    starts = ends - counts
    where = np.arange(int(ends[-1]) if len(ends) else 0) + np.repeat(rows["first"] - starts, counts)
    return where, starts


def _bound(own: float, theirs: _Floats) -> _Floats:
    """The highest similarity that two sums of weights allow: the lesser over the greater."""
    least, greatest = np.minimum(own, theirs), np.maximum(own, theirs)
    return np.divide(least, greatest, out=np.zeros_like(theirs), where=greatest > 0)
