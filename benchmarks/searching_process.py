"""Searches for another process: a line of JSON in, one out. Run by the interpreter of the side it measures.

It imports nothing of the benchmarks, which belong to the working tree, and of Concord only what is public.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from concord import KnowledgeBase


def main() -> None:
    """Answer until there are no more lines."""
    with KnowledgeBase.open() as kb:
        kb.warm()
        for line in sys.stdin:
            message = json.loads(line)
            reply = _search(kb, message["query"]) if message else _memory()
            print(json.dumps(reply), flush=True)


def _search(kb: KnowledgeBase, text: str) -> dict[str, float]:
    started, cpu_started = time.perf_counter(), time.process_time()
    kb.search(text)
    return {"cpu": time.process_time() - cpu_started, "elapsed": time.perf_counter() - started}


def _memory() -> dict[str, float]:
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return {"kb": float(status.partition("VmRSS:")[2].split()[0])}


if __name__ == "__main__":
    main()
