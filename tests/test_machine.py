"""Any sequence of verbs leaves the file as a plain model says, whoever wrote, failed, reopened or undid in between.

The model is written from the design alone: dictionaries, loops and the canonical forms of keys. It knows nothing of
transactions, indexes or SQL. What sessions and notes hold is said by the models of `test_history` and `test_notes`.
"""

import contextlib
import copy
import datetime as dt
import sqlite3
import tempfile
from collections import Counter
from pathlib import Path

import pytest
from conftest import FakeClock
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from support import assert_comes_back_whole, examples, orphans, refuse, relent, text_index_of
from test_history import Model as Sessions
from test_history import calls as mirror_calls
from test_history import numbers, part_rows
from test_notes import Model as Notes
from test_notes import calls as note_calls
from test_notes import note_rows, remember_in_both

from graphmem import (
    Conflict,
    Feature,
    InvalidInput,
    Memory,
    NotFound,
    Part,
    Situation,
    StoreFailed,
    Triple,
    entity_key,
    normalize_key,
)
from graphmem.core.keys import feature_key, features_of_key, suffixed_key
from graphmem.store import postings, text_index
from graphmem.store.connection import Connection

WEIGHTS = {"chan": 1.0, "peer": 1.2, "peer_group": 1.2, "tool": 0.8, "topic": 0.4, "part": 0.2}
IDENTITY = ["peer", "peer_group", "chan", "tool"]
LIFETIME = dt.timedelta(days=30)
COUNTERS = {"scenes": ("strength", "visits"), "features": ("mass",), "refs": (), "aliases": ()}


def kind(feature):
    return feature.partition(":")[0]


def of(features, *kinds):
    return {feature for feature in features if kind(feature) in kinds}


def weigh(features):
    """The weight of each feature of a turn: that of its kind, shared by the values of that kind."""
    keys = {feature_key(*feature) for feature in features}
    shared = Counter(map(kind, keys))
    return {key: WEIGHTS[kind(key)] / shared[kind(key)] for key in keys}


def jaccard(a, b):
    keys = a.keys() | b.keys()
    union = sum(max(a.get(key, 0), b.get(key, 0)) for key in keys)
    return sum(min(a.get(key, 0), b.get(key, 0)) for key in keys) / union if a and b and union else 0.0


def score(here, profile):
    sides = [{key: side[key] for key in of(side, *IDENTITY)} for side in (here, profile)]
    return max(jaccard(here, profile), jaccard(*sides))


def foreign_channel(here, profile):
    ours, theirs = of(here, "chan"), of(profile, "chan")
    return bool(ours and theirs and not ours & theirs)


def label(here):
    identity = sorted(of(here, *IDENTITY), key=lambda key: (IDENTITY.index(kind(key)), key))
    others = sorted(of(here, "topic"))
    company = len(of(here, "peer")) + len(of(here, "peer_group"))
    return normalize_key("_".join(identity[: max(2, company)] or others[:2]))


def people(here):
    return sorted(of(here, "peer") or of(here, "peer_group"))


def may_write(key, here):
    """A key that names all who are here and nobody else; no key of this alphabet is long enough to be cut."""
    named = {part for part in key.split("/") if part.startswith(("peer:", "peer_group:"))}
    return named >= set(people(here)) and named <= {*of(here, "peer"), *of(here, "peer_group")}


