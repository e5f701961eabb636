"""What all models in ONNX form have in common, whatever they compute: their session, and the end of Python.

When Python ends, a daemon thread that comes back from native code is ended where it stands, and within the
C++ of a model's runtime that aborts the process. So the end waits for native code that is under way. A thread
that waits for a network is ended without harm, and nobody waits for it.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

from concord.core.errors import BadValue, KBError
from concord.core.memory import give_back

INPUTS = ("input_ids", "attention_mask", "token_type_ids")  # what is made from text alone
_TOPOLOGY = "/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list"
_SILENT = "ORT_DISABLE_TELEMETRY"  # onnxruntime's own variable, heeded only while it is loaded
_ERRORS_ONLY = 3  # onnxruntime's log level: its warnings are not for users
# How long a thread of onnxruntime spins for more work, in microseconds. On a busy machine its own default
# cost a third of the throughput and made a query 1.5 times as slow; without any, an idle machine was a fifth
# slower.
_SPIN_US = "20"

# For native code at the end: a model loads in one, and its weights are written in another.
LONGEST_WAIT_S = 10.0

Error = Callable[[str], KBError]


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
        arrays, make = weights or {}, runtime().OrtValue.ortvalue_from_numpy
        # As long as the session, which does not copy them.
        self._values = {name: make(array.copy(order="C")) for name, array in arrays.items()}
        options.add_external_initializers(list(self._values), list(self._values.values()))
        source = model if isinstance(model, bytes) else str(model)
        self._error = error
        self._run_options = runtime().RunOptions()
        if gives_back:
            self._run_options.add_run_config_entry("memory.enable_memory_arena_shrinkage", "cpu:0")
        with _faults_as(error):
            self._session = runtime().InferenceSession(source, options, ["CPUExecutionProvider"])
        give_back()
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


class _UnderWay:
    """How many threads are in native code, and whether any more may go there."""

    changed = threading.Condition()
    count = 0
    is_over = False


@contextmanager
def native_code() -> Iterator[None]:
    """Have the end of Python wait for what is done within; once it has come, no daemon begins any more."""
    with _UnderWay.changed:
        if _UnderWay.is_over and threading.current_thread().daemon:
            raise SystemExit  # ends this thread, without a word
        _UnderWay.count += 1
    try:
        yield
    finally:
        with _UnderWay.changed:
            _UnderWay.count -= 1
            _UnderWay.changed.notify_all()


def _wait() -> None:
    with _UnderWay.changed:
        _UnderWay.is_over = True
        _UnderWay.changed.wait_for(lambda: not _UnderWay.count, LONGEST_WAIT_S)


# Not `atexit`, whose functions `kb` runs before it leaves by `os._exit`: that does no harm to native code.
with suppress(RuntimeError):  # Python is ending already
    threading._register_atexit(_wait)  # type: ignore[attr-defined]
