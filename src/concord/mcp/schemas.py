"""The shape of what each tool returns, lean enough to travel with every listing of the tools.

`docs/answer.schema.json` explains the answer of `kb_search` key by key; a test holds the two together.
"""

from __future__ import annotations

from typing import Any

Schema = dict[str, Any]

TEXT: Schema = {"type": "string"}
NUMBER: Schema = {"type": "number"}
COUNT: Schema = {"type": "integer", "minimum": 0}
YES_NO: Schema = {"type": "boolean"}


def maybe(schema: Schema) -> Schema:
    """Return the schema of a value that may also be null; some clients cannot read a list of types."""
    return {"anyOf": [schema, {"type": "null"}]}


def several(schema: Schema) -> Schema:
    """Return the schema of a list."""
    return {"type": "array", "items": schema}


def by_name(schema: Schema) -> Schema:
    """Return the schema of an object with any keys."""
    return {"type": "object", "additionalProperties": schema}


def record(**keys: Schema) -> Schema:
    """Return the schema of an object that always has these keys; more may be added."""
    return {"type": "object", "properties": keys, "required": list(keys)}


def or_absent(schema: Schema, **keys: Schema) -> Schema:
    """Return the schema of an object with further keys, which are left out where there is nothing to say."""
    return {**schema, "properties": {**schema["properties"], **keys}}


RESULT = or_absent(
    record(
        rank=COUNT,
        path=TEXT,
        title=TEXT,
        score=NUMBER,
        source=TEXT,
        type=TEXT,
        document_id=TEXT,
        citation=TEXT,
        found_by=several(TEXT),
    ),
    snippet=TEXT,
    text=TEXT,
    passage_score=NUMBER,
    tags=several(TEXT),
    file=TEXT,
    page=COUNT,
    heading=several(TEXT),
    confidence=TEXT,
    freshness=TEXT,
    superseded_by=TEXT,
    also_at=several(TEXT),
    warnings=several(TEXT),
    more_in_document=COUNT,
)
ANSWER = record(
    query=TEXT,
    mode=TEXT,
    query_type=maybe(TEXT),
    fusion=maybe(TEXT),
    org=TEXT,
    confidence=maybe(TEXT),
    confidence_score=maybe(NUMBER),
    answerable=maybe(YES_NO),
    calibrated=maybe(YES_NO),
    strategies_matched=several(TEXT),
    degraded=several(record(strategy=TEXT, reason=TEXT)),
    note=maybe(TEXT),
    suggestions=several(TEXT),
    returned=COUNT,
    total_hits=COUNT,
    omitted=by_name(COUNT),
    generation=COUNT,
    search_time_ms=NUMBER,
    timings_ms=by_name(NUMBER),
    results=several(RESULT),
    agreement_scores=by_name(NUMBER),
)
PAGE = record(
    citation=TEXT,
    path=TEXT,
    file=maybe(TEXT),
    title=TEXT,
    source=TEXT,
    type=TEXT,
    tags=several(TEXT),
    document_id=TEXT,
    start_line=COUNT,
    end_line=COUNT,
    start_column=maybe(COUNT),
    end_column=maybe(COUNT),
    pages=maybe(several(COUNT)),
    heading=several(TEXT),
    freshness=maybe(TEXT),
    superseded_by=maybe(TEXT),
    before=maybe(TEXT),
    after=maybe(TEXT),
    text=TEXT,
    warnings=several(TEXT),
    next_cursor=maybe(TEXT),
)
SYNC = record(
    state={"enum": ["done", "running"]},
    source=maybe(TEXT),
    added=COUNT,
    changed=COUNT,
    removed=COUNT,
    renamed=COUNT,
    unchanged=COUNT,
    skipped=by_name(COUNT),
    failed=several(record(path=TEXT, reason=TEXT)),
    failed_total=COUNT,
    chunks=COUNT,
    embedded=COUNT,
    reused=COUNT,
    pending=COUNT,
    degraded=maybe(TEXT),
    generation=maybe(COUNT),
    progress=maybe(record(stage=TEXT, done=COUNT, total=maybe(COUNT))),
    note=maybe(TEXT),
)
LISTING = record(
    sources=several(
        record(source=TEXT, source_id=TEXT, kind=TEXT, path=maybe(TEXT), documents=COUNT, chunks=COUNT)
    ),
    documents=maybe(several(record(document_id=TEXT, path=TEXT, title=TEXT, type=TEXT))),
    returned=COUNT,
    total=COUNT,
    next_cursor=maybe(TEXT),
)
REMOVAL = record(
    state={"enum": ["done", "running"]},
    source=TEXT,
    documents_deleted=COUNT,
    vectors_deleted=COUNT,
    note=maybe(TEXT),
)
STATS = record(
    org=TEXT,
    store=TEXT,
    sources=COUNT,
    documents=COUNT,
    chunks=COUNT,
    vectors=COUNT,
    pending=COUNT,
    model=maybe(record(provider=TEXT, model=TEXT, dimension=COUNT, metric=TEXT)),
    generation=COUNT,
    types=by_name(COUNT),
    health=record(status=TEXT, problems=several(TEXT), model_warm=YES_NO),
    latencies_ms=by_name(record(calls=COUNT, p50=NUMBER, p95=NUMBER)),
    jobs=several(record(label=TEXT, stage=TEXT, done=COUNT, total=maybe(COUNT))),
)
NOTE = record(document_id=TEXT, path=TEXT, title=TEXT, generation=COUNT)
