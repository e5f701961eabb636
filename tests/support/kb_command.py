"""`kb` run within the test's own process: what came of one command line."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple


class Run(NamedTuple):
    """How a command ended and what it wrote."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def paths(self) -> list[str]:
        return [result["path"] for result in self.json["results"]]


Kb = Callable[..., Run]
