"""A file is replaced whole: by one of several writers, for the same eyes, or not at all."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from concord.core.filesystem import replace_file


@pytest.mark.parametrize("wait", [True, False])
def test_a_file_is_made_and_then_replaced(tmp_path: Path, wait: bool):
    path = tmp_path / "a.json"
    replace_file(path, b"one", wait=wait)
    replace_file(path, b"two", wait=wait)
    assert path.read_bytes() == b"two"
    assert os.listdir(tmp_path) == ["a.json"]


def test_writers_at_the_same_time_leave_what_one_of_them_wrote(tmp_path: Path):
    path, texts = tmp_path / "a.json", [bytes([n]) * 100_000 for n in range(20)]
    with ThreadPoolExecutor(4) as pool:
        for _ in pool.map(lambda data: replace_file(path, data, wait=False), texts):
            assert path.read_bytes() in texts
    assert os.listdir(tmp_path) == ["a.json"]


def test_a_new_file_has_the_mode_it_is_given_and_a_known_one_keeps_its_own(tmp_path: Path):
    path = tmp_path / "a.json"
    replace_file(path, b"one", mode=0o600)
    assert path.stat().st_mode & 0o777 == 0o600
    path.chmod(0o664)
    replace_file(path, b"two", mode=0o600)
    assert path.stat().st_mode & 0o777 == 0o664


def test_what_cannot_be_replaced_stays_and_nothing_is_left_beside_it(tmp_path: Path):
    path = tmp_path / "a.json"
    path.mkdir()
    with pytest.raises(OSError, match="directory"):
        replace_file(path, b"one")
    assert os.listdir(tmp_path) == ["a.json"]
