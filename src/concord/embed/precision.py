"""Which arithmetic to use on this machine: int8 where it was seen to be right and faster, exact elsewhere.

Integer kernels differ from processor to processor: some are slower than floats, some overflow. So both are
tried once, on fixed sentences, and the verdict is kept beside the models. It names the processor and the
runtime, because a cache directory may be shared or outlive an upgrade.
"""

from __future__ import annotations

import json
import platform
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from msgspec import Struct
from msgspec.structs import asdict

from concord.durable import replace_file
from concord.embed.runtime import TextEncoder
from concord.onnx_models import runtime
from concord.types import Vector

WORST_COSINE = 0.98  # below it, both precisions would no longer be one model
_WORTH_IT = 1.1  # times as fast: less is not worth any loss
_ROUNDS = 3  # the best of them counts; the two take turns, so that both meet the same load
_CPU_INFO = Path("/proc/cpuinfo")

SENTENCES = (
    "how does authentication work",
    "Requests carry a bearer token in the Authorization header; it expires after fifteen minutes.",
    "CVE-2024-1234",
    "def area(radius: float) -> float:\n    return 3.14159 * radius ** 2\n",
    "The committee met in Zürich on 12 March 1998 and adopted the proposal by nine votes to two.",
    "Die Zellen wurden bei 37 °C für 24 Stunden inkubiert.",
    "東京は日本の首都です。",
    "| name | value |\n|------|------:|\n| k1   |  0.9  |\n",
)


class Trial(Struct, frozen=True):
    """How int8 did against exact."""

    machine: str
    worst_cosine: float
    speedup: float

    @property
    def is_right(self) -> bool:
        """Whether int8 may stand in for exact."""
        return self.worst_cosine > WORST_COSINE

    @property
    def is_worth_it(self) -> bool:
        """Whether int8 is also the better choice."""
        return self.is_right and self.speedup > _WORTH_IT


def attempt(exact: TextEncoder, int8: TextEncoder) -> Trial:
    """Compare the two on this machine."""
    worst = min(map(cosine, exact.embed(SENTENCES), int8.embed(SENTENCES)))
    passage = [" ".join(SENTENCES)] * 4
    rounds = [(_seconds(exact, passage), _seconds(int8, passage)) for _ in range(_ROUNDS)]
    slow, fast = map(min, zip(*rounds, strict=True))
    return Trial(machine(), round(worst, 4), round(slow / fast, 2))


def recall(path: Path) -> Trial | None:
    """Return the trial that was made on this machine, if there was one."""
    try:
        trial = Trial(**json.loads(path.read_bytes()))
    except (OSError, ValueError, TypeError):
        return None
    return trial if trial.machine == machine() else None


def remember(path: Path, trial: Trial) -> None:
    """Keep a trial. Raises OSError where nothing can be kept."""
    replace_file(path, json.dumps(asdict(trial)).encode())


def machine() -> str:
    """Name what decides the speed and the rounding: processor and runtime."""
    return f"{_processor()}, onnxruntime {runtime().__version__}"


def _processor() -> str:
    try:
        with _CPU_INFO.open(encoding="utf-8", errors="replace") as lines:
            names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
            return next(names, platform.machine())
    except OSError:
        return platform.machine()


def cosine(one: Vector, other: Vector) -> float:
    """Return the cosine of two vectors of length 1."""
    return float(np.frombuffer(one, "<f4") @ np.frombuffer(other, "<f4"))


def _seconds(encoder: TextEncoder, texts: Sequence[str]) -> float:
    begin = time.perf_counter()
    encoder.embed(texts)
    return time.perf_counter() - begin
