"""Every promise that Concord makes, by id: where it was made and what it says.

Tests name the promises they keep with `@pytest.mark.promise("id", …)`; `test_requirements.py` fails if a
promise has no test or a test names a promise that is not here.
"""

from __future__ import annotations

from typing import NamedTuple


class Promise(NamedTuple):
    """One promise and where it was made."""

    source: str
    text: str


PROMISES: dict[str, Promise] = {
    # Seed 001, the command line's search: every SHALL and every scenario.
    "001.fts.triggers": Promise(
        "001 Full-text search", "the FTS5 table follows the chunks table by triggers"
    ),
    "001.fts.tokenizer": Promise(
        "001 Full-text search", "words are stemmed by Porter and split as Unicode says"
    ),
    "001.fts.escaped": Promise(
        "001 Full-text search", "no character of a query is ever syntax for the engine"
    ),
    "001.fts.keyword-search": Promise("001 Keyword search", "any of the words, stemmed, ranked by BM25"),
    "001.fts.fts-only": Promise("001 FTS-only mode", "--fts-only runs no vector search"),
    "001.vec.same-model": Promise(
        "001 Vector similarity", "a query is embedded by the model of the stored chunks"
    ),
    "001.vec.cosine": Promise("001 Vector similarity", "vectors are compared by cosine"),
    "001.vec.candidates": Promise(
        "001 Vector similarity", "each leg gives three times as many as were asked for"
    ),
    "001.vec.semantic-search": Promise("001 Semantic search", "meaning is found where the words are not"),
    "001.vec.vec-only": Promise("001 Vector-only mode", "--vec-only runs no word search"),
    "001.rrf.formula": Promise(
        "001 RRF", "the score is Σ 1/(k + rank) with k = 60 by default, and k can be set"
    ),
    "001.rrf.sorted": Promise("001 RRF", "results come by falling score"),
    "001.rrf.hybrid": Promise("001 Hybrid search", "both legs run and are merged"),
    "001.rrf.both-lists": Promise(
        "001 Both result sets", "ranks 2 and 5 give 0.0315, more than one list alone can"
    ),
    "001.tags.single": Promise("001 Tags", "a tag leaves only documents that carry it"),
    "001.tags.and": Promise("001 Tags", "several tags must all be there"),
    "001.tags.join": Promise("001 Tags", "tags are filtered inside the engine, by a join"),
    "001.type.filter": Promise("001 Types", "a type leaves only documents of that type"),
    "001.type.valid": Promise("001 Types", "a type that does not exist is an error that lists those that do"),
    "001.threshold": Promise("001 Threshold", "results under the threshold are left out"),
    "001.top.default": Promise("001 Result count", "ten results, or what search.default_top says"),
    "001.top.flag": Promise("001 Result count", "--top 5 gives at most five"),
    "001.top.fewer": Promise("001 Result count", "three matches are three results and returned is 3"),
    # Seed 000, the whole.
    "000.lexical.phrase": Promise("000 §3.1", "a quoted phrase matches only these words in this order"),
    "000.lexical.boolean": Promise("000 §3.1", "AND, OR and NOT between words are operators"),
    "000.rrf.weighted": Promise(
        "000 §3.3", "with weights of 0.5, ranks 1 and 3 give 0.0161 and rank 1 alone 0.0082"
    ),
    "000.schema": Promise("000 §6.1", "sources, documents and chunks are tables with foreign keys"),
    "000.hash": Promise(
        "000 §6.1", "the hash of the cleaned content decides whether anything is indexed again"
    ),
    "000.parallel": Promise("000 §7.2", "the strategies run side by side"),
    "000.degrade.semantic": Promise(
        "000 §9", "without vectors or a model, words answer and the answer says so"
    ),
    "000.degrade.lexical": Promise("000 §9", "without words there is an error, not an empty answer"),
    "000.remove.order": Promise(
        "000 §9.5", "vectors go first, then FTS rows, chunks, documents and the source"
    ),
    "000.remove.counts": Promise("000 §9.5", "removal returns documents_deleted and vectors_deleted"),
    "000.remove.line": Promise("000 §9.5", "`kb remove` prints the source with both counts"),
    "000.remove.no-vectors": Promise(
        "000 §9.5", "removing a source that was never embedded reports 0 vectors"
    ),
    # Seed 002, what the embedded core takes from it.
    "002.supersede": Promise(
        "002 Vector search", "superseded documents are left out unless they are asked for"
    ),
    "002.cache": Promise("002 Pipeline", "query vectors are kept for 60 s, 50 of them; results never"),
    "002.snippet": Promise(
        "002 Snippets", "240 characters around the match, with an ellipsis where text was cut"
    ),
    "002.title": Promise("002 Keyword search", "a word in the title counts for more"),
    "002.hnsw": Promise("002 Vector search", "PostgreSQL finds vectors by an HNSW index over cosine"),
    "002.ef-search": Promise(
        "002 Vector search", "ef_search is 64 unless a query says otherwise, and never above 200, with a note"
    ),
    # Seed 004, what the embedded core takes from it.
    "004.sentinel": Promise(
        "004 Distance metric", "a vector table without the cosine sentinel is migrated by itself"
    ),
    "004.fields": Promise("004 FTS5 indexing", "title, content and tags are all searched"),
    "freshness.hits": Promise(
        "E part 6",
        "each result says whether its file is as it was indexed, by a look when answering",
    ),
    "freshness.deleted": Promise(
        "E part 6", "passages of deleted files are left out and counted, and the next ones move up"
    ),
    "freshness.own-writes": Promise(
        "E part 6",
        "a search can wait for the generation that a sync returned, and says if it had to go without",
    ),
    "freshness.watch": Promise(
        "E part 6", "`kb sync --watch` follows saves, renames, mass changes and removed folders until Ctrl-C"
    ),
    "doctor.finds": Promise(
        "E part 8",
        "`kb doctor` finds damage, indexes out of step, ghosts, unreadable sources, a provider that is down",
    ),
    "doctor.fixes": Promise(
        "E part 8", "`kb doctor --fix` puts right what loses nothing, and tells what is left"
    ),
    "004.working-set": Promise(
        "004 Future considerations",
        "how lately and how often a document was read may lift it, a little, if wanted",
    ),
    "feedback.evidence": Promise(
        "E part 7", "opinions on results are evidence for calibration and evaluation, and move no result"
    ),
    "004.fts.fields": Promise(
        "004 FTS5 indexing",
        "summary, content, context, highlights, aliases and the values of details are searched by words",
    ),
    "004.details.recursive": Promise(
        "004 FTS5 indexing", "details are searched however deep they are nested: 386DX33, and its part 386"
    ),
    "004.embed.assembly": Promise(
        "004 Embedding pipeline", "all fields of a note are embedded as one text, put together in one place"
    ),
    "004.note.round-trip": Promise(
        "004 The JSON provider", "notes are exported to JSON or Markdown and imported again without loss"
    ),
    "004.cache": Promise("004 Embedding pipeline", "no text is embedded twice by the same model"),
    "004.identifier-parts": Promise("004 Worked example", "386 finds 386DX33"),
    # Seed 003 §6–7 and issue B: the cascade, deadlines, cold start, progressive results, explain.
    "003.cascade.relaxed": Promise(
        "003 §6", "when nothing is found, words that begin alike answer, labelled low, with a note"
    ),
    "003.cascade.partial": Promise(
        "003 §6", "then similar words and parts of words answer, labelled speculative, with a note"
    ),
    "003.cascade.best-first": Promise("B part 7", "the best match comes first on every step"),
    "003.cascade.unanswerable": Promise(
        "DESIGN §4.11", "the steps also join what meaning found when that is no answer and words found none"
    ),
    "003.cascade.budget": Promise("003 §6", "each step has its own time, and one that is late is named"),
    "003.cascade.no-results": Promise("003 §6", "what no step finds is labelled no_results, with a note"),
    "003.cascade.suggestions": Promise(
        "003 §6", "a query that fails is suggested as it was probably meant, with words that are known"
    ),
    "003.cascade.related": Promise("003 §6", "documents near in meaning are suggested by their titles"),
    "003.cascade.empty": Promise(
        "DESIGN §4.11", "an empty or never-synced knowledge base says so, and what to do"
    ),
    "003.deadline": Promise(
        "003 §1", "a search ends at its deadline; who did not answer is named with the reason"
    ),
    "003.deadline.exit": Promise("DESIGN §2", "a finished command never waits for a hung strategy"),
    "003.coldstart": Promise("003 §7", "while the model is cold, words answer, labelled fts_only"),
    "003.progressive": Promise("003 §7.3", "preliminary results by words, then the final answer"),
    "003.bad-input": Promise("B, bad input", "no query is an error: each has an answer that says what it is"),
    "B.explain": Promise("B part 10", "the arithmetic behind a result, as data and as a table"),
    "B.explain.why-not": Promise("B part 10", "`kb explain` says why a passage did not rank"),
    # Ranking, storage and chunking, from the seeds and the design.
    "000.candidates.forty": Promise("000 §7.2", "each strategy gives at least 40 candidates"),
    "000.classify.patterns": Promise(
        "000 §4.4", "quotes, capitalised names and question words decide the query type"
    ),
    "000.entity.boost": Promise("000 §4.3", "a chunk that mentions the query's entity is lifted"),
    "000.confidence.matrix": Promise("000 §4.3", "the confidence label follows from who found the hit"),
    "000.mmr.diversity": Promise("000 §5.1", "a repetition gives way to something new"),
    "000.mmr.lambda": Promise("000 §5.1", "relevance counts 0.7, diversity 0.3"),
    "000.mmr.near-duplicates": Promise("000 §5.1", "near-duplicates are one result"),
    "000.floor.similarity": Promise("000 §5.2", "fused scores under 0.001 are dropped"),
    "000.floor.single-strategy": Promise(
        "000 §5.2", "what one strategy found passes the floor, and the floor never empties an answer"
    ),
    "000.flow.cleaning": Promise("000 §2.2", "boilerplate and OCR slips are removed before chunking"),
    "000.flow.chunking": Promise("000 §2.2", "chunks follow the document's structure"),
    "003.classify.types": Promise("003 §3", "every query gets one of five types, first match wins"),
    "003.classify.entities": Promise("003 §3.2", "names are extracted from the query"),
    "003.weights.matrix": Promise("003 §3.3", "the five weight pairs"),
    "003.weights.rrf": Promise("003 §3.3", "the weights steer reciprocal rank fusion"),
    "003.agreement.found-by": Promise("003 §4.2", "a hit names the strategies that found it"),
    "003.agreement.best-rank": Promise("003 §4.2", "a hit carries its best rank"),
    "003.agreement.score": Promise("003 §4.2", "agreement is the share of the strategies that found it"),
    "003.confidence.labels": Promise("003 §4.2", "more agreement earns a higher label"),
    "003.confidence.answer": Promise("003 §8", "the answer carries one label"),
    "003.adaptive.worked-example": Promise("003 §5.2", "the worked example gives 0.935 and 0.213"),
    "003.adaptive.bonus": Promise("003 §5.1", "full agreement adds a fifth"),
    "004.dominant.worked-example": Promise("004 Hybrid scoring", "0.25 and 0.80 give 0.635"),
    "004.embed.backfill": Promise(
        "004 Backfill", "chunks without a vector are listed, so that embedding can be resumed"
    ),
    "A.faults.full-or-failing-disk": Promise(
        "issue A, faults", "whichever write fails, the old version stays and the next try succeeds"
    ),
    "A.faults.kill-at-any-moment": Promise(
        "issue A, faults", "a killed process leaves the old or the new version, and no lock"
    ),
    "A.faults.corrupt-database": Promise("issue A, faults", "a damaged file is named with what to do"),
    "A.faults.read-only-disk": Promise("issue A, faults", "what may not be written can still be searched"),
    "A.faults.two-writers": Promise("issue A, faults", "processes that write at once lose nothing"),
    "A.faults.two-syncs": Promise("issue A, faults", "one source is synced by one process at a time"),
    "A.sqlite.newer-schema": Promise("issue A part 1", "a newer database is refused and left alone"),
    "A.ingest.words-first": Promise(
        "issue A part 3", "a document is found by words before anything is embedded"
    ),
    "A.ingest.resumes": Promise(
        "issue A part 3", "interrupted embedding goes on where it stopped and embeds nothing twice"
    ),
    "A.sync.one-stat": Promise("issue A part 4", "an unchanged file costs one look and is not opened"),
    "A.sync.one-transaction": Promise(
        "issue A part 4", "a reader sees a changed file's old text or its new one, never a mix"
    ),
    "A.sync.deleted": Promise(
        "issue A part 4", "deleted files disappear, those that could not be looked at do not"
    ),
    "A.sync.renamed": Promise(
        "issue A part 4",
        "a renamed file keeps its document, its chunks and, unless its title changed, its embeddings",
    ),
    "A.sync.one-bad-file": Promise("issue A part 4", "a bad file is named with its reason and stops nobody"),
    "A.search.in-path": Promise(
        "issue A, what a user gets", "--in indexes what is new or changed and searches only it"
    ),
    "A.search.citations": Promise(
        "issue A part 5", "a citation is lines or a page, unique, and reads back what was found"
    ),
    "A.search.same-everywhere": Promise("issue A part 7", "memory and SQLite give the same answers"),
    "A.parts.entry-points": Promise(
        "issue A part 7", "an installed package adds a part without a line of ours"
    ),
    "A.faults.bad-input": Promise(
        "issue A, faults", "empty, cut, locked, binary, huge, forbidden and looping files are told apart"
    ),
    "A.faults.any-query": Promise("issue A, faults", "no query raises, whatever its bytes and its length"),
    "A.faults.one-line": Promise(
        "issue A, faults", "a failed command is a sentence, a hint and status 2, and loses nothing"
    ),
    "design.config-not-obeyed": Promise(
        "DESIGN §6", "a configuration file inside an indexed folder is not obeyed"
    ),
    "design.settings-order": Promise("DESIGN §6", "flag beats environment beats file beats default"),
    "design.filters-inside-engines": Promise("DESIGN §4.13", "filters apply before the best are chosen"),
    "design.narrow-filters-are-exact": Promise(
        "DESIGN §4.13", "a filter that leaves fewer than 8,000 chunks gives what an exact scan gives"
    ),
    "scale.derived-vector-index": Promise(
        "DESIGN §8", "of many vectors codes in memory find 0.99 of the nearest ten, or all are compared"
    ),
    "scale.exact-rescoring": Promise(
        "DESIGN §8", "with an index, scores are those of the vectors, and every change to them counts at once"
    ),
    "design.index-remembers-its-embedder": Promise("DESIGN §2", "vectors of another embedder are refused"),
    "design.organisations-apart": Promise("DESIGN §4.14", "organisations share no row and no statistic"),
    "000.rerank.cosine": Promise(
        "000 §5.3", "the few that are left are scored again by the cosine of query and chunk"
    ),
    "000.rerank.blend": Promise(
        "000 §5.3", "the new score is weight × second look + (1 − weight) × fused score"
    ),
    # Issue D: Qdrant, JSON, moving, degradation.
    "000.qdrant.collection": Promise("000 §6.2", "the collection conduit_kb has the model's size and cosine"),
    "000.qdrant.payload": Promise(
        "000 §6.2", "a point carries its chunk's id, document, source, path, text and index"
    ),
    "000.qdrant.indexes": Promise("D part 2", "every field that a filter asks for is indexed in Qdrant"),
    "000.pool": Promise("000 §7.2", "connections to Qdrant are kept alive"),
    "000.degrade.log": Promise("000 §9", "an outage of meaning is one line in the log"),
    "G.upgrade.reads-nothing": Promise(
        "issue G 6", "no upgrade reads or embeds files anew: old chunks serve until their file changes"
    ),
    "G.remove.stops-sync": Promise(
        "G part 9", "removing a source does not wait for its indexing but stops it"
    ),
    "000.remove.retryable": Promise(
        "000 §9.5", "removal while Qdrant is down deletes nothing and can be tried again"
    ),
    "004.json.file": Promise("004, search paths", "the JSON provider keeps everything in one file"),
    "004.json.fusion": Promise("004, search paths", "the JSON provider combines scores by the same formula"),
    "D.migrate.everything": Promise("D part 5", "everything moves, and nothing is embedded again"),
    "D.migrate.resumable": Promise(
        "D part 5", "a killed migration leaves nothing, and the next does the whole"
    ),
    "D.migrate.verified": Promise("D part 5", "a copy that differs in anything is not called finished"),
    "D.migrate.refuses": Promise("D part 5", "a target that holds something else is left alone"),
    # Issue C: the MCP server.
    "000.mcp.tools": Promise("000 §2.1", "the tools it names exist"),
    "000.mcp.tool-definition": Promise(
        "000 §8.1", "query is required, mode is auto and limit 10, at most 50"
    ),
    "000.mcp.response": Promise("000 §8.2", "results, confidence, strategies, query type and time"),
    "000.mcp.timeouts": Promise("000 §8.3", "a call that hangs is given up with a sentence"),
    "003.cold.fts-only": Promise("003 §7.3", "results by words alone are labelled fts_only"),
    "mcp.tools.eight": Promise("C part 1", "eight tools with the design's arguments"),
    "mcp.budget.default": Promise("C part 2", "an answer is under 2,500 tokens"),
    "mcp.budget.max-tokens": Promise("C part 2", "max_tokens is never exceeded"),
    "mcp.budget.best-first": Promise("C part 2", "whole best passages come before snippets of weak ones"),
    "mcp.resources": Promise("C part 3", "documents are listed and read as resources"),
    "mcp.progress": Promise("C part 3", "indexing tells how far it is"),
    "mcp.cancel": Promise("C part 3", "cancelling stops and loses nothing"),
    "mcp.startup.no-model": Promise("C part 4", "hello needs no model"),
    "mcp.startup.cold": Promise("C part 4", "words answer while the model loads"),
    "mcp.trust.framed": Promise("I §5", "what is quoted is called data in the structured content, too"),
    "mcp.sources.about": Promise("I §5", "tools and searches see what a source is about"),
    "mcp.trust.hidden": Promise(
        "C part 5", "hidden and bidirectional characters are flagged, text unaltered"
    ),
    "mcp.trust.instructions": Promise("C part 5", "text that reads like instructions is flagged, unaltered"),
    "mcp.trust.untrusted": Promise("C part 5", "hits from untrusted sources say so"),
    "mcp.install.clients": Promise("C part 6", "the entry goes where the client looks"),
    "mcp.install.idempotent": Promise("C part 6", "installing twice changes nothing"),
    "mcp.install.keeps": Promise("C part 6", "other entries and comments stay"),
    "mcp.http.loopback": Promise("C part 7", "any bind but loopback needs a token"),
    "mcp.http.host": Promise("C part 7", "requests for other hosts are refused"),
    "mcp.http.origin": Promise("C part 7", "requests from other origins are refused"),
    "mcp.http.token": Promise("C part 7", "every request needs its token"),
    "mcp.http.orgs": Promise("C part 7", "a token sees its own organisation alone"),
    "mcp.http.bounds": Promise("C part 7", "size, time and connections are bounded"),
    "http.same-json": Promise("I §2", "the API answers with the JSON of --json and MCP"),
    "http.progressive": Promise("I §2", "as events, what words find comes first"),
    "http.pages": Promise("I §2", "a page of a PDF is drawn outside the server's process"),
    "http.jobs": Promise("I §2", "long work is a job that can be watched and stopped"),
    "http.errors": Promise("I §2", "errors are one shape: error, message, hint"),
    "http.openapi": Promise("I §2", "the API does what its description says"),
    "http.client": Promise("I §2", "the library's client has the methods of KnowledgeBase"),
    "http.bounds": Promise("I §2", "a slow body is answered with 408, a greedy token with 429"),
    "http.page": Promise("I §2", "no page of another origin can ask, and our own loads nothing from others"),
    "http.ui": Promise("I §2", "kb ui is for one user: its address works once"),
    "mcp.session": Promise("C, tests", "the scripted agent session works from end to end"),
    "mcp.http.session": Promise("C, tests", "the same over HTTP, in either protocol era"),
    "mcp.crowd": Promise("C, tests", "eight clients at once lose nothing"),
    "mcp.conformance": Promise("C, tests", "the applicable conformance scenarios pass"),
    "mcp.bad-input": Promise("C, bad input", "refused in words, and the server lives on"),
    "mcp.roots": Promise("C, bad input", "nothing outside the allowed roots is read, links included"),
    "mcp.vanish": Promise("C, bad input", "a client that vanishes leaves no server behind"),
    "mcp.repeat-safe": Promise("C, tests", "a call sent again does no harm"),
    # Issue B: words, fusions, the table of confidence.
    "B.lexical.identifiers": Promise(
        "B part 3", "code identifiers are matched whole and by part: getUserName and get user name"
    ),
    "B.lexical.unspaced": Promise(
        "B part 3", "Chinese, Japanese, Korean and Thai are searched, words of two characters too"
    ),
    "B.lexical.proximity": Promise("B part 3", "words that stand together as in the query count for more"),
    "B.lexical.headings": Promise("B part 3", "a word in a title or a heading counts for more"),
    "B.lexical.pruning": Promise(
        "B part 3", "stop words and very frequent words take no part in loose matching, never to nothing"
    ),
    "B.classify.table": Promise("B part 1", "150 queries and more, traps among them, have their type"),
    "B.fusion.probabilistic": Promise(
        "B part 2", "logodds pools what the scores of both lists say as probabilities"
    ),
    "B.fusion.pure": Promise(
        "B part 2", "every fusion is a function of the same candidates, and ranks each chunk once"
    ),
    "design.one-lexical-rank": Promise(
        "DESIGN §4.5", "words have one rank: a chunk's better one in exact or relaxed, ties by BM25"
    ),
    "004.dominant.signals": Promise(
        "DESIGN §4.7", "cosine and BM25, as a share of the most the query could score, are within 0 and 1"
    ),
    "B.confidence.total": Promise(
        "B part 6", "whatever the evidence for a hit, exactly one row of the table of labels applies"
    ),
    "design.confidence.cap": Promise(
        "DESIGN §4.10", "a label needs its probability, answerable is one cut, a lone neighbour is not high"
    ),
    "B.gibberish": Promise(
        "B, figures", "gibberish, of which no word is known, never scores like a question: it finds nothing"
    ),
    "003.agreement.answer": Promise("003 §8", "an answer carries the agreement of each of its chunks"),
    "003.cascade.floor": Promise("003 §6.2", "on a step, the floor for results is lowered"),
    "003.coldstart.warm-up": Promise(
        "003 §7.2", "a server loads its model in the background, and meaning joins when it is there"
    ),
    "003.coldstart.keep-warm": Promise("003 §7.2", "a model server is told to keep the model loaded"),
    # Issue B, evaluation and calibration.
    "B.eval.modes": Promise(
        "B part 9", "every mode is measured by nDCG@10, recall at 5, 10 and 100, MRR and P@1"
    ),
    "B.eval.latency": Promise("B part 9", "every mode has its own latency, p50 and p95"),
    "B.eval.auto": Promise("B part 9", "what is measured as auto begins with the hits that a search returns"),
    "B.eval.runs": Promise("B part 9", "a TREC run file a mode gives any other tool the same figures"),
    "B.eval.cached": Promise("B part 9", "a second evaluation of a collection embeds nothing"),
    "B.eval.answerability": Promise(
        "B part 9", "queries of another collection show whether what is not there is known"
    ),
    "B.eval.report": Promise(
        "B part 9", "a report is one page with its plots, and --json has the same figures"
    ),
    "design.eval.auto": Promise(
        "DESIGN §6", "what people wrote in their documents is asked of a copy in which its words are hidden"
    ),
    "design.eval.auto.figures": Promise(
        "DESIGN §6", "figures on one's own documents come with intervals, and the pairs can be kept"
    ),
    "design.sections": Promise(
        "DESIGN §5", "a hit tells of its section; hits of one come as one where tokens are limited"
    ),
    "design.documents": Promise("DESIGN §6", "a document can come once, with its passages under it"),
    "design.level": Promise("DESIGN §6", "a citation is read as its passage, section, document or outline"),
    "design.eval.fixture": Promise("DESIGN §6", "questions and expected files in JSON are measured as well"),
    "B.calibration.fit": Promise(
        "B part 6",
        "confidence is fitted offline, kept in a small file and tells foreign queries from own ones",
    ),
    "B.calibration.labelled": Promise(
        "B part 6",
        "scores that nothing was fitted for are called uncalibrated; words are calibrated whatever the model",
    ),
    "B.calibration.refit": Promise(
        "B part 6", "`kb calibrate` refits confidence to a corpus and says how much better it holds"
    ),
    # Issue E, models and their life (with seeds 000 §9, 002 and 004).
    "E.providers.dialects": Promise(
        "E part 2", "Ollama's and OpenAI's embeddings are spoken, in batches, with the model's own prefixes"
    ),
    "E.providers.bounded": Promise("E part 2", "no more requests are under way at once than allowed"),
    "E.providers.timeouts": Promise("E part 2", "a server that does not answer is given up in time"),
    "E.providers.retries": Promise("E part 2", "what can succeed is tried again, and nothing else"),
    "E.providers.isolates": Promise("E part 2", "one bad text keeps no other from its vector"),
    "E.providers.believes-nothing": Promise(
        "E part 2", "vectors that are NaN, zero or of another size are refused"
    ),
    "E.providers.overflow": Promise(
        "E part 2", "a text longer than the model's window is embedded in parts and reported, never dropped"
    ),
    "E.providers.dies": Promise("E, tests", "a server that dies in the middle costs nothing but a sync"),
    "E.providers.secrets": Promise(
        "E part 2", "a key is neither shown nor stored nor sent to another server than its own"
    ),
    "000.degrade.ollama": Promise(
        "000 §9", "with the embedding server unavailable, words answer and the answer says so"
    ),
    "003.cold-start.frozen": Promise(
        "E, tests", "with the provider frozen, a search with a deadline is answered from words"
    ),
    "E.models.never-mixed": Promise(
        "E part 4", "no query ever meets vectors of another model, whatever is switched meanwhile"
    ),
    "E.models.store-decides": Promise(
        "E part 4", "a store goes on with the model of its vectors, whatever the settings name later"
    ),
    "E.models.beside": Promise(
        "E part 4", "a new model's vectors are built beside the old while searches go on with the old"
    ),
    "E.models.resumable": Promise("E part 4", "building a model's vectors goes on where it was killed"),
    "E.models.switch": Promise("E part 4", "a switch is atomic, and going back is instant"),
    "E.models.complete": Promise(
        "E part 4", "what was stored after a model was added has its vector before the model is used"
    ),
    "E.models.commands": Promise("E part 4", "kb models list, add, use and remove, also as JSON"),
    "004.backfill.words": Promise(
        "004 Backfill", "every document's words are indexed anew with the current extraction of fields"
    ),
    "004.backfill.cached": Promise(
        "004 Backfill", "vectors come from the cache, and only what changed is embedded"
    ),
    "E.backfill.resumable": Promise(
        "E part 5", "a backfill that was interrupted has less to do the next time"
    ),
    "E.backfill.beside-searches": Promise("E part 5", "searches are answered while a backfill runs"),
    "E.cache.hit-rate": Promise("E part 3", "the cache tells how often a text did not have to be embedded"),
    "E.cache.eviction": Promise("E part 3", "over its limit, the cache forgets the least recently used"),
    # Issue I, one engine behind every client.
    "I.engine.one": Promise("I part 1", "one process works for all clients of one user and configuration"),
    "I.engine.same": Promise("I part 1", "commands say the same with and without an engine"),
    "I.engine.apart": Promise("I part 1", "other settings and other versions never meet"),
    "I.engine.private": Promise("I part 1", "nobody but its own user reaches an engine"),
    "I.engine.idle": Promise("I part 1", "an engine ends when nobody needs it"),
    "I.engine.never": Promise("I part 1", "engine.start = never starts none"),
    "I.engine.fallback": Promise("I part 1", "what no engine can do, its client does itself"),
    "I.engine.dies": Promise(
        "I, bars", "killed in the middle, every call is answered or fails in words, and nothing is lost"
    ),
    "I.engine.cancel": Promise("I part 1", "a client that goes away cancels what it asked for"),
    "I.engine.watch": Promise("I part 1", "one process keeps sources current, if that is wanted"),
    "I.relay.light": Promise("I part 1", "the relay imports neither the SDK nor a store"),
    "I.relay.reconnects": Promise("I part 1", "the next request after an engine's end reaches another"),
    "I.relay.own": Promise("I part 1", "roots, jobs and latencies are each client's own"),
    # Issue I: the page.
    "I.get.several": Promise("I part 5", "several citations or a glob are read in one call"),
    "I.install.url": Promise("I part 5", "a client is told of a server by its address, never its token"),
    "I.install.check": Promise("I part 5", "kb install --check says whether each client sees a server"),
    "I.bundle": Promise(
        "I part 5", "a bundle for Claude Desktop starts the server with the folders it is given"
    ),
    "I.retrievers": Promise("I part 5", "LangChain and LlamaIndex get citations, scores and answerable"),
    "I.page.typing": Promise("I part 3", "results come while typing, marked, and say how far to trust them"),
    "I.page.document": Promise("I part 3", "a document opens at the passage, which is marked"),
    "I.page.filters": Promise("I part 3", "filters limit a search, and every state has an address"),
    "I.page.sources": Promise(
        "I part 3", "sources are added, synced and removed, with progress and failures"
    ),
    "I.page.why": Promise("I part 3", "a hit tells its arithmetic, and any passage why it is not there"),
    "I.page.feedback": Promise("I part 3", "good and bad are one click, and are counted"),
    "I.page.health": Promise("I part 3", "what doctor finds is shown, and mended where it can be"),
    "I.page.look": Promise("I part 3", "dark, light and small screens"),
    "I.page.keyboard": Promise("I part 3", "the keyboard is enough"),
    "I.page.accessible": Promise("I part 3", "axe-core finds nothing serious"),
    "I.page.small": Promise("I part 3", "small files, no build step, nothing inline, no other host"),
    "I.page.hits": Promise("I part 4", "two hundred hits"),
    "I.page.long": Promise("I part 4", "a document of 2 MB"),
    "I.page.safe": Promise("I part 4", "hostile titles and texts are only text"),
    "I.page.away": Promise("I part 4", "the server may go away and come back"),
    "I.page.tabs": Promise("I part 4", "two tabs show the same"),
    "I.page.session": Promise("I part 2", "kb ui opens the page with a code that works once"),
    # docs/promises.md: what holds whatever goes wrong. Each has a campaign in tests/torture.
    "torture.damage": Promise(
        "docs/promises.md",
        "a store that is damaged anywhere answers as before, or is named damaged with what to do",
    ),
    "torture.recovery": Promise(
        "docs/promises.md",
        "of 100 stores damaged beyond opening, `kb recover` brings all notes back from at least 90",
    ),
    "torture.power": Promise(
        "docs/promises.md",
        "what was acknowledged is there after a power cut, whatever was written and not synced",
    ),
    "torture.disk-errors": Promise(
        "docs/promises.md",
        "a disk that fails for a moment is not damage: nothing is lost and no store is taken for new",
    ),
    "torture.histories": Promise(
        "docs/promises.md",
        "after any history of edits, moves and interruptions, the index is what a fresh one would be",
    ),
    "torture.versions": Promise(
        "docs/promises.md",
        "two versions of the program on one store at once corrupt nothing; a newer store is left alone",
    ),
    "torture.bystanders": Promise(
        "docs/promises.md",
        "of 200 stores with a damaged vector, posting or row, at least 195 give all other answers as before",
    ),
    "torture.roots": Promise(
        "docs/promises.md",
        "what becomes a link to a place outside while it is synced is never read through that link",
    ),
    "torture.organisations": Promise(
        "docs/promises.md",
        "two organisations of one server share nothing: no reply to one holds a word of the other's",
    ),
    "torture.faulty-servers": Promise(
        "docs/promises.md",
        "a model server that answers nonsense costs meaning only: no wrong vector is kept, later all is well",
    ),
    "torture.load": Promise(
        "docs/promises.md",
        "of clients that read and write at once none meets an error; a call too many is told to come back",
    ),
    "torture.files": Promise(
        "docs/promises.md",
        "a file that is damaged in any way is read or named with a reason, and the files beside it are read",
    ),
}
