"""Where an agent may index: what lies under an allowed folder, by no way anything else."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from concord.core.errors import BadValue, NotFound
from concord.mcp.server_state import allowed_roots, permitted, roots_of


@pytest.fixture
def place(tmp_path: Path) -> Path:
    for folder in ("work/docs", "other", "outside/secret"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "outside" / "secret" / "key.txt").write_text("key", encoding="utf-8")
    return tmp_path


def test_the_folder_the_server_was_started_in_is_allowed_and_so_are_the_configured_ones(place: Path):
    configured = os.pathsep.join([str(place / "other"), ""])
    allowed = allowed_roots(configured, place / "work", "team")
    assert roots_of("team", allowed) == (place / "other", place / "work")


def test_the_folder_the_server_was_started_in_is_for_its_own_organisation_alone(place: Path):
    allowed = allowed_roots(str(place / "other"), place / "work", "team")
    assert roots_of("another", allowed) == (place / "other",)


@pytest.mark.promise("mcp.roots")
def test_a_configured_folder_may_be_for_one_organisation_alone(place: Path):
    (place / "a=b").mkdir()
    parts = (place / "other", f"red={place / 'work'}", f"blue={place / 'outside'}", place / "a=b")
    allowed = allowed_roots(os.pathsep.join(map(str, parts)), None, "red")
    assert roots_of("red", allowed) == (place / "other", place / "work", place / "a=b")
    assert roots_of("blue", allowed) == (place / "other", place / "outside", place / "a=b")
    assert roots_of("green", allowed) == (place / "other", place / "a=b")


def test_a_server_for_others_has_the_configured_folders_alone(place: Path):
    assert roots_of("team", allowed_roots(str(place / "other"), None, "team")) == (place / "other",)


def test_a_configured_folder_that_does_not_exist_is_an_error(place: Path):
    with pytest.raises(NotFound):
        allowed_roots(str(place / "nowhere"), None, "team")


def test_a_path_is_taken_absolute_or_from_an_allowed_folder(place: Path):
    roots = (place / "other", place / "work")
    for given in (
        str(place / "work" / "docs"),
        "docs",
        "./docs/",
        str(place / "work" / "docs" / ".." / "docs"),
    ):
        assert permitted(given, roots) == place / "work" / "docs"
    assert permitted(".", roots) == place / "other"


@pytest.mark.promise("mcp.roots")
@pytest.mark.parametrize(
    "given", ["../outside", "../outside/secret/key.txt", "docs/../../outside", "/etc/passwd", "/", "~root"]
)
def test_a_path_outside_is_refused_whether_it_exists_or_not(place: Path, given: str):
    with pytest.raises((BadValue, NotFound)):
        permitted(given, (place / "work",))


@pytest.mark.promise("mcp.roots")
def test_a_link_does_not_lead_out(place: Path):
    (place / "work" / "way-out").symlink_to(place / "outside")
    (place / "work" / "key").symlink_to(place / "outside" / "secret" / "key.txt")
    for given in ("way-out", "way-out/secret", "key", str(place / "work" / "way-out" / "secret")):
        with pytest.raises(NotFound):
            permitted(given, (place / "work",))


def test_a_neighbour_whose_name_begins_like_a_root_is_outside(place: Path):
    (place / "work-private").mkdir()
    with pytest.raises(BadValue):
        permitted(str(place / "work-private"), (place / "work",))


def test_the_refusal_tells_nothing_of_what_is_outside(place: Path):
    told = set()
    for given in (place / "outside" / "secret", place / "outside" / "absent"):
        with pytest.raises(BadValue) as refused:
            permitted(str(given), (place / "work",))
        told.add(refused.value.message.replace(given.name, "…"))
    assert len(told) == 1
