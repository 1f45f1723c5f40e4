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
from collections.abc import Iterable
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from graphmem.config import Config
from graphmem.core.keys import kind_of
from graphmem.core.situations import (
    DIGITS,
    SOFT,
    Situation,
    names_person,
    place_of,
    recall_ground,
    surplus_features,
)

_Slots = npt.NDArray[np.int64]
_Rows = npt.NDArray[np.void]
_Masses = npt.NDArray[np.float64]
_Item = TypeVar("_Item", bound=np.generic)
_Cell = tuple[float, int, int]

# One scene: where its cells lie, how many they are and how many would fit there, the sums of their masses (of all, of
# identity features), which people it names, and how many channels.
_ROW = np.dtype(
    [("scene", "i8"), ("strength", "i8"), ("visits", "f8"), ("mass", "f8"), ("identity", "f8"),
     ("first", "i8"), ("count", "i4"), ("room", "i4"), ("people", "i4"), ("channels", "i4")]
)  # fmt: skip

_NAMES_PERSON = np.array([names_person(place) for place in range(2 * SOFT)])
_NOBODY = 0
_NONE: _Slots = np.zeros(0, np.int64)
# Up to this many candidates a loop over plain numbers is faster than the dozen calls that numpy needs.
_FEW = 12
# Below this many candidates a bound costs more than the scoring that it saves.
_BOUND_FROM = 64
_LEAST_TO_PACK = 4096
_ROUNDING = 0.5 * 10.0**-DIGITS

_SELECT_ROWS = """
    SELECT s.id, s.visits, s.strength, f.feature, f.mass, f.touched
    FROM scenes s JOIN scene_features f ON f.scene_id = s.id
    WHERE s.origin = 'emergent' AND s.visits > 0
"""


class _Query(NamedTuple):
    """A situation in the numbers of the index; features that no scene has only add to the sums."""

    situation: Situation
    numbers: dict[str, int]
    own: dict[int, float]


class Candidate(NamedTuple):
    """A scene that may be joined or recalled: its score, rounded, and the ground of `recall_ground`.

    slot: its place in the index; it holds under the index's lock, and in a write block until its end.
    features: how many it has. query: what found it.
    """

    scene_id: int
    score: float
    strength: int
    slot: int
    features: int
    query: _Query
    ground: str = "score"

    @property
    def rank(self) -> tuple[float, int, int]:
        """Sorts the best first: the highest score, then the strongest, then the oldest."""
        return -self.score, -self.strength, self.scene_id


