"""What a model proposes to remember: what is written of it, what repeats, what is refused."""

import json

import pytest
from support import dump, traces_of

KEY = "sk-proj-" + "a1B2c3D4e5" * 4


def entry(title, body="It was said so.", **more):
    return {"title": title, "body": body, **more}


def propose(memory, *entries, **options):
    return memory.propose(f"Here:\n```json\n{json.dumps(entries)}\n```", **options)


def outcomes(found):
    return [one.outcome for one in found]


def test_what_is_new_is_written_with_where_it_comes_from(memory):  # A6.8
    (one,) = propose(
        memory, entry("Deploy with pnpm", category="pitfalls", loadWhen=["发布"], highlight="pnpm"), session="s1"
    )

    assert (one.outcome, one.reason, one.kind) == ("accepted", "", "pitfall")
    note = memory.inspect(one.note.id).note
    assert (note.status, note.load_when, note.highlight) == ("live", ("发布",), "pnpm")
    assert (note.origin.actor, note.origin.session) == ("agent:extractor", "s1")


@pytest.mark.parametrize("reply", ["", "[]", "nothing worth keeping", "[{", None, 3, {"text": "[1, 2]"}])
def test_a_reply_without_candidates_writes_nothing(memory, reply):  # A6.8
    before = dump(memory.path)

    assert memory.propose(reply) == ()
    assert dump(memory.path) == before


def test_what_is_known_is_counted_and_named(memory):  # A6.10, A6.11
    known = memory.remember("Deploy with pnpm", body="npm breaks the lock file").note

    (one,) = propose(memory, entry("deploy with PNPM", "npm breaks the lock file"))

    assert (one.outcome, one.note.id) == ("duplicate", known.id)
    assert f"note {known.id}" in one.reason
    assert one.score >= 0.9
    assert memory.inspect(known.id).note.seen == 2


def test_what_is_half_alike_is_new(memory):  # A6.10
    memory.remember("Deploy with pnpm", body="npm breaks the lock file")

    assert outcomes(propose(memory, entry("Deploy with pnpm", "the server has no yarn and the cache is slow"))) == [
        "accepted"
    ]


def test_of_two_alike_in_one_reply_one_is_written(memory):  # A6.11
    found = propose(memory, entry("Deploy with pnpm"), entry("Deploy with pnpm!"), entry("Redis listens on 6380"))

    assert outcomes(found) == ["accepted", "duplicate", "accepted"]
    assert len(memory.notes()) == 2


def test_what_repeats_another_of_its_reply_is_counted_and_named(memory):  # A6.11
    first, again, other, third = propose(
        memory,
        entry("Deploy with pnpm"),
        entry("Deploy with pnpm!"),
        entry("Redis listens on 6380"),
        entry("deploy with PNPM"),
    )

    assert outcomes([first, again, other, third]) == ["accepted", "duplicate", "accepted", "duplicate"]
    assert again.note.id == third.note.id == first.note.id
    assert [one.note.seen for one in (first, again, other, third)] == [1, 2, 1, 3]
    assert memory.inspect(first.note.id).note.seen == 3


def test_a_repeat_of_what_was_rejected_is_named_and_not_counted(memory):
    rule = propose(memory, entry("Always use pnpm", proposeRule=True))[0].note
    memory.reject(rule.id)

    found = propose(memory, *[entry("Always use pnpm", "Really.", proposeRule=True)] * 2)

    assert outcomes(found) == ["duplicate", "duplicate"]
    assert [(one.note.id, one.note.status, one.note.seen) for one in found] == [(rule.id, "forgotten", 1)] * 2


def test_every_secret_of_a_reply_is_refused(memory):  # A6.12
    found = propose(
        memory,
        entry("a key", KEY),
        entry("a token", "令牌ghp_" + "A1b2C3d4" * 5),
        entry("a password", highlight="password: Tr0ub4dor"),
        entry("a trigger", loadWhen=[KEY]),
        entry("harmless"),
    )

    assert outcomes(found) == ["refused"] * 4 + ["accepted"]
    assert not any(KEY[start : start + 6] in repr(found) for start in range(8, len(KEY) - 6))
    memory.close()
    assert traces_of(memory.path, KEY) == ()


def test_a_rule_is_proposed_and_a_rejected_one_not_again(memory):  # A6.13
    (one,) = propose(memory, entry("Always use pnpm", proposeRule=True))
    assert (one.note.kind, one.note.status) == ("rule", "proposed")

    memory.reject(one.note.id)
    (again,) = propose(memory, entry("Always use pnpm", "Really.", proposeRule=True))

    assert (again.outcome, again.note.id, again.note.status) == ("duplicate", one.note.id, "forgotten")
    assert memory.inspect().proposals == ()


def test_a_rule_of_a_model_is_proposed_whoever_is_said_to_be_its_source(memory):
    (found,) = propose(memory, entry("Always use pnpm", proposeRule=True), source="user")

    assert found.note.status == "proposed"


def test_only_true_proposes_a_rule(memory):  # A6.9
    (one,) = propose(memory, entry("Always use pnpm", proposeRule="yes"))

    assert (one.note.kind, one.note.status) == ("fact", "live")


def test_what_was_forgotten_does_not_come_back(memory):
    note = memory.remember("Deploy with pnpm", body="It was said so.").note
    memory.forget(note.id)

    (one,) = propose(memory, entry("Deploy with pnpm"))

    assert (one.outcome, one.note.id) == ("duplicate", note.id)
    assert memory.notes() == ()
    assert memory.inspect(note.id).note.seen == 1
