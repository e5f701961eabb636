"""Who may import whom: the layers of ARCHITECTURE.md as a table."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).parent.parent / "src" / "concord"

GROUND = {"core", "types"}
PURE = {"text"}
ADAPTERS = {"extract", "embed", "store"}
PIPELINES = {"clients", "files", "index", "ops", "quality", "reading", "search"}
LIBRARY = {"knowledge", "operations", "parts", "wire"}
FACES = {"cli", "mcp"}
ENGINE = {"engine"}  # one process behind the faces: it serves one of them, and is a client of the library

# A layer, and what its modules may import beside their own package.
MAY_IMPORT = (
    (GROUND, GROUND),
    (PURE, GROUND | PURE),
    (ADAPTERS, GROUND | PURE),
    (PIPELINES, GROUND | PURE | PIPELINES),
    (LIBRARY, GROUND | PURE | PIPELINES | LIBRARY),
    (FACES, GROUND | PURE | PIPELINES | LIBRARY),
    ({"web"}, GROUND | PURE | PIPELINES | LIBRARY | {"mcp"}),  # which it serves, and whose state it shares
    (ENGINE, GROUND | PURE | PIPELINES | LIBRARY | {"mcp"}),
)
# The commands that start another face or ask the engine, the step of a search that runs a model of its own,
# and in each pipeline the module that takes what it works with out of the parts that are open.
DOORS = {
    "cli/command.py": {"engine"},
    "clients/passages.py": {"wire"},
    "cli/search.py": {"engine"},
    "cli/serving.py": {"engine", "mcp", "web"},
    "index/refresh.py": {"parts"},
    "quality/measuring.py": {"parts"},
    "search/reader_model.py": {"embed"},
    "search/setup.py": {"parts"},
}


def test_every_module_and_package_has_its_place_in_one_layer():
    known = [name for layer, _ in MAY_IMPORT for name in layer]
    assert {top(path) for path in modules()} == set(known)
    assert len(known) == len(set(known))


def top(path: Path) -> str:
    """Return the name right below concord of a module or of the package that it is in."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def modules() -> list[Path]:
    return sorted(path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py")


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


CONTRACT = "concord.store.contract"  # what a store does is everybody's to know, how is not


def imported(path: Path) -> set[str]:
    """Top-level names within concord that a module imports, anywhere in it."""
    found: set[str] = set()
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.ImportFrom) and node.module == "concord":
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module == CONTRACT:
            continue
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("concord."):
            found.add(str(node.module).split(".")[1])
        elif isinstance(node, ast.Import):
            found |= {a.name.split(".")[1] for a in node.names if a.name.startswith("concord.")}
    return found


def test_a_module_imports_only_what_its_layer_may():
    for path in modules():
        own = top(path)
        (known,) = (allowed for layer, allowed in MAY_IMPORT if own in layer)
        doors = DOORS.get(path.relative_to(PACKAGE).as_posix(), set())
        assert imported(path) - known - doors - {own, "__version__"} == set(), path


STORE = PACKAGE / "store"
ENGINES = {path.parent.name for path in STORE.glob("*/__init__.py")}


def test_an_engine_imports_nothing_of_another():
    for path in (path for name in ENGINES for path in (STORE / name).glob("*.py")):
        nodes = ast.walk(parsed(path))
        named = [str(node.module).split(".") for node in nodes if isinstance(node, ast.ImportFrom)]
        below = {parts[2] for parts in named if parts[:2] == ["concord", "store"] and len(parts) > 2}
        assert below & ENGINES <= {path.parent.name}, path


def test_onnxruntime_is_imported_in_the_one_place_that_silences_it():
    assert [path.name for path in modules() if "onnxruntime" in _outside(path)] == ["runtime.py"]


def _outside(path: Path) -> set[str]:
    """Top-level packages that a module imports, anywhere in it."""
    nodes = list(ast.walk(parsed(path)))
    plain = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    named = [str(node.module) for node in nodes if isinstance(node, ast.ImportFrom)]
    return {name.partition(".")[0] for name in (*plain, *named)}


