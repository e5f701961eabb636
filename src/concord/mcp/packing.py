"""An answer in its two forms, text and structured content, both within the token budget."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from msgspec.structs import replace

from concord.mcp import render
from concord.mcp.words import WORDS
from concord.parts import count_tokens
from concord.reading.budget import as_json, cut_to_bytes, json_length, utf8_length, within
from concord.reading.packing import NUMBER_BYTES, SLIGHT, Form, pack, with_left_out, worth_telling
from concord.text.json_safe import JsonObject
from concord.text.visible import one_line
from concord.types import Answer
from concord.wire import answer_in_words, answer_to_json, frame_of

LEFT_OUT = "{} did not fit into the token budget: raise max_tokens, or narrow the query"
WEAK = "{} left out as unlikely answers (give max_tokens to see them)"
# Of a result: what the citation says already, or what tells how the order came about and not what was found.
FOR_PEOPLE = (
    "chunk_id",
    "start_line",
    "end_line",
    "start_column",
    "end_column",
    "agreement",
    "best_rank",
    "scores",
    "moved_from",
)
MEANING = "semantic"  # the strategy that looks for no words
SCORE_DECIMALS = 4
MOST_GUESSES = 3  # results shown where the answer is probably not among them
NO_WORDS, NO_ANSWER = "no result holds these words", "hardly any of these is an answer"
NEXT_STEP = "{}; try other words, kb_list shows what there is, kb_add_source adds a folder"


class Reply(NamedTuple):
    """What a tool says: the same in structure and in text."""

    structured: JsonObject
    text: str


def pack_answer(answer: Answer, max_tokens: int, *, is_brief: bool = False) -> Reply:
    """Return an answer of at most `max_tokens` tokens in either form; a brief one may well be shorter.

    Beside a result that is likely an answer, a brief one has only a few of those that hardly are.
    """
    answer = answer_in_words(answer, WORDS)
    is_guess = _is_guess(answer)
    if is_guess:
        answer = _guessed(answer)
    elif is_brief:
        answer = _brief(answer)
    return in_tokens(max_tokens, lambda max_bytes: _packed(answer, max_bytes, is_guess))


def in_tokens(max_tokens: int, make: Callable[[int], Reply]) -> Reply:
    """Return the reply that is made of so many bytes as have no more tokens in either form."""
    return within(max_tokens, make, lambda reply: (as_json(reply.structured), reply.text), count_tokens)


def _is_guess(answer: Answer) -> bool:
    """Whether the results are probably no answer, so that none of them is worth much room."""
    if answer.answerable is not False or not answer.hits:
        return False
    return _lacks_words(answer) or max(hit.score for hit in answer.hits) < SLIGHT


def _lacks_words(answer: Answer) -> bool:
    """Whether words were looked for, and only meaning found something, which holds none of them.

    What meaning found may well hold words: where very many passages do, words vote for others.
    """
    by_meaning_alone = {*answer.strategies_matched} <= {MEANING} and answer.mode != "semantic"
    were_asked = not any(part.strategy.startswith("fts_") for part in answer.degraded)
    return by_meaning_alone and were_asked and not any(hit.scores.get("bm25") for hit in answer.hits)


def _guessed(answer: Answer) -> Answer:
    """Return the best few results, and a note on what to do next."""
    step = NEXT_STEP.format(NO_WORDS if _lacks_words(answer) else NO_ANSWER)
    note = f"{answer.note}; {step}" if answer.note else step
    return replace(answer, hits=answer.hits[:MOST_GUESSES], note=note)


def _brief(answer: Answer) -> Answer:
    """Return the results worth sending, and how many others there are."""
    kept = [answer.hits[at] for at in worth_telling([hit.score for hit in answer.hits])]
    note = with_left_out(answer.note, WEAK, len(answer.hits) - len(kept))
    return replace(answer, hits=tuple(kept), note=note)


def _packed(answer: Answer, max_bytes: int, is_guess: bool) -> Reply:
    wire = {"notice": render.NOTICE, **answer_to_json(answer), "timings_ms": {}, "agreement_scores": {}}
    found, forms = len(wire["results"]), _forms(len(wire["results"]))
    if is_guess:
        wire["results"] = [{**result, "text": None} for result in wire["results"]]
    if found and _over(wire, forms, max_bytes) > 0:
        wire = _with_short_best(wire, forms, max_bytes)
    sent = pack(wire, forms, max_bytes, "" if is_guess or found == 1 else LEFT_OUT)
    return Reply(_all_lean(sent), _text(sent, found))


def _forms(found: int) -> tuple[Form, Form]:
    """Return how long an answer is as JSON and as text."""
    structured = Form(
        frame=lambda wire: json_length(frame_of(wire)),
        result=lambda result: json_length(_lean(result)) + 2,
        under=lambda other: json_length(_lean(other)) + 2,
        whole=lambda wire: json_length(_all_lean(wire)),
    )
    told = Form(
        frame=lambda wire: utf8_length(render.answer_head(wire, found)),
        result=lambda result: utf8_length(render.result(result)) + 1,
        under=lambda other: utf8_length(render.under(other)) + 1,
        whole=lambda wire: utf8_length(_text(wire, found)),
    )
    return structured, told


def _text(wire: JsonObject, found: int) -> str:
    linked = [render.linked(wire["linked"])] if wire["linked"] else []
    return "\n".join([render.answer_head(wire, found), *map(render.result, wire["results"]), *linked])


def _all_lean(wire: JsonObject) -> JsonObject:
    return {**wire, "results": [_lean(result) for result in wire["results"]]}


def _lean(result: JsonObject) -> JsonObject:
    """Return a result, or a passage under one, as a model reads it: with either text or snippet, not both."""
    lean: JsonObject = {
        key: value for key, value in result.items() if key not in FOR_PEOPLE and value not in (None, [])
    }
    if "text" in lean:
        lean.pop("snippet", None)
    if not result.get("more_in_document"):
        lean.pop("more_in_document", None)
    if "section" in lean:
        lean["section"] = {key: result["section"][key] for key in ("start_line", "end_line", "tokens")}
    if "more" in lean:
        lean["more"] = [_lean(other) for other in result["more"]]
    if result.get("passage_score") == result["score"]:
        del lean["passage_score"]
    for key in lean.keys() & {"score", "passage_score"}:
        lean[key] = round(lean[key], SCORE_DECIMALS)
    return lean


def _over(wire: JsonObject, forms: tuple[Form, Form], max_bytes: int) -> int:
    """Return by how many bytes an answer of the best result alone is too long, in the form that is longer."""
    best = {**wire["results"][0], "text": None, "more": None}
    spare = len(LEFT_OUT) + NUMBER_BYTES if len(wire["results"]) > 1 else NUMBER_BYTES
    return max(form.frame(wire) + form.result(best) for form in forms) + spare - max_bytes


def _with_short_best(wire: JsonObject, forms: tuple[Form, Form], max_bytes: int) -> JsonObject:
    """Cut the best result and the frame down so that a small budget still holds one citation, if it can.

    Its citation and its confidence stay; the snippet gets the room that is left, and `kb_get` has the rest.
    """
    best, *others = wire["results"]
    if _over(wire, forms, max_bytes) > utf8_length(best["snippet"]) // 2:
        title = _short(best["title"], 40)
        best = {**best, "title": title, "file": None, "tags": [], "heading": [], "also_at": []}
        wire = {
            **wire,
            "results": [best, *others],
            "query": _short(wire["query"], 40),
            "answer": None,
            "sources_about": {},
            "note": _short(wire["note"], 70) if wire["note"] else None,
            "suggestions": [],
            "degraded": [{**part, "reason": _short(part["reason"], 35)} for part in wire["degraded"][:3]],
        }
    # A byte of the snippet may be more in JSON, where it is escaped; what is dropped counts at least once.
    over = max(0, _over(wire, forms, max_bytes))
    snippet = cut_to_bytes(best["snippet"], utf8_length(best["snippet"]) - over)
    return {**wire, "results": [{**best, "snippet": snippet}, *others]}


def _short(text: str, most: int) -> str:
    """Return a text cut to so many bytes of JSON or, spelt out, of text; one character may take six."""

    def written(part: str) -> int:
        return max(json_length(part) - 2, utf8_length(one_line(part)))

    if written(text) <= most:
        return text
    cut = cut_to_bytes(text, most - 3)
    return (cut if written(cut) <= most - 3 else cut_to_bytes(text, most // 6)) + "…"
