"""The documentation cannot rot: pages are regenerated and compared, examples are run."""

from __future__ import annotations

import importlib.util
import re
import shlex
from pathlib import Path
from types import ModuleType

import click
import pytest

import concord
from concord.cli.command import ExampleCommand, ExampleGroup
from concord.cli.main import COMMANDS, kb
from concord.core import errors
from concord.core.settings import SETTINGS

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"


def page(name: str) -> str:
    return (DOCS / name).read_text(encoding="utf-8")


def make_docs() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_docs", ROOT / "scripts" / "make_docs.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["cli.md", "settings.md", "errors.md"])
def test_a_reference_page_says_what_the_program_says(name: str):
    assert page(name) == make_docs().PAGES[name](), "run: python scripts/make_docs.py"


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_has_help_examples_and_a_place_in_the_manual(name: str):
    command = kb.get_command(click.Context(kb), name)
    assert command is not None
    assert command.name == name
    assert command.help
    assert isinstance(command, ExampleCommand | ExampleGroup)
    assert 1 <= len(command.examples) <= 3
    assert all(f"kb {name}" in example or "kb --org" in example for example in command.examples)
    assert all(option.help for option in command.params if isinstance(option, click.Option))
    assert f"## kb {name}\n" in page("cli.md")


@pytest.mark.parametrize("name", COMMANDS)
def test_the_table_and_the_command_say_the_same_of_it(name: str):
    command = kb.get_command(click.Context(kb), name)
    assert command is not None
    assert COMMANDS[name][1].split()[0] == str(command.help).split()[0]


def test_every_option_is_named_for_shells_to_complete():
    for name in COMMANDS:
        command = kb.get_command(click.Context(kb), name)
        assert command is not None
        options = [o for param in command.params if isinstance(param, click.Option) for o in param.opts]
        assert all(re.fullmatch(r"--[a-z]+(-[a-z]+)*", option) for option in options)
        assert "--json" in options


def test_a_setting_is_in_the_manual_with_its_variable_and_its_reason():
    for setting in SETTINGS:
        section = page("settings.md").partition(f"## {setting.key}\n")[2].partition("\n## ")[0]
        assert f"`{setting.environment_name}`" in section
        assert setting.why in section


def test_an_error_is_in_the_tree_and_in_the_manual():
    classes = [value for value in vars(errors).values() if isinstance(value, type)]
    for name in (value.__name__ for value in classes if issubclass(value, errors.KBError)):
        assert re.search(rf"\b{name}\b", errors.__doc__ or ""), name
        assert f"## {name}\n" in page("errors.md")


def test_a_public_name_can_be_imported_and_is_documented():
    for name in concord.__all__:
        assert getattr(concord, name)
        assert f"`{name}`" in page("library.md")


def test_the_examples_of_the_library_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KB_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("KB_EMBED_PROVIDER", "hashing")
    blocks = re.findall(r"```python\n(.*?)```", page("library.md"), re.DOTALL)
    assert len(blocks) >= 5
    names: dict[str, object] = {"__name__": "example"}
    for block in blocks:
        exec(compile(block, "docs/library.md", "exec"), names)


def test_the_example_of_notes_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KB_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("KB_EMBED_PROVIDER", "hashing")
    (block,) = re.findall(r"```python\n(.*?)```", page("notes.md"), re.DOTALL)
    exec(compile(block, "docs/notes.md", "exec"), {"__name__": "example"})


def command_lines() -> list[str]:
    """Return the commands that the pages show, from `kb` on."""
    shown = (page(path.name) for path in sorted(DOCS.glob("*.md")))
    return [line for text in shown for line in re.findall(r"^\$ .*?\b(kb .+)$", text, re.MULTILINE)]


@pytest.mark.parametrize("line", command_lines())
def test_a_command_that_a_page_shows_can_be_given(line: str):
    given = shlex.split(line.partition(" > ")[0], comments=True)[1:]
    context = click.Context(kb)
    _, (name, *args), _ = kb.make_parser(context).parse_args(given)  # what stands before is for all commands
    command = kb.get_command(context, name)
    assert command is not None
    with click.Context(kb, info_name="kb") as above:
        command.make_context(name, list(args), parent=above)


def test_every_link_between_pages_leads_somewhere():
    for path in DOCS.glob("*.md"):
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", path.read_text(encoding="utf-8")):
            assert (DOCS / target).exists(), f"{path.name} → {target}"


def test_every_module_that_a_page_names_is_there():
    folders = ("src", "tests", "benchmarks", "scripts")
    files = [
        f"/{path.relative_to(ROOT).as_posix()}"
        for folder in folders
        for path in (ROOT / folder).rglob("*.py")
    ]
    for path in (*ROOT.glob("*.md"), *DOCS.glob("*.md")):
        named = re.findall(r"(?:\w+/)*\w+\.py\b", path.read_text(encoding="utf-8"))
        assert [name for name in named if not any(file.endswith(f"/{name}") for file in files)] == [], path


def test_the_map_of_the_architecture_names_every_module_and_package_and_nothing_else():
    package = Path(concord.__file__).parent
    named = named_below("## The map")
    modules = {path.stem for path in package.glob("[!_]*.py")}
    folders = {f"{path.name}/" for path in package.glob("[!_]*/") if any(path.glob("*.*"))}
    assert modules | folders == {name for name in named if "/" not in name.rstrip("/")}
    assert [n for n in named if not ((package / n).is_dir() or (package / f"{n}.py").is_file())] == []


def test_every_step_of_an_answer_is_named():
    steps = Path(concord.__file__).parent / "search"
    named = named_below("## The steps of an answer") - {"search/"}
    assert named | {"pipeline"} == {path.stem for path in steps.glob("[!_]*.py")}


def named_below(heading: str) -> set[str]:
    """Return the modules and packages that a section of ARCHITECTURE.md names."""
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    section = text.partition(f"\n{heading}\n")[2].partition("\n## ")[0]
    return {found.removesuffix(".py") for found in re.findall(r"`([\w/]+(?:\.py|/))`", section)}
