"""Settings: who wins, what is refused, and which file is never obeyed."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from concord.cli.main import main
from concord.core.config import find_paths, load_settings, parse_value
from concord.core.errors import BadValue, KBError, UnknownSetting
from concord.core.settings import SETTINGS, TABLE, Setting
from concord.index.notes import Note
from concord.knowledge import KnowledgeBase
from support.recorders import write


def home_with(tmp_path: Path, text: str) -> dict[str, str]:
    """Return the environment of a home that has this configuration file."""
    write(tmp_path / "home" / "config.toml", text)
    return {"KB_HOME": str(tmp_path / "home")}


@pytest.mark.promise("design.settings-order")
def test_a_flag_beats_the_environment_which_beats_the_file_which_beats_the_default(tmp_path: Path):
    environment = home_with(tmp_path, "[search]\ndefault_top = 3\n")
    named = {**environment, "KB_SEARCH_DEFAULT_TOP": "4"}
    resolved = [
        load_settings({}, {}),
        load_settings({}, environment),
        load_settings({}, named),
        load_settings({"search.default_top": 5}, named),
        load_settings({"search.default_top": None}, named),
    ]
    assert [settings["search.default_top"] for settings in resolved] == [10, 3, 4, 5, 4]
    origins = [settings.origin("search.default_top") for settings in resolved]
    assert origins == ["default", "file", "environment", "flag", "environment"]


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.key)
def test_every_setting_can_be_set_by_file_and_environment_and_its_default_is_allowed(
    tmp_path: Path, setting: Setting
):
    shown = {str: f'"{setting.default}"', bool: str(setting.default).lower()}.get(
        type(setting.default), str(setting.default)
    )
    settings = load_settings({}, home_with(tmp_path, f"{setting.key} = {shown}\n"))
    assert (settings[setting.key], settings.origin(setting.key)) == (setting.default, "file")
    by_name = load_settings({}, {setting.environment_name: str(setting.default)})
    assert by_name[setting.key] == setting.default
    assert type(by_name[setting.key]) is type(setting.default)
    assert setting.doc
    assert setting.why


@pytest.mark.parametrize(
    ("text", "fault", "hint"),
    [
        ("[search]\ndefault_topp = 3\n", UnknownSetting, "did you mean search.default_top?"),
        ("[search]\ndefault_top = 'many'\n", BadValue, "how many"),
        ("[search]\nfloor = nan\n", BadValue, "at least 0"),
        ("[embed]\nprecision = 'rough'\n", BadValue, "one of: auto"),
        ("\udcff".encode("utf-8", "surrogateescape"), BadValue, "mend or remove"),
    ],
)
def test_a_file_with_a_mistake_is_an_error_with_its_cure(
    tmp_path: Path, text: str | bytes, fault: type[KBError], hint: str
):
    write(tmp_path / "home" / "config.toml", text)
    with pytest.raises(fault) as failure:
        load_settings({}, {"KB_HOME": str(tmp_path / "home")})
    assert hint in (failure.value.hint or "")


@pytest.mark.parametrize("value", ["", "x", "1.5", "-1", "NaN"])
def test_a_variable_with_a_bad_value_is_an_error_that_names_the_setting(value: str):
    with pytest.raises(BadValue, match=r"search\.default_top"):
        load_settings({}, {"KB_SEARCH_DEFAULT_TOP": value})


def test_a_variable_that_is_no_setting_is_a_warning_and_ours_are_not():
    settings = load_settings({}, {"KB_SEARCH_DEFAULTTOP": "3", "KB_TEST_QDRANT_URL": "x", "KB_BENCH_N": "1"})
    (warning,) = settings.warnings
    assert "KB_SEARCH_DEFAULTTOP" in warning
    assert "KB_SEARCH_DEFAULT_TOP" in warning


@pytest.mark.parametrize("kind", ["sqlite", "json"])
def test_a_folder_made_for_a_store_is_its_owners_alone_and_one_that_exists_stays_as_it_is(
    tmp_path: Path, kind: str
):
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared").chmod(0o755)
    for name in ("shared", "own"):
        with KnowledgeBase.open(store__url=f"{kind}://{tmp_path}/{name}", embed__provider="none") as kb:
            kb.note(Note("pears"))
    modes = [(tmp_path / name).stat().st_mode & 0o777 for name in ("shared", "own")]
    assert modes == [0o755, 0o700]


def test_kb_home_moves_everything(tmp_path: Path):
    paths = find_paths({"KB_HOME": str(tmp_path / "there")})
    there = str(tmp_path / "there")
    assert all(path.startswith(there) for path in (paths.data, paths.cache, paths.config))
    assert load_settings({}, {"KB_HOME": str(tmp_path)}).store_url == f"sqlite:///{tmp_path}/data"


@pytest.mark.promise("design.config-not-obeyed")
@pytest.mark.parametrize(
    "name", ["config.toml", ".kb/config.toml", "concord/config.toml", "kb.toml", ".kb.toml"]
)
def test_a_configuration_inside_an_indexed_folder_is_not_obeyed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str
):
    """A checked-out repository must not choose where text is sent or what is read."""
    monkeypatch.setenv("KB_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("KB_EMBED_PROVIDER", "hashing")
    folder = tmp_path / "repository"
    text = '[store]\nurl = "sqlite:///nowhere/else"\n[search]\ndefault_top = 1\n[embed]\nprovider = "onnx"\n'
    assert tomllib.loads(text)["search"] == {"default_top": 1}
    write(folder / name, text)
    for n in range(3):
        write(folder / f"{n}.md", f"# Page {n}\n\nAll about deploying {n}.\n")
    monkeypatch.chdir(folder)
    assert main(["add", "."]) == 0
    assert main(["search", "deploying", "--in", ".", "--json"]) == 0
    assert main(["config", "search.default_top"]) == 0
    assert "search.default_top = 10  [default]" in capsys.readouterr().out
    settings = load_settings()
    assert settings["search.default_top"] == 10
    assert settings.store_url.endswith("/home/data")


@given(
    key=st.sampled_from(sorted(TABLE)), raw=st.text(max_size=12) | st.integers() | st.floats() | st.booleans()
)
def test_any_value_is_taken_as_the_setting_s_type_or_refused_with_a_hint(key: str, raw: object):
    hint: str | None = ""
    try:
        assert type(parse_value(key, raw)) is type(TABLE[key].default)
    except BadValue as refused:
        hint = refused.hint
    assert hint is not None
