"""How long do most take, and how long do nearly all? The median and the 95th percentile of some times."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from statistics import median, quantiles

Latency = Mapping[str, float]  # p50 and p95, in milliseconds; nothing where nothing was measured


def percentiles(took_ms: Iterable[float]) -> Latency:
    """Return the median and the 95th percentile, neither beyond what was measured."""
    known = sorted(took_ms)
    if len(known) < 2:
        return dict.fromkeys(("p50", "p95"), known[0]) if known else {}
    return {"p50": median(known), "p95": quantiles(known, n=20, method="inclusive")[-1]}