class Model:
    """What the file must hold: tables of rows by primary key, and what the verbs do to them."""

    def __init__(self):
        self.tables = {"scenes": {}, "features": {}, "refs": {}, "aliases": {}}
        self.evidence = {}  # label -> (count, at)
        self.facts = Counter()  # (subject, relation, object) -> times said
        self.mentions = Counter()
        self.kept = {"block": {}, "document": {}}  # id -> ids of the blocks that belong to it
        self.operations = []
        self.last_id = 0

    def __getattr__(self, name):
        try:
            return self.__dict__["tables"][name]
        except KeyError:
            raise AttributeError(name) from None

    def new_id(self):
        self.last_id += 1
        return self.last_id

    # ---- looking

    def find(self, key):
        by_alias = self.aliases.get(key, {}).get("scene")
        return next((id_ for id_, scene in self.scenes.items() if scene["key"] == key), by_alias)

    def features_of(self, scene):
        return {feature: row for (owner, feature), row in self.features.items() if owner == scene}

    def fits(self, here):
        """Scenes of the similarity space: id, profile, score."""
        for id_, scene in self.scenes.items():
            held = self.features_of(id_)
            if scene["origin"] == "emergent" and scene["visits"] and held:
                profile = {feature: row["mass"] / scene["visits"] for feature, row in held.items()}
                yield id_, profile, score(here, profile)

    def answering(self, here):
        """Id and score of each scene that the situation recalls."""
        found = {}
        for id_, profile, fit in self.fits(here):
            peers, groups = of(profile, "peer"), of(profile, "peer_group")
            ours = of(here, "peer_group")
            if groups and ours and not groups & ours:
                continue
            if peers or groups:
                if (peers or groups) & (of(here, "peer") if peers else ours):
                    found[id_] = fit
            elif not foreign_channel(here, profile) and fit >= 0.35 - 1e-9:
                found[id_] = fit
        return found

    def recalled(self, scored):
        """The weight of each fact that scenes with these scores hold."""
        weights = {}
        for ref in self.refs.values():
            if ref["kind"] == "relation" and ref["scene"] in scored:
                weight = ref["weight"] * scored[ref["scene"]]
                weights[ref["name"]] = max(weights.get(ref["name"], 0), weight)
        return weights

    def under(self, key, *, exact):
        return {
            id_: 1.0
            for id_, scene in self.scenes.items()
            if scene["key"] == key
            or self.aliases.get(key, {}).get("scene") == id_
            or (not exact and scene["key"].startswith(key + "/"))
        }

    # ---- scenes

    def enter(self, here, declared, now):
        declared = list(dict.fromkeys(normalize_key(key) for key in declared))
        if declared and people(here) and not any(may_write(key, here) for key in declared):
            declared.append("/".join([*sorted(of(here, "chan"))[:1], *people(here)]))
        joined = self.best(here)
        known = [self.find(key) is not None for key in declared]
        keys = [self.scenes[self.declare(key)]["key"] for key in declared]
        visited, created = self.visit(here, joined, now)
        own = [key for key in keys if not people(here) or may_write(key, here)]
        visited_key = [self.scenes[visited]["key"]] if visited else []
        return {
            "key": "".join(visited_key),
            "created": created,
            "keys": tuple(dict.fromkeys(keys + visited_key)),
            "write_keys": tuple(dict.fromkeys(visited_key + own)),
            "declared_created": tuple(key for key, was_known in zip(keys, known, strict=True) if not was_known),
        }

    def best(self, here):
        fits = [
            (-round(fit, 9), -self.scenes[id_]["strength"], id_)
            for id_, profile, fit in self.fits(here)
            if fit >= 0.5 - 1e-9
            and of(here, "peer") == of(profile, "peer")
            and of(here, "peer_group") == of(profile, "peer_group")
            and not foreign_channel(here, profile)
        ]
        return min(fits)[2] if fits else None

    def visit(self, here, joined, now):
        if joined:
            self.scenes[joined]["strength"] += 1
            self.scenes[joined]["visits"] += 1
            self.give(joined, here)
            return joined, False
        name = label(here)
        if not name:
            return None, False
        count, at = self.evidence.get(name, (0, now))
        self.evidence[name] = (count + 1 if now - at <= LIFETIME else 1, now)
        if self.evidence[name][0] < 2:
            return None, False
        del self.evidence[name]
        base = key = normalize_key("auto:" + name)
        number = 1
        while (id_ := self.find(key)) and self.features_of(id_):
            number += 1
            key = suffixed_key(base, number)
        if id_:
            self.scenes[id_]["strength"] += 1
            self.scenes[id_]["visits"] += 1
        else:
            id_ = self.add_scene(key, visits=1)
        self.give(id_, here)
        return id_, True

    def give(self, id_, here):
        for feature, weight in here.items():
            row = self.features.setdefault((id_, feature), {"weight": 0.0, "mass": 0.0})
            row["weight"] = max(row["weight"], weight)
            row["mass"] += weight

    def add_scene(self, key, *, strength=1, visits=0, origin=None):
        id_ = self.new_id()
        origin = origin or ("emergent" if key.startswith("auto:") else "declared")
        self.scenes[id_] = {"key": key, "strength": strength, "visits": visits, "origin": origin}
        return id_

    def ensure(self, key):
        id_ = self.find(key)
        if id_ is None:
            id_ = self.add_scene(key)
            for feature in features_of_key(key):
                self.features[id_, feature] = {"weight": WEIGHTS[kind(feature)], "mass": 0.0}
        return id_

    def declare(self, key):
        known = self.find(key) is not None
        id_ = self.ensure(key)
        self.scenes[id_]["strength"] += known
        return id_

    # ---- facts

    def commit(self, triples, keys, at):
        good = [triple for triple in triples if all(triple[:3])]
        if not good:
            return
        scenes = [self.ensure(normalize_key(key)) for key in dict.fromkeys(map(normalize_key, keys))]
        for *names, confidence in good:
            fact = tuple(map(entity_key, names))
            self.facts[fact] += 1
            self.mentions.update([fact[0], fact[2]])
            for id_ in scenes:
                for what, name in (("relation", fact), ("entity", fact[0]), ("entity", fact[2])):
                    self.attach(id_, what, name, confidence, at)

    def attach(self, scene, what, name, weight, at):
        place = (scene, what, name)
        known = (row for row in self.refs.values() if (row["scene"], row["kind"], row["name"]) == place)
        ref = next(known, None)
        if ref is None:
            ref = {"scene": scene, "kind": what, "name": name, "weight": weight, "clock": at}
            self.refs[self.new_id()] = ref
        ref["weight"], ref["clock"] = max(ref["weight"], weight), max(ref["clock"], at)

    # ---- blocks and documents

    def put(self, what, id_, keys, blocks, at):
        scenes = [self.ensure(normalize_key(key)) for key in dict.fromkeys(map(normalize_key, keys))]
        self.kept[what][id_] = list(dict.fromkeys([*self.kept[what].get(id_, []), *blocks]))
        for scene in scenes:
            self.attach(scene, what, id_, 1.0, at)

    def remove(self, what, id_):
        del self.kept[what][id_]
        for blocks in self.kept["document"].values():
            blocks[:] = [block for block in blocks if (what, block) != ("block", id_)]
        self.sweep()

    def sweep(self):
        """Drop the refs to what was removed."""
        for ref_id, ref in list(self.refs.items()):
            if ref["name"] not in self.kept.get(ref["kind"], [ref["name"]]):
                del self.refs[ref_id]

    def scenes_of(self, what, id_):
        held = (ref["scene"] for ref in self.refs.values() if (ref["kind"], ref["name"]) == (what, id_))
        return tuple(sorted(self.scenes[scene]["key"] for scene in held))

    # ---- upkeep

    def dedupe(self):
        """Merge twins; return what the report must say: groups, rewritten, merged, scenes left."""
        before = copy.deepcopy(self.tables)
        spellings = {}
        for id_ in sorted(self.scenes):
            spellings.setdefault(normalize_key(self.scenes[id_]["key"]), []).append(id_)
        groups = {key: ids for key, ids in spellings.items() if len(ids) > 1}
        lone = {key: ids[0] for key, ids in spellings.items() if len(ids) == 1 and self.scenes[ids[0]]["key"] != key}
        for key, (survivor, *doubles) in groups.items():
            self.merge(key, survivor, doubles)
        for key, id_ in lone.items():
            self.aliases.setdefault(self.scenes[id_]["key"], {"scene": id_})
            self.scenes[id_]["key"] = key
        if groups or lone:
            self.operations.append({"before": before, "after": copy.deepcopy(self.tables), "undone": False})
        return len(groups), len(lone), sum(len(ids) - 1 for ids in groups.values()), len(self.scenes)

    def merge(self, key, survivor, doubles):
        members = [self.scenes[id_] for id_ in (survivor, *doubles)]
        for id_ in doubles:
            for feature, row in self.features_of(id_).items():
                mine = self.features.setdefault((survivor, feature), {"weight": 0.0, "mass": 0.0})
                mine["weight"] = max(mine["weight"], row["weight"])
                mine["mass"] += row["mass"]
                del self.features[id_, feature]
            for ref_id, ref in [(ref_id, ref) for ref_id, ref in self.refs.items() if ref["scene"] == id_]:
                del self.refs[ref_id]
                places = {(row["kind"], row["name"]): row for row in self.refs.values() if row["scene"] == survivor}
                mine = places.get((ref["kind"], ref["name"]))
                if mine:
                    mine["weight"] = max(mine["weight"], ref["weight"])
                    mine["clock"] = max(mine["clock"], ref["clock"])
                else:
                    self.refs[ref_id] = {**ref, "scene": survivor}
            for alias in self.aliases.values():
                alias["scene"] = survivor if alias["scene"] == id_ else alias["scene"]
            del self.scenes[id_]
        for spelling in (scene["key"] for scene in members):
            if spelling != key:
                self.aliases.setdefault(spelling, {"scene": survivor})
        declared = not key.startswith("auto:") and any(scene["origin"] == "declared" for scene in members)
        self.scenes[survivor] = {
            "key": key,
            "strength": sum(scene["strength"] for scene in members),
            "visits": sum(scene["visits"] for scene in members),
            "origin": "declared" if declared else "emergent",
        }

    def touched_by(self, operation):
        before, after = operation["before"], operation["after"]
        return {
            (table, key)
            for table in before
            for key in before[table].keys() | after[table].keys()
            if before[table].get(key) != after[table].get(key)
        }

    def undo_problem(self, number):
        if not 1 <= number <= len(self.operations):
            return NotFound
        mine = self.operations[number - 1]
        later = [operation for operation in self.operations[number:] if not operation["undone"]]
        if mine["undone"] or any(self.touched_by(mine) & self.touched_by(operation) for operation in later):
            return Conflict
        trial = copy.deepcopy(self)
        trial.undo(number)
        places = [(ref["scene"], ref["kind"], ref["name"]) for ref in trial.refs.values()]
        return Conflict if len(places) > len(set(places)) else None  # put anew since

    def undo(self, number):
        """Put images back: counters by their difference, other columns where they still hold what was put there."""
        operation = self.operations[number - 1]
        operation["undone"] = True
        for table, key in self.touched_by(operation):
            rows = self.tables[table]
            old, new, now = operation["before"][table].get(key), operation["after"][table].get(key), rows.get(key)
            if now is None:
                if old is not None:
                    rows[key] = dict(old)
            elif old is None:
                since = {name: now[name] - new[name] for name in COUNTERS[table]}
                if any(value > 1e-6 for value in since.values()):
                    now.update(since)
                else:
                    del rows[key]
            else:
                for name in new:
                    if name in COUNTERS[table]:
                        now[name] += old[name] - new[name]
                    elif now[name] == new[name]:
                        now[name] = old[name]
        self.sweep()


