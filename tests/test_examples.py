"""The examples run as they are, are short, and print what they promise."""

import re
import runpy
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "examples"
EXAMPLES = sorted(FOLDER.glob("*.py"))


def shares(text):
    return [int(share) / 100 for share in re.findall(r"(\d+)%", text)]


def is_damaged_digits_told(text):
    plain, quorum, plain_damaged, quorum_damaged = map(float, re.findall(r"MAP (\S+)", text))
    return plain > plain_damaged and quorum > quorum_damaged > plain_damaged + 0.1


def are_wrong_rows_told(text):
    counts = [tuple(map(int, row)) for row in re.findall(r"(\d+) damaged, +(\d+) found, +(\d+) false", text)]
    return len(counts) == 4 and all(found > 0.9 * n and alarms < 90 for n, found, alarms in counts) and "True" in text


PROMISES = {
    "damaged_digits": is_damaged_digits_told,
    "durable_index": lambda text: "1,795 items" in text and "another process: Hamm" in text and "refused: ids" in text,
    "missing_views": lambda text: len(shares(text)) == 3 and min(shares(text)) > 0.4,
    "near_duplicates": lambda text: int(re.search(r"(\d+) of 50", text).group(1)) >= 48,
    "rescored_search": lambda text: shares(text) == sorted(shares(text)) and shares(text)[-1] > 0.9,
    "wrong_rows": are_wrong_rows_told,
}


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples_keep_their_promise(path, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(path), run_name="__main__")
    printed = capsys.readouterr().out
    assert PROMISES[path.stem](printed), printed


def test_examples_are_six_and_short():
    assert len(EXAMPLES) == 6
    assert all(len(path.read_text().splitlines()) < 40 for path in EXAMPLES)
    assert all(path.read_text().startswith('"""') for path in EXAMPLES)
