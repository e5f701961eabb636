"""Collections to evaluate on: what their files must hold."""

from __future__ import annotations

from pathlib import Path

import pytest

from concord.core.errors import BadValue, NotFound
from concord.quality.collection import read_collection
from support.judged import things, write_collection

pytestmark = pytest.mark.slow


def test_a_split_is_chosen_by_name_and_a_wrong_name_lists_the_right_ones(tmp_path: Path):
    for split, query in (("train", "a"), ("test", "b")):
        write_collection(tmp_path, {"d": "text"}, {"a": "one", "b": "two"}, [(query, "d", 1)], split)
    assert list(read_collection(tmp_path).queries) == ["b"]
    assert list(read_collection(tmp_path, "train").queries) == ["a"]
    with pytest.raises(NotFound) as fault:
        read_collection(tmp_path, "dev")
    assert "train" in str(fault.value.hint)


@pytest.mark.parametrize(
    ("file", "content", "told"),
    [
        ("queries.jsonl", "{not json}\n", "line 1"),
        ("qrels/test.tsv", "query-id\tcorpus-id\tscore\nq0\td0\n", "line 2"),
        ("qrels/test.tsv", "q0\td0\t1\nq0\td0\t0.5\n", "line 2"),
        ("qrels/test.tsv", "q0\td0\td1\t1\n", "line 1"),
        ("queries.jsonl", b"\xff\xfe\x00", "cannot read"),
    ],
)
def test_a_file_that_is_not_of_the_layout_is_named_with_its_line(
    tmp_path: Path, file: str, content: str | bytes, told: str
):
    folder = things(tmp_path)
    (folder / file).write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(BadValue) as fault:
        read_collection(folder)
    assert told in fault.value.message
    assert fault.value.hint


def test_a_folder_without_a_collection_says_what_it_needs(tmp_path: Path):
    with pytest.raises(NotFound) as fault:
        read_collection(tmp_path)
    assert "corpus.jsonl" in str(fault.value.hint)