# ---- strategies: small alphabets, so that turns meet again

BASES = [
    [("chan", "qq")],
    [("chan", "QQ"), ("peer", "ann")],
    [("chan", "web"), ("peer", "Ann"), ("tool", "sh")],
    [("chan", "qq"), ("peer", "bob")],
    [("chan", "web"), ("peer_group", "g")],
    [("peer", "ann"), ("tool", "sh")],
    [("tool", "sh")],
    [("topic", "a"), ("topic", "b")],
    [("part", "am")],
    [],
]
EXTRAS = [("topic", "a"), ("topic", "c"), ("topic", "排 班"), ("part", "am"), ("tool", "sh"), ("tool", "x")]
EXTRAS += [("chan", "qq"), ("chan", "web"), ("peer", "bob")]
KEYS = ["chan:qq", "Chan:QQ/", "chan:web", "chan:qq/peer:ann", "Chan:qq/peer:BOB", "peer:bob", "制度 一"]
KEYS += ["auto:chan:qq", "auto:peer:ann_chan:qq"]
SPELLINGS = [str.upper, str.title, lambda key: key + "/", lambda key: f" {key}", lambda key: key.replace("_", "+")]

situations = st.builds(
    lambda base, extra: list(dict.fromkeys(base + extra)),
    st.sampled_from(BASES),
    st.lists(st.sampled_from(EXTRAS), max_size=2),
)
keys = st.lists(st.sampled_from(KEYS), max_size=2)
names = st.sampled_from(["Lin", "lin ", "Mei", "茶", "C++"])
facts = st.tuples(st.one_of(names, st.just("")), st.sampled_from(["likes", "Likes", "是"]), names)
triples = st.lists(
    st.builds(lambda fact, confidence: (*fact, confidence), facts, st.sampled_from([0.2, 0.7, 1.0])),
    min_size=1,
    max_size=2,
)
either = st.sampled_from([0, 1])  # of two processes on one file
masses = st.dictionaries(
    st.sampled_from(["chan:qq", "chan:web", "peer:ann", "tool:sh", "topic:a", "topic:z"]),
    st.sampled_from([0.0, 0.3, 1.0, 4.5]),
    max_size=3,
)