class SceneIndex:
    """Emergent scenes by their features; empty until `catch_up`. All methods may be called from any thread."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._lock = threading.RLock()
        self._channel_place = place_of("chan", config)
        self._clear()

    def _clear(self) -> None:
        self.revision = -1
        self._number: dict[str, int] = {}
        self._names: list[str] = []
        self._places = bytearray()  # the rank of a feature's kind; one byte each
        self._slot: dict[int, int] = {}
        self._rows: _Rows = np.zeros(16, _ROW)
        self._rows_used = 0
        # One cell is one feature of one scene, in three columns: single numbers are faster to set there than in rows.
        self._mass: _Masses = np.zeros(64)
        self._feature: npt.NDArray[np.int32] = np.zeros(64, np.int32)
        self._touched: npt.NDArray[np.int32] = np.zeros(64, np.int32)
        self._cells_used = 0
        self._cells_packed = 0
        self._people: dict[frozenset[int], int] = {frozenset(): _NOBODY}
        self._people_names: list[tuple[str, ...]] = [()]
        self._posted_from: _Slots = np.zeros(1, np.int64)
        self._posted: _Slots = _NONE
        self._posted_since: dict[int, list[int]] = {}
        self._slack = 0

    def __len__(self) -> int:
        return len(self._slot)

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
        scene_id, head = 0, (0, 0)
        cells: list[_Cell] = []
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
            self._places.append(place_of(kind_of(feature), self._config))
            self._slack += 1
        return number

    def _append(self, scene_id: int, visits: int, strength: int, cells: list[_Cell]) -> None:
        if not cells:
            return
        slot = self._rows_used
        if slot >= len(self._rows):
            self._rows = _grown(self._rows, slot + 1)
        numbers = [number for _, number, _ in cells]
        people = frozenset(number for number in numbers if names_person(self._places[number]))
        self._rows[slot] = (scene_id, strength, visits, 0.0, 0.0, 0, 0, 0, self._people_number(people), 0)
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

    def _put_cells(self, slot: int, cells: list[_Cell]) -> None:
        row = self._rows[slot]
        count = len(cells)
        if count > row["room"]:
            # A row that has grown once will grow again.
            room = count + (count // 2 if row["room"] else 0)
            self._slack += int(row["room"])
            row["first"], row["room"] = self._cells_used, room
            self._cells_used += room
            if self._cells_used > len(self._mass):
                self._mass = _grown(self._mass, self._cells_used)
                self._feature = _grown(self._feature, self._cells_used)
                self._touched = _grown(self._touched, self._cells_used)
        self._set_cells(int(row["first"]), cells)
        row["count"] = count
        row["mass"] = sum(mass for mass, _, _ in cells)
        row["channels"] = sum(self._places[number] == self._channel_place for _, number, _ in cells)
        row["identity"] = sum(mass for mass, number, _ in cells if self._places[number] < SOFT)

    def _set_cells(self, first: int, cells: list[_Cell]) -> None:
        span = slice(first, first + len(cells))
        self._mass[span], self._feature[span], self._touched[span] = zip(*cells, strict=True)

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
        if self._slack <= max(_LEAST_TO_PACK, self._cells_packed):
            return
        live = np.fromiter(self._slot.values(), np.int64, len(self._slot))
        rows = self._rows[live]
        where, starts = _spans(rows)
        held, numbers = np.unique(self._feature[where], return_inverse=True)
        names = [self._names[number] for number in held.tolist()]
        parties = [self._people_names[number] for number in rows["people"].tolist()]

        self._names, self._number = names, {name: number for number, name in enumerate(names)}
        self._places = bytearray(np.frombuffer(self._places, np.uint8)[held])
        self._people, self._people_names = {frozenset(): _NOBODY}, [()]
        rows["people"] = [self._people_number(frozenset(self._number[name] for name in party)) for party in parties]
        rows["first"], rows["room"] = starts, rows["count"]
        self._rows, self._rows_used = rows, len(rows)
        self._mass, self._feature, self._touched = self._mass[where], numbers.astype(np.int32), self._touched[where]
        self._cells_used = self._cells_packed = len(where)
        self._slot = {scene_id: slot for slot, scene_id in enumerate(rows["scene"].tolist())}

        slots = np.repeat(np.arange(len(rows)), rows["count"])
        places = np.frombuffer(self._places, np.uint8)[numbers]
        posted = (rows["people"][slots] == _NOBODY) | _NAMES_PERSON[places]
        order = np.argsort(numbers[posted], kind="stable")
        self._posted = slots[posted][order]
        counts = np.bincount(numbers[posted], minlength=len(held))
        self._posted_from = np.concatenate([[0], np.cumsum(counts)])
        self._posted_since = {}
        self._slack = 0

    def joined(self, revision: int, match: Candidate, dropped: Iterable[str]) -> None:
        """Apply a visit that this process has committed as `revision`, so that it need not be read again.

        Does nothing when a reader has it from the log already.
        """
        with self._lock:
            if self.revision != revision - 1:
                return
            situation, numbers, _ = match.query
            row = self._rows[match.slot].item()
            scene, strength, visits, mass, identity, first, count, room, people, channels = row
            places = dict(zip(self._feature[first : first + count].tolist(), range(first, first + count), strict=True))
            fresh = []
            for feature, weight in situation.weights.items():
                number = numbers[feature] if feature in numbers else self._numbered(feature)
                if number in places:
                    self._mass[places[number]] += weight
                    self._touched[places[number]] = visits + 1
                else:
                    fresh.append((weight, number, visits + 1))
                    channels += self._places[number] == self._channel_place
            fits = not dropped and count + len(fresh) <= room
            if fits and fresh:
                self._set_cells(first + count, fresh)
                count += len(fresh)
            mass, identity = mass + situation.weight, identity + situation.identity_weight
            row = (scene, strength + 1, visits + 1, mass, identity, first, count, room, people, channels)
            self._rows[match.slot] = row
            if not fits:
                gone = {self._number[feature] for feature in dropped}
                cells = self._cells_at(first, count) + fresh
                self._put_cells(match.slot, [cell for cell in cells if cell[1] not in gone])
            if people == _NOBODY:
                for _, number, _ in fresh:
                    self._post(number, match.slot)
            self.revision = revision
            self._pack_when_due()

    def surplus(self, match: Candidate) -> list[str]:
        """Return the features that a scene has to give up when the situation that found it joins."""
        weights = match.query.situation.weights
        if match.features + len(weights) <= self._config.scene_features:
            return []
        with self._lock:
            visit = int(self._rows[match.slot]["visits"]) + 1
            features = {
                self._names[number]: (mass, touched, self._places[number])
                for mass, number, touched in self._cells_of(match.slot)
            }
            for feature, weight in weights.items():
                mass, _, place = features.get(feature) or (0.0, 0, place_of(kind_of(feature), self._config))
                features[feature] = (mass + weight, visit, place)
            return surplus_features(features, self._config)

    def _cells_at(self, first: int, count: int) -> list[_Cell]:
        span = slice(first, first + count)
        columns = (self._mass[span], self._feature[span], self._touched[span])
        return list(zip(*(column.tolist() for column in columns), strict=True))

    def _cells_of(self, slot: int) -> list[_Cell]:
        row = self._rows[slot]
        return self._cells_at(int(row["first"]), int(row["count"]))

    # ---- finding

    def best(self, situation: Situation) -> Candidate | None:
        """Return the scene that the situation joins: the best score, then the strongest, then the oldest."""
        with self._lock:
            query = self._query(situation)
            party = _NOBODY
            if situation.people:
                if (known := self._party(query)) is None:
                    return None
                party, slots = known
            else:
                slots = self._reaching(query, self._config.join_score)
            found = self._scored(slots, query, self._config.join_score, party=party)
            return min(found, key=lambda one: one.rank) if len(found) > 1 else next(iter(found), None)

    def answering(self, situation: Situation) -> list[Candidate]:
        """Return the scenes that a situation recalls, best first."""
        with self._lock:
            query = self._query(situation)
            named = [self._posting(query.numbers[one]) for one in situation.people if one in query.numbers]
            named += [self._posting(query.numbers[one]) for one in situation.groups if one in query.numbers]
            found = [
                one._replace(ground=ground)
                for one in self._scored(np.unique(np.concatenate([_NONE, *named])), query, 0.0, veto=False)
                if (ground := recall_ground(situation, self._people_names[int(self._rows[one.slot]["people"])]))
            ]
            least = self._config.recall_score
            found += self._scored(np.unique(self._reaching(query, least)), query, least)
            return sorted(found, key=lambda one: one.rank)

    def explained(self, situation: Situation) -> list[tuple[Candidate, bool, dict[str, float]]]:
        """Return what `answering` does, with whether it is the scene that the situation joins, and its profile."""
        with self._lock:
            best = self.best(situation)
            joined = best and best.scene_id
            return [(one, one.scene_id == joined, self._profile(one)) for one in self.answering(situation)]

    def _profile(self, match: Candidate) -> dict[str, float]:
        visits = float(self._rows[match.slot]["visits"])
        return {self._names[number]: mass / visits for mass, number, _ in self._cells_of(match.slot)}

    def _query(self, situation: Situation) -> _Query:
        numbers: dict[str, int] = {}
        own: dict[int, float] = {}
        for feature, weight in situation.weights.items():
            number = self._number.get(feature)
            if number is not None:
                numbers[feature] = number
                own[number] = weight
        return _Query(situation, numbers, own)

    def _posting(self, number: int) -> _Slots:
        held = _NONE
        if number + 1 < len(self._posted_from):
            held = self._posted[self._posted_from[number] : self._posted_from[number + 1]]
        since = self._posted_since.get(number)
        return np.concatenate([held, since]).astype(np.int64) if since else held

    def _party(self, query: _Query) -> tuple[int, _Slots] | None:
        """Return the number of the situation's people as a set, and the posting of the one whom the fewest scenes name.

        None when no scene names just these.
        """
        situation, numbers, _ = query
        people = [numbers.get(person, -1) for person in (*situation.peers, *situation.groups)]
        party = self._people.get(frozenset(people))
        if party is None:
            return None
        postings = [self._posting(number) for number in people]
        return party, postings[0] if len(postings) == 1 else min(postings, key=len)

    def _reaching(self, query: _Query, least: float) -> _Slots:
        """Scenes without people that could reach a score: those with one of the rarest features."""
        situation, numbers, _ = query
        weights, identity = situation.weights, situation.identity
        people = situation.peers | situation.groups
        rest, rest_identity = situation.weight, situation.identity_weight
        enough, enough_identity = (least - _ROUNDING) * rest, (least - _ROUNDING) * rest_identity
        postings = {
            feature: self._posting(numbers[feature]) if feature in numbers and feature not in people else _NONE
            for feature in weights
        }
        taken = {}
        for feature, posting in sorted(postings.items(), key=lambda one: len(one[1])):
            if rest < enough and (not rest_identity or rest_identity < enough_identity):
                break
            taken[feature] = posting
            rest -= weights[feature]
            if feature in identity:
                rest_identity -= weights[feature]
        if situation.channels and situation.channels <= taken.keys():
            # Every scene with one of these channels is among them; one with others only would be vetoed.
            for feature in taken.keys() - situation.channels:
                taken[feature] = taken[feature][self._rows["channels"][taken[feature]] == 0]
        found = [posting for posting in taken.values() if len(posting)]
        if not found:
            return _NONE
        return found[0] if len(found) == 1 else np.unique(np.concatenate(found))

    def _scored(
        self, slots: _Slots, query: _Query, least: float, *, party: int | None = None, veto: bool = True
    ) -> list[Candidate]:
        """Return those of the slots that reach a score, exactly scored; a slot without cells is a scene that is gone.

        With a party, only scenes that name just these people count. With veto, a scene that names channels and shares
        none with a situation that names some scores 0.
        """
        if len(slots) <= _FEW:
            few = [(slot, self._rows[slot].item()) for slot in slots.tolist()]
            scored = [
                (slot, row, self._score(row, query, veto=veto))
                for slot, row in few
                if row[6] and (party is None or row[8] == party)
            ]
            return [
                Candidate(row[0], score, row[1], slot, row[6], query) for slot, row, score in scored if score >= least
            ]
        rows = self._rows[slots]
        alive = rows["count"] > 0
        if party is not None:
            alive &= rows["people"] == party
        if least and len(slots) > _BOUND_FROM:
            in_all = _bound(query.situation.weight, rows["mass"] / rows["visits"])
            in_identity = _bound(query.situation.identity_weight, rows["identity"] / rows["visits"])
            alive &= np.maximum(in_all, in_identity) >= least - _ROUNDING
        slots, rows = slots[alive], rows[alive]
        if not len(slots):
            return []
        scores = self._scores(rows, query, veto=veto)
        fit = scores >= least
        columns = (rows["scene"][fit], scores[fit], rows["strength"][fit], slots[fit], rows["count"][fit])
        return [
            Candidate._make((*one, query, "score"))
            for one in zip(*(column.tolist() for column in columns), strict=True)
        ]

    def _score(self, row: tuple[Any, ...], query: _Query, *, veto: bool) -> float:
        """The score of one scene; what `_scores` does for many at once."""
        _, _, visits, mass, identity, first, count, _, _, channels = row
        situation, _, mine = query
        places, channel = self._places, self._channel_place
        in_all = in_identity = 0.0
        shares_channel = False
        span = slice(first, first + count)
        for held, number in zip(self._mass[span].tolist(), self._feature[span].tolist(), strict=True):
            if number in mine:
                own, there = mine[number], held / visits
                shared = own if own < there else there
                in_all += shared
                place = places[number]
                if place < SOFT:
                    in_identity += shared
                shares_channel |= place == channel
        if veto and channels and situation.channels and not shares_channel:
            return 0.0
        score: float = in_all / (situation.weight + mass / visits - in_all)
        if situation.identity_weight:
            score = max(score, in_identity / (situation.identity_weight + identity / visits - in_identity))
        return round(score, DIGITS)

    def _scores(self, rows: _Rows, query: _Query, *, veto: bool) -> npt.NDArray[np.float64]:
        situation = query.situation
        where, starts = _spans(rows)
        features = self._feature[where]
        own = np.zeros(len(self._names))
        own[list(query.own)] = list(query.own.values())
        here = own[features]
        place = np.frombuffer(self._places, np.uint8)[features]
        shared = np.minimum(here, self._mass[where] / np.repeat(rows["visits"], rows["count"]))
        in_all = np.add.reduceat(shared, starts)
        scores = in_all / (situation.weight + rows["mass"] / rows["visits"] - in_all)
        if situation.identity_weight:
            in_identity = np.add.reduceat(np.where(place < SOFT, shared, 0.0), starts)
            union = situation.identity_weight + rows["identity"] / rows["visits"] - in_identity
            scores = np.maximum(scores, in_identity / union)
        if veto and situation.channels:
            shares = np.logical_or.reduceat((place == self._channel_place) & (here > 0), starts)
            scores[(rows["channels"] > 0) & ~shares] = 0.0
        rounded: npt.NDArray[np.float64] = np.round(scores, DIGITS)
        return rounded


def _grown(array: npt.NDArray[_Item], need: int) -> npt.NDArray[_Item]:
    grown: npt.NDArray[_Item] = np.zeros(max(need, len(array) * 3 // 2), array.dtype)
    grown[: len(array)] = array
    return grown


def _spans(rows: _Rows) -> tuple[_Slots, _Slots]:
    """Return the places of all cells of the rows, and where among them each row starts."""
    counts = rows["count"].astype(np.int64)
    ends = np.cumsum(counts)
    starts = ends - counts
    where = np.arange(int(ends[-1]) if len(ends) else 0) + np.repeat(rows["first"] - starts, counts)
    return where, starts


def _bound(own: float, theirs: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """The highest similarity that two sums of weights allow: the lesser over the greater."""
    least, greatest = np.minimum(own, theirs), np.maximum(own, theirs)
    return np.divide(least, greatest, out=np.zeros_like(theirs), where=greatest > 0)
