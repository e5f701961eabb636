"""Whatever the API's own description allows, and what it does not: schemathesis sends it over HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, assume, settings
from schemathesis.specs.openapi.checks import positive_data_acceptance, unsupported_method

from concord.web import server
from concord.web.asked import description
from concord.web.guard import HttpLimits
from support.mcp_session import write_docs
from support.web_server import ask, serving

pytestmark = pytest.mark.slow

# No schema can say what a date, a cursor or the name of a source is: such texts are refused in words.
NOT_MEANT = [positive_data_acceptance]
EXAMPLES = 6  # of each request: with a thousand of each, once by hand, nothing more came up


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server that knows a few documents."""
    place = tmp_path_factory.mktemp("api")
    docs = write_docs(place / "docs")
    with serving(place / "home", HttpLimits(4_000_000, 50)) as served:
        assert ask(served, "POST /api/v1/sources?wait=60", {"path": str(docs)}).status == 200
        yield served


# The stream of events never ends.
requests = schemathesis.openapi.from_dict(description()).exclude(path="/api/v1/events")


@requests.parametrize()
@settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
@pytest.mark.promise("http.openapi")
def test_the_api_does_what_its_description_says(case: Any, url: str):
    assume(len(case.as_curl_command()) < server.MAX_HEAD)
    # A source may be called "notes/sync": so another method on that path is about such a one.
    not_meant = [*NOT_MEANT, unsupported_method] if case.path.endswith("/sync") else NOT_MEANT
    answer = case.call(base_url=url, timeout=60)
    if answer.status_code == 503:  # a deadline of no time at all has passed
        assert answer.json()["error"] in ("BackendDown", "DeadlinePassed")
    else:
        case.validate_response(answer, excluded_checks=not_meant)
