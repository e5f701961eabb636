"""What all models in ONNX form have in common, whatever they compute: their directory, and their session.

A directory is given as such, or by the name of a model that is on this machine. Nothing is ever downloaded.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

from concord.core.config import Paths
from concord.core.errors import BadValue, KBError

INPUTS = ("input_ids", "attention_mask", "token_type_ids")  # what is made from text alone
_PADDING_NAMES = ("<pad>", "[PAD]")
_MODEL_FILES = ("model.onnx", "onnx/model.onnx")
_NAME = re.compile(r"\w[\w.-]*(?:/\w[\w.-]*)?")  # of a model, as it is published: MODEL or ORG/MODEL
_DEFAULT_WINDOW = 512  # of nearly every published encoder
_LARGEST_WINDOW = 1 << 20  # a tokenizer without a limit names one of thirty digits
_TOPOLOGY = "/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list"
_SILENT = "ORT_DISABLE_TELEMETRY"  # onnxruntime's own variable, heeded only while it is loaded
_ERRORS_ONLY = 3  # onnxruntime's log level: its warnings are not for users
# How long a thread of onnxruntime spins for more work, in microseconds. On a busy machine its own default
# cost a third of the throughput and made a query 1.5 times as slow; without any, an idle machine was a fifth
# slower.
_SPIN_US = "20"

Error = Callable[[str], KBError]


def find_model(name: str, paths: Paths, setting: str) -> tuple[Path, Path]:
    """Return the directory of a model, given as such or by a name, and the model in it.

    Names are looked for under our own `models` and in Hugging Face's cache.

    Raises:
        BadValue: there is none, or something is missing that it cannot do without.
    """
    given = Path(os.path.expanduser(name))  # pathlib's own raises for a stranger's ~
    looked = [given.absolute()] if name else []
    if _NAME.fullmatch(name) and not given.is_dir():
        hub = Path(paths.hub, f"models--{name.replace('/', '--')}")
        looked += [Path(paths.models, name), *(_snapshots(hub) or [hub])]
    known = [(home, *_model_file(home)) for home in looked if home.is_dir()]
    for home, model, missing in sorted(known, key=lambda row: bool(row[2])):  # a whole one first
        if missing:
            raise BadValue(
                f"the model directory {home} has no {missing}",
                hint="export the model to ONNX (as with optimum-cli) together with its fast tokenizer",
            )
        return home, model
    places = ", ".join(map(str, looked)) or "no folder"
    raise BadValue(
        f"{setting} names no model on this machine, {name!r}: looked in {places}",
        hint=f"set {setting} to a directory with model.onnx and tokenizer.json; none is downloaded",
    )


def _snapshots(repository: Path) -> list[Path]:
    """Return the versions of a model that Hugging Face's programs have downloaded, the current one first."""
    try:
        current = (repository / "refs/main").read_text("ascii").strip()
    except (OSError, ValueError):
        current = ""
    return sorted((repository / "snapshots").glob("*"), key=lambda home: (home.name != current, home.name))


def _model_file(directory: Path) -> tuple[Path, str]:
    """Return where a directory's model is, and the name of what it cannot do without and has not."""
    places = [directory / name for name in _MODEL_FILES]
    model = next((place for place in places if place.is_file()), places[0])
    needed = (model, directory / "tokenizer.json")
    return model, next((path.name for path in needed if not path.is_file()), "")


def read_json(path: Path) -> dict[str, Any]:
    """Return what one of a model's files says; a file that is not there says nothing."""
    try:
        content = json.loads(path.read_bytes())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as fault:
        raise BadValue(f"{path} cannot be read: {fault}", hint="mend or remove the file") from fault
    return content if isinstance(content, dict) else {}


def read_window(directory: Path) -> int:
    """Return how many tokens a model reads: the smallest number that its files name."""
    named = (
        _positions(read_json(directory / "config.json")),
        read_json(directory / "tokenizer_config.json").get("model_max_length"),
        read_json(directory / "sentence_bert_config.json").get("max_seq_length"),
    )
    numbers = (int(limit) for limit in named if isinstance(limit, int | float))
    return min((number for number in numbers if 0 < number < _LARGEST_WINDOW), default=_DEFAULT_WINDOW)


def padding_id(tokenizer: Any) -> int:
    """Return the token that fills rows up, which few tokenizers name and most have."""
    if tokenizer.padding:
        return int(tokenizer.padding["pad_id"])
    known = (tokenizer.token_to_id(name) for name in _PADDING_NAMES)
    return next((number for number in known if number is not None), 0)


