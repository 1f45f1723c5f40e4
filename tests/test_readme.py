"""What the README says holds."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text("utf-8")


@pytest.mark.parametrize(
    "code",
    re.findall(r"```python\n(.*?)```", README, re.DOTALL),
    ids=["use it", "find by words", "ledger", "sessions", "in order"],
)
def test_an_example_in_the_readme_runs_and_gives_what_its_comments_say(tmp_path, monkeypatch, code):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "fixtures").symlink_to(ROOT / "fixtures")
    told = re.findall(r"^    (\S+) +# ('.*'|\(\))$", code, re.MULTILINE)
    said = code + "".join(f"\n    assert {expression} == {value}" for expression, value in told)

    exec(compile(said, "README.md", "exec"), {})  # noqa: S102 (our own words)

    assert len(told) >= 2


def test_every_script_in_the_readme_exists():
    for script in set(re.findall(r"scripts/[\w.-]+", README)):
        assert (ROOT / script).exists(), script
