"""The list of mutations follows the code: `make nightly` runs them, but a text that was changed shows here at once."""

from collections import Counter
from pathlib import Path

from mutations import MUTATIONS

ROOT = Path(__file__).resolve().parents[2]


def test_each_text_stands_in_its_file_once():
    found = {each.name: (ROOT / each.file).read_text().count(each.old) for each in MUTATIONS}
    assert {name: count for name, count in found.items() if count != 1} == {}
    assert max(Counter(each.name for each in MUTATIONS).values()) == 1
