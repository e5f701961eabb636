"""Where calibrations are kept, and which one is used."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from msgspec.structs import replace

from concord import KnowledgeBase
from concord.errors import BadValue
from concord.quality.calibration import file_name, find_calibration, save_calibration, shipped_calibration
from concord.quality.fitting import JudgedSet, fit
from concord.ranking.calibrate import dump, model_key
from concord.types import Identity
from support.judged import judged_things

pytestmark = pytest.mark.slow


@pytest.fixture
def judged(knowledge: KnowledgeBase, tmp_path: Path) -> JudgedSet:
    return judged_things(knowledge, tmp_path)


def test_the_users_own_fit_comes_before_the_one_that_ships(judged: JudgedSet, knowledge: KnowledgeBase):
    identity = Identity("hashing", "some-model", 64)
    paths = knowledge.settings.paths
    assert find_calibration(identity, paths) is None
    fitted = fit([judged], model_key(identity))
    assert save_calibration(fitted, identity, Path(paths.data)).name == file_name(identity)
    assert find_calibration(identity, paths) == fitted
    assert shipped_calibration(identity) is None


def test_a_running_process_notices_what_another_fits_changes_or_takes_back(
    judged: JudgedSet, knowledge: KnowledgeBase
):
    identity, paths = Identity("hashing", "some-model", 64), knowledge.settings.paths
    fitted = fit([judged], model_key(identity))
    first, second = (replace(fitted, cuts=replace(fitted.cuts, answerable=cut)) for cut in (0.25, 0.75))
    path = Path(paths.data) / file_name(identity)
    path.parent.mkdir()
    assert find_calibration(identity, paths) is None
    for second_of_day, written in enumerate((first, second), 1):  # of the same size
        path.write_text(json.dumps(dump(written)), encoding="utf-8")
        os.utime(path, (second_of_day, second_of_day))
        assert find_calibration(identity, paths) == written
    path.unlink()
    assert find_calibration(identity, paths) is None


def test_a_folder_made_for_a_calibration_is_its_owners_alone_as_the_store_in_it_will_be(
    judged: JudgedSet, tmp_path: Path
):
    save_calibration(fit([judged], "m"), Identity("p", "m", 1), tmp_path / "data")
    assert (tmp_path / "data").stat().st_mode & 0o777 == 0o700


def test_a_calibration_of_another_model_is_not_used(judged: JudgedSet, knowledge: KnowledgeBase):
    identity = Identity("hashing", "some-model", 64)
    save_calibration(fit([judged], "another/model"), identity, Path(knowledge.settings.paths.data))
    assert find_calibration(identity, knowledge.settings.paths) is None


def test_a_calibration_that_cannot_be_written_is_an_error_with_a_hint(judged: JudgedSet, tmp_path: Path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(BadValue) as fault:
        save_calibration(fit([judged], "m"), Identity("p", "m", 1), tmp_path / "file")
    assert fault.value.hint