class MemoryMachine(RuleBasedStateMachine):
    """Drives two memories on one file, as two processes would have them, beside the model."""

    operations = Bundle("operations")

    @initialize()
    def open(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "memory.db"
        self.clock = FakeClock()
        self.memories = [Memory.open(self.path, clock=self.clock) for _ in range(2)]
        self.file = sqlite3.connect(self.path, timeout=0, isolation_level=None, factory=Connection)
        self.model = Model()
        self.sessions = Sessions()
        self.notes = Notes()
        self.planted = set()
        self.write_keys = ()

    def teardown(self):
        if hasattr(self, "folder"):
            self.records_are_those_of_the_models()
            self.reindex(0)
            assert_comes_back_whole(self.memories[0], self.path, self.clock)
            for memory in self.memories:
                memory.close()
            self.file.close()
            self.folder.cleanup()

    @property
    def now(self):
        return self.clock.now.strftime("%Y-%m-%dT%H:%M:%S.000Z")

    # ---- rules

    @rule(who=either, features=situations, declared=keys)
    def enter(self, who, features, declared):
        visit = self.memories[who].enter_scene(
            Situation([Feature(*feature) for feature in features]), declared=declared
        )

        expected = self.model.enter(weigh(features), declared, self.clock.now)
        assert {name: getattr(visit, name) for name in expected} == expected
        self.write_keys = visit.write_keys

    @rule(who=either, times=st.integers(2, 3), features=situations)
    def enter_again_and_again(self, who, times, features):
        for _ in range(times):
            self.enter(who, features, [])

    @rule(who=either, key=st.sampled_from(KEYS))
    def declare(self, who, key):
        declared = self.memories[who].declare_scene(key)

        scene = self.model.scenes[self.model.declare(normalize_key(key))]
        assert (declared.key, declared.strength) == (scene["key"], scene["strength"])

    @rule(who=either, batch=triples, scenes=st.one_of(keys, st.none()))
    def commit(self, who, batch, scenes):
        """With None, to the keys that the last turn gave for writing."""
        scenes = self.write_keys if scenes is None else scenes
        report = self.memories[who].commit(
            [Triple(*fact, confidence=confidence) for *fact, confidence in batch], scenes=scenes
        )

        known = set(self.model.facts)
        self.model.commit(batch, scenes, self.now)
        good = [fact for *fact, _ in batch if all(fact)]
        assert (report.written, len(report.refused)) == (len(good), len(batch) - len(good))
        assert report.created == len(set(self.model.facts) - known)

    @rule(who=either, features=situations)
    def look(self, who, features):
        situation = Situation([Feature(*feature) for feature in features])
        matches = self.memories[who].match_scenes(situation)
        relations = self.memories[who].recall_by_situation(situation, limit=1000).relations

        expected = self.model.answering(weigh(features))
        by_key = {self.model.scenes[id_]["key"]: fit for id_, fit in expected.items()}
        assert {match.key: match.score for match in matches} == pytest.approx(by_key, abs=1e-8)
        scores = [match.score for match in matches]
        assert scores == sorted(scores, reverse=True)
        self.check_recalled(relations, self.model.recalled(expected))

    @rule(who=either, key=st.sampled_from([*KEYS, "chan:q", "peer:ann"]), exact=st.booleans())
    def recall(self, who, key, exact):
        recollection = self.memories[who].recall_by_scene(key, exact=exact, limit=1000)

        expected = self.model.under(normalize_key(key), exact=exact)
        assert sorted(recollection.scenes) == sorted(self.model.scenes[id_]["key"] for id_ in expected)
        self.check_recalled(recollection.relations, self.model.recalled(expected))

    def check_recalled(self, relations, expected):
        found = {
            tuple(map(entity_key, (relation.subject, relation.relation, relation.object))): relation.weight
            for relation in relations
        }
        assert len(found) == len(relations)
        assert found == pytest.approx(expected, abs=1e-8)
        weights = [relation.weight for relation in relations]
        assert weights == sorted(weights, reverse=True)

    @rule(who=either, call=mirror_calls)
    def mirror(self, who, call):
        session, told = call
        report = self.memories[who].mirror(session, [Part(name, author=by, text=text) for name, by, text in told])

        assert numbers(report) == self.sessions.mirror(session, told)
        self.records_are_those_of_the_models()

    @rule(who=either, call=note_calls)
    def remember(self, who, call):
        told, expected = remember_in_both(self.memories[who], self.notes, call)
        assert told == expected
        self.records_are_those_of_the_models()

    def records_are_those_of_the_models(self):
        assert part_rows(self.path) == self.sessions.rows()
        assert note_rows(self.path) == self.notes.rows()

    @rule(who=either, text=st.sampled_from(["a red fox", "红色"]), scenes=keys)
    def put_block(self, who, text, scenes):
        block = self.memories[who].put_block(text, scenes=scenes)

        self.model.put("block", block.id, scenes, [], self.now)
        assert block.scenes == self.model.scenes_of("block", block.id)

    @rule(who=either, text=st.sampled_from(["tea at noon", "排班 表"]), scenes=keys, with_blocks=st.booleans())
    def put_document(self, who, text, scenes, with_blocks):
        blocks = list(self.model.kept["block"]) * with_blocks
        document = self.memories[who].put_document(text, scenes=scenes, blocks=blocks)

        self.model.put("document", document.id, scenes, blocks, self.now)
        assert document.scenes == self.model.scenes_of("document", document.id)

    @precondition(lambda self: any(self.model.kept.values()))
    @rule(who=either, pick=st.integers(0, 9))
    def remove(self, who, pick):
        kept = [(what, id_) for what, rows in self.model.kept.items() for id_ in rows]
        what, id_ = kept[pick % len(kept)]
        if what == "block":
            self.memories[who].delete_block(id_)
        else:
            document = self.memories[who].consume_document(id_)
            assert list(document.blocks) == self.model.kept[what][id_]
        self.model.remove(what, id_)
        with pytest.raises(NotFound):
            (self.memories[who].delete_block if what == "block" else self.memories[who].consume_document)(id_)

    @rule(who=either)
    def reindex(self, who):
        """The text index is the one that a rebuild makes."""
        before = text_index_of(self.path)
        self.memories[who].reindex()
        assert text_index_of(self.path) == before

    @rule(days=st.sampled_from([1, 20, 31]))
    def time_passes(self, days):
        self.clock.advance(days=days)

    @rule(who=either)
    def reopen(self, who):
        self.memories[who].close()
        self.memories[who] = Memory.open(self.path, clock=self.clock)

    @precondition(lambda self: self.model.scenes)
    @rule(
        pick=st.integers(0, 99),
        spell=st.sampled_from(SPELLINGS),
        strength=st.integers(1, 5),
        visits=st.integers(0, 4),
        origin=st.sampled_from(["emergent", "declared"]),
        masses=masses,
        weight=st.sampled_from([0.1, 0.8]),
    )
    def plant_twin(self, pick, spell, strength, visits, origin, masses, weight):
        """Another program writes a scene under another spelling of a key, with refs to whatever there is."""
        ids = sorted(self.model.scenes)
        key = spell(self.model.scenes[ids[pick % len(ids)]]["key"])
        if key in self.planted or self.model.find(key):
            return
        self.planted.add(key)
        visits = visits if masses else 0
        at = "2026-01-01T00:00:00.000Z"
        id_ = self.model.add_scene(key, strength=strength, visits=visits, origin=origin)
        self.file.execute("BEGIN IMMEDIATE")
        (row_id,) = self.file.execute(
            "INSERT INTO scenes(key, strength, visits, origin, created_at, updated_at) VALUES (?, ?, ?, ?, ?, ?)"
            " RETURNING id",
            (key, strength, visits, origin, at, at),
        ).fetchone()
        for feature, mass in masses.items():
            self.model.features[id_, feature] = {"weight": 0.5, "mass": mass}
            self.file.execute(
                "INSERT INTO scene_features(scene_id, feature, weight, mass, touched) VALUES (?, ?, 0.5, ?, ?)",
                (row_id, feature, mass, visits),
            )
        for entity_id, name in self.file.execute("SELECT id, key FROM entities ORDER BY id LIMIT 1").fetchall():
            self.model.attach(id_, "entity", name, weight, at)
            self.file.execute(
                "INSERT INTO scene_refs(scene_id, kind, ref_id, weight, decayed_at, created_at)"
                " VALUES (?, 'entity', ?, ?, ?, ?)",
                (row_id, entity_id, weight, at, at),
            )
        for block_id in list(self.model.kept["block"])[:1]:
            self.model.attach(id_, "block", block_id, weight, at)
            self.file.execute(
                "INSERT INTO scene_refs(scene_id, kind, ref_text, weight, decayed_at, created_at)"
                " VALUES (?, 'block', ?, ?, ?, ?)",
                (row_id, block_id, weight, at, at),
            )
        postings.settle(self.file, [row_id])
        text_index.add(self.file, "scene", [row_id])
        self.file.execute("COMMIT")

    @rule(target=operations, who=either)
    def dedupe(self, who):
        planned = self.memories[who].dedupe_scenes(dry_run=True)
        self.agrees_with_the_model()
        report = self.memories[who].dedupe_scenes()

        numbers = self.model.dedupe()
        for each in (planned, report):
            assert (len(each.groups), len(each.rewritten), each.merged, each.scenes_after) == numbers
        assert report.operation == (len(self.model.operations) if any(numbers[:2]) else None)
        return report.operation or 0

    @rule(who=either, number=st.one_of(operations, st.integers(1, 9)))
    def undo(self, who, number):
        problem = self.model.undo_problem(number) if number else InvalidInput
        for dry_run in (True, False):
            if problem:
                with pytest.raises(problem):
                    self.memories[who].undo(number, dry_run=dry_run)
            else:
                assert self.memories[who].undo(number, dry_run=dry_run).applied != dry_run
            if dry_run:
                self.agrees_with_the_model()
        if not problem:
            self.model.undo(number)

    @rule(who=either, features=situations)
    def visit_that_cannot_be_written(self, who, features):
        """The file refuses the last statement of the verb: nothing stays."""
        wished = copy.deepcopy(self.model)
        wished.enter(weigh(features), [], self.clock.now)
        changes = (wished.tables, wished.evidence) != (self.model.tables, self.model.evidence)
        last = "INSERT ON scene_features", "UPDATE ON scene_features", "INSERT ON situation_evidence"
        for write in last:
            refuse(self.path, write)
        with pytest.raises(StoreFailed) if changes else contextlib.nullcontext():
            self.memories[who].enter_scene(Situation([Feature(*feature) for feature in features]))
        for write in last:
            relent(self.path, write)

    @rule(who=either)
    def block_that_raises(self, who):
        def fail():
            store = self.memories[who]._store
            with store.write() as tx:
                tx.execute("DELETE FROM scene_features")
                self.memories[who].mirror("s1", [Part("a", text="lost"), Part("new", text="lost")])
                self.memories[who].remember("lost", slot="deploy", labels="lost")
                self.memories[who].put_block("a red fox", scenes="chan:lost")
                with store.write() as inner:
                    inner.execute("UPDATE scenes SET strength = 99")
                    raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            fail()

    @rule(who=either)
    def bad_input(self, who):
        memory = self.memories[who]
        here = Situation.of(chan="qq")
        with pytest.raises(InvalidInput):
            memory.enter_scene(here, declared=["chan:new", "///"])
        with pytest.raises(InvalidInput):
            memory.commit([Triple("a", "b", "c"), ("a", "b", "c")], scenes="chan:new")
        with pytest.raises(NotFound):
            memory.tag_scene("chan:new", [999_999])

    # ---- invariants

    @invariant()
    def agrees_with_the_model(self):
        if not hasattr(self, "model"):
            return
        model = self.model
        scenes = {scene["key"]: scene for scene in model.scenes.values()}
        rows = self.select("SELECT key, strength, visits, origin FROM scenes")
        assert {key: {"key": key, "strength": n, "visits": v, "origin": o} for key, n, v, o in rows} == scenes

        own = {id_: scene["key"] for id_, scene in model.scenes.items()}
        features = {(own[id_], feature): (row["mass"], row["weight"]) for (id_, feature), row in model.features.items()}
        rows = self.select(
            "SELECT s.key, feature, mass, weight FROM scene_features f JOIN scenes s ON s.id = f.scene_id"
        )
        assert {row[:2]: row[2:] for row in rows} == {place: pytest.approx(pair) for place, pair in features.items()}

        refs = {
            (own[ref["scene"]], ref["kind"], ref["name"]): (ref["weight"], ref["clock"]) for ref in model.refs.values()
        }
        assert self.stored_refs() == refs
        rows = self.select("SELECT a.key, s.key FROM scene_aliases a JOIN scenes s ON s.id = a.scene_id")
        assert dict(rows) == {alias: own[row["scene"]] for alias, row in model.aliases.items()}
        assert dict(self.select("SELECT label, count FROM situation_evidence")) == {
            name: count for name, (count, _) in model.evidence.items()
        }
        assert dict(self.select("SELECT key, mention_count FROM entities")) == model.mentions

    def stored_refs(self):
        facts = self.select(
            """SELECT s.key, a.key, r.relation_key, b.key, ref.weight, ref.decayed_at
               FROM scene_refs ref JOIN scenes s ON s.id = ref.scene_id JOIN relations r ON r.id = ref.ref_id
               JOIN entities a ON a.id = r.source_id JOIN entities b ON b.id = r.target_id
               WHERE ref.kind = 'relation'"""
        )
        entities = self.select(
            """SELECT s.key, 'entity', e.key, ref.weight, ref.decayed_at FROM scene_refs ref
               JOIN scenes s ON s.id = ref.scene_id JOIN entities e ON e.id = ref.ref_id WHERE ref.kind = 'entity'"""
        )
        texts = self.select(
            """SELECT s.key, ref.kind, ref.ref_text, ref.weight, ref.decayed_at FROM scene_refs ref
               JOIN scenes s ON s.id = ref.scene_id WHERE ref.kind IN ('block', 'document')"""
        )
        others = {row[:3]: row[3:] for row in entities + texts}
        return {(row[0], "relation", row[1:4]): row[4:] for row in facts} | others

    @invariant()
    def each_saying_has_its_evidence(self):
        if not hasattr(self, "model"):
            return
        rows = self.select(
            """SELECT a.key, r.relation_key, b.key, COUNT(*) FROM evidence e JOIN relations r ON r.id = e.relation_id
               JOIN entities a ON a.id = r.source_id JOIN entities b ON b.id = r.target_id
               GROUP BY r.id, a.key, r.relation_key, b.key"""
        )
        assert {tuple(fact): count for *fact, count in rows} == self.model.facts

    @invariant()
    def every_key_is_canonical_unless_it_was_planted(self):
        if not hasattr(self, "model"):
            return
        for (key,) in self.select("SELECT key FROM scenes"):
            assert key in self.planted or normalize_key(key) == key
        for (key,) in self.select("SELECT feature FROM scene_features UNION SELECT label FROM situation_evidence"):
            assert normalize_key(key) == key

    @invariant()
    def every_scene_is_posted_as_its_features_say(self):
        if hasattr(self, "model"):
            assert postings.wrong_scenes(self.file) == []

    @invariant()
    def the_file_is_whole_and_free(self):
        if not hasattr(self, "model"):
            return
        assert orphans(self.path) == []
        self.file.execute("BEGIN IMMEDIATE")  # fails at once while another connection has a write transaction
        self.file.execute("ROLLBACK")

    def select(self, statement):
        return self.file.execute(statement).fetchall()


TestMemory = MemoryMachine.TestCase
TestMemory.settings = settings(max_examples=examples(150), stateful_step_count=30)


@pytest.mark.slow
def test_memory_through_many_more_sequences():
    run_state_machine_as_test(MemoryMachine, settings=settings(max_examples=3000, stateful_step_count=50))
