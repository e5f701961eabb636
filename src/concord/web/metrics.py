"""What a monitor asks for, in the text format of Prometheus."""

from __future__ import annotations

import os
import resource
import sys
from collections.abc import Iterator

from concord.mcp.server_state import ServerState
from concord.web.guard import Places


def metrics(state: ServerState, places: Places, org: str | None) -> str:
    """Return the figures of an organisation and of the process."""
    name = state.bases.name_of(org)
    return "".join(f"{line}\n" for line in (*_calls(state, name), *_process(state, places, name)))


def _calls(state: ServerState, org: str) -> Iterator[str]:
    yield "# HELP concord_call_duration_seconds How long calls took; quantiles of the last 200."
    yield "# TYPE concord_call_duration_seconds summary"
    for call, took in sorted(state.latencies.summary(org).items()):
        total = state.latencies.total(org, call)
        for quantile in ("0.5", "0.95"):
            label = f'{{call="{call}",quantile="{quantile}"}}'
            seconds = took[f"p{float(quantile) * 100:g}"] / 1000
            yield f"concord_call_duration_seconds{label} {seconds:.6f}"
        yield f'concord_call_duration_seconds_sum{{call="{call}"}} {total.ms / 1000:.6f}'
        yield f'concord_call_duration_seconds_count{{call="{call}"}} {total.calls}'


def _process(state: ServerState, places: Places, org: str) -> Iterator[str]:
    jobs = state.jobs.running_for(org)
    waiting = sum(job.is_yet_to_begin for job in jobs)
    rows = (
        ("concord_jobs_running", "Jobs that are worked on.", len(jobs) - waiting),
        ("concord_jobs_waiting", "Jobs that wait for their turn.", waiting),
        ("concord_requests_in_flight", "Requests that are being answered.", places.taken_by.total()),
        ("process_resident_memory_bytes", "Memory of the server process.", _memory()),
    )
    for name, told, value in rows:
        yield f"# HELP {name} {told}"
        yield f"# TYPE {name} gauge"
        yield f"{name} {value}"


def _memory() -> int:
    """Return what is resident now; where that is not known, the most that ever was."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most if sys.platform == "darwin" else most * 1024
