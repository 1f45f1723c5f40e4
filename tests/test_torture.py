"""What must hold when processes die, crowd and meet a full disk: in short here, at full length behind a marker."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parent.parent / "scripts" / "torture.py"


def torture(*arguments):
    ran = subprocess.run([sys.executable, SCRIPT, *arguments, "--json"], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


def test_what_was_acknowledged_outlives_a_kill():
    assert torture("crash", "--rounds", "6")["crash"]["acknowledged"] > 0


def test_each_message_is_digested_once_whatever_is_killed():
    told = torture("digest", "--rounds", "8")["digest"]
    assert told["messages"] >= 64


def test_a_tree_and_its_notes_come_together_whatever_is_killed():
    told = torture("tree", "--rounds", "6")["tree"]
    assert set(told) == {"notes", "promemory", "ledger"}
    assert all(form["notes"] == form["pages"] >= form["acknowledged"] > 0 for form in told.values())


def test_an_import_that_is_killed_goes_on_and_ends_as_one_that_is_not():
    told = torture("imports", "--rounds", "6")["imports"]
    assert told["kills"] + told["ended before"] == 6
    assert min(told["rows"].values()) > 300


def test_writers_readers_and_upkeep_work_at_once():
    told = torture("writers", "--processes", "3", "--writes", "40")["writers"]
    assert (told["writes kept"], told["errors"]) == (120, 0)


def test_a_full_disk_loses_nothing():
    told = torture("disk")["disk"]
    assert "full" in told["pages"]["told"]
    assert "input/output error" in told["signal"]["told"]


@pytest.mark.torture
@pytest.mark.parametrize("seed", ["1", "2"])
def test_what_was_acknowledged_outlives_hundreds_of_kills(seed):
    told = torture("crash", "--rounds", "300", "--seed", seed)["crash"]
    assert told["rounds"] == 300


@pytest.mark.torture
@pytest.mark.parametrize("seed", ["1", "2"])
def test_each_message_is_digested_once_over_hundreds_of_kills(seed):
    assert torture("digest", "--rounds", "200", "--seed", seed)["digest"]["kills"] == 200


@pytest.mark.torture
def test_eight_writers_beside_readers_and_upkeep():
    told = torture("writers")["writers"]
    assert (told["writes kept"], told["errors"]) == (4000, 0)