def _positions(config: Mapping[str, Any]) -> Any:
    positions = config.get("max_position_embeddings")
    if isinstance(positions, int) and "roberta" in str(config.get("model_type", "")):
        return positions - 1 - int(config.get("pad_token_id", 1))  # they begin after the one for padding
    return positions


def runtime() -> Any:
    """Return onnxruntime. It is imported here alone, because it has to be silenced first.

    From 1.29 on it keeps a device id and a record of events in the user's home, and sends them to its makers;
    its own function that turns this off comes too late. If the user has set the variable, that stands.
    """
    os.environ.setdefault(_SILENT, "1")
    import onnxruntime  # late: counting tokens must not pay for it

    return onnxruntime


class Session:
    """A loaded network, of which one call runs at a time.

    What onnxruntime has to say against it is raised as an error of the caller's, made from its first line.
    """

    def __init__(
        self,
        name: str,
        model: Path | bytes,
        threads: int,
        error: Error,
        *,
        is_fused: bool = False,
        folder: str = "",
        weights: Mapping[str, Any] | None = None,
        gives_back: bool = False,
    ) -> None:
        """Load a network from its file or contents; its weights may be in a folder, or at hand as arrays.

        One that gives back keeps no memory of a run, which costs a few hundredths of its time.
        """
        options = _session_options(threads, is_fused=is_fused, folder=folder)
        self._values = _values(weights or {})  # as long as the session, which does not copy them
        options.add_external_initializers(list(self._values), list(self._values.values()))
        source = model if isinstance(model, bytes) else str(model)
        self._error = error
        self._run_options = runtime().RunOptions()
        if gives_back:
            self._run_options.add_run_config_entry("memory.enable_memory_arena_shrinkage", "cpu:0")
        with _faults_as(error):
            self._session = runtime().InferenceSession(source, options, ["CPUExecutionProvider"])
        _trim()
        self._inputs = [given.name for given in self._session.get_inputs()]
        self._outputs = [str(given.name) for given in self._session.get_outputs()]
        if strange := sorted(set(self._inputs).difference(INPUTS)):
            raise BadValue(
                f"the model {name} wants the input {', '.join(strange)}",
                hint=f"use a model whose inputs are among {', '.join(INPUTS)}",
            )

    def run(self, feed: Mapping[str, Any], preferred: Sequence[str]) -> Any:
        """Return one output: the first preferred one that there is, else the first. It gets what it wants."""
        output = next((name for name in preferred if name in self._outputs), self._outputs[0])
        return self.run_all(feed, [output])[0]

    def run_all(self, feed: Mapping[str, Any], outputs: Sequence[str]) -> list[Any]:
        """Return outputs by name, in this order."""
        with _faults_as(self._error):
            wanted = {name: feed[name] for name in self._inputs}
            found: list[Any] = self._session.run([*outputs], wanted, self._run_options)
            return found


def _trim() -> None:
    """Give back what loading took and left: the C library keeps it, 17 MB of the reader's, for later."""
    if sys.platform == "linux":
        import ctypes

        with suppress(AttributeError):  # not every C library can
            ctypes.CDLL(None).malloc_trim(0)


def _session_options(threads: int, *, is_fused: bool, folder: str) -> Any:
    options = runtime().SessionOptions()
    options.intra_op_num_threads = threads or physical_cores()
    options.inter_op_num_threads = 1
    options.log_severity_level = _ERRORS_ONLY
    options.add_session_config_entry("session.intra_op.spin_duration_us", _SPIN_US)
    if is_fused:  # then onnxruntime need not look for operators that it could fuse
        options.graph_optimization_level = runtime().GraphOptimizationLevel.ORT_ENABLE_BASIC
    if folder:
        options.add_session_config_entry("session.model_external_initializers_file_folder_path", folder)
    return options


def _values(arrays: Mapping[str, Any]) -> dict[str, Any]:
    make = runtime().OrtValue.ortvalue_from_numpy
    return {name: make(array.copy(order="C")) for name, array in arrays.items()}


@contextmanager
def _faults_as(error: Error) -> Iterator[None]:
    try:
        yield
    except _fault_kinds() as fault:
        raise error(str(fault).splitlines()[0]) from fault


@cache
def _fault_kinds() -> tuple[type[Exception], ...]:
    """Return onnxruntime's errors, which share no class of their own."""
    state = vars(runtime().capi.onnxruntime_pybind11_state)
    return tuple(kind for kind in state.values() if isinstance(kind, type) and issubclass(kind, Exception))


def physical_cores() -> int:
    """Return how many cores this process may use; two threads of one core only get in each other's way."""
    allowed = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else range(os.cpu_count() or 1)
    try:
        return len({Path(_TOPOLOGY.format(cpu)).read_text("ascii") for cpu in allowed})
    except OSError:
        return len(allowed)