# A pure module is given what it works on. That the zone of a date is this machine's is all that it looks up.
IMPURE_MODULES = {
    "io", "logging", "os", "pathlib", "random", "secrets", "shutil", "socket", "sqlite3", "subprocess",
    "tempfile", "threading", "time", "urllib",
}  # fmt: skip
IMPURE_CALLS = {"open", "now", "utcnow", "today", "read_text", "read_bytes", "print"}


def test_a_pure_module_has_no_clock_no_files_and_no_network():
    for path in (path for path in modules() if top(path) in PURE):
        assert _outside(path) & IMPURE_MODULES == set(), path
        assert _called(path) & IMPURE_CALLS == set(), path


# Who may start threads, as ARCHITECTURE.md tells: everything else is synchronous.
STARTERS = {"Thread", "Timer", "ThreadPoolExecutor", "start_new_thread", "to_thread", "run_in_executor"}
THREADED = [
    "embed/remote.py",
    "engine/relay.py",
    "engine/server.py",
    "extract/sandbox.py",
    "mcp/jobs.py",
    "mcp/server_state.py",
    "search/deadline.py",
    "store/sqlite/in_memory.py",
]


def test_threads_are_started_only_where_the_architecture_says_so():
    assert [
        path.relative_to(PACKAGE).as_posix() for path in modules() if STARTERS & _called(path)
    ] == THREADED
    told = (PACKAGE.parents[1] / "ARCHITECTURE.md").read_text(encoding="utf-8")
    (paragraph,) = (one for one in told.split("\n- ") if "gets its threads from one place" in one)
    assert all(f"`{name}`" in paragraph for name in THREADED)


def _called(path: Path) -> set[str]:
    """Return the last names of whatever a module calls or derives a class from."""
    nodes = list(ast.walk(parsed(path)))
    called = [node.func for node in nodes if isinstance(node, ast.Call)]
    bases = [base for node in nodes if isinstance(node, ast.ClassDef) for base in node.bases]
    return {ast.unparse(one).rpartition(".")[2] for one in (*called, *bases)}


def test_a_module_opens_by_saying_what_lives_in_it():
    assert [path for path in modules() if not ast.get_docstring(parsed(path))] == []


def test_no_file_has_a_name_that_could_hold_anything():
    banned = {"utils", "helpers", "common", "misc", "base", "core"}
    assert not [path for path in modules() if path.stem in banned]


def test_module_level_imports_form_no_cycle():
    graph = {_name(path): _module_level(path) for path in PACKAGE.rglob("*.py")}
    done: set[str] = set()

    def visit(name: str, trail: tuple[str, ...]) -> None:
        assert name not in trail, " → ".join((*trail, name))
        if name in done or name not in graph:
            return
        for target in sorted(graph[name]):
            visit(target, (*trail, name))
        done.add(name)

    for name in sorted(graph):
        visit(name, ())


# Defining protocols takes milliseconds, and only a type checker needs them.
PROTOCOLS = {"concord.core.protocols"}
SEARCHING = {"knowledge", "parts", "search"}


def test_what_a_search_imports_names_protocols_for_the_type_checker_alone():
    searching = [path for path in modules() if top(path) in SEARCHING]
    assert [path for path in searching if _module_level(path) & PROTOCOLS] == []


def _name(path: Path) -> str:
    return ".".join(("concord", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__")


def _module_level(path: Path) -> set[str]:
    found: set[str] = set()
    for node in parsed(path).body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("concord"):
            found.add(str(node.module))
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if alias.name.startswith("concord")}
    return found - {"concord"}


def test_the_map_names_every_step_of_an_answer():
    told = (PACKAGE.parents[1] / "ARCHITECTURE.md").read_text(encoding="utf-8")
    named = re.findall(r"(\w+\.py)`", told.partition("## The steps of an answer\n")[2].partition("\n## ")[0])
    steps = [path.name for path in (PACKAGE / "search").glob("*.py") if path.name != "__init__.py"]
    assert {*steps} - {*named} <= {"pipeline.py"}  # which is the story itself
    assert {*named} <= {*steps}
