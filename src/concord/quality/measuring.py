"""How good are the answers? Measuring and calibrating a knowledge base's search on judged queries."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from msgspec import DecodeError, json
from msgspec.structs import replace

from concord.core.errors import BadValue, EmbedderDown, joined
from concord.parts import Parts
from concord.search.setup import Searching
from concord.types import Request, silent

if TYPE_CHECKING:
    from concord.core.config import Settings
    from concord.core.protocols import Progress
    from concord.quality.collection import Collection
    from concord.quality.evaluate import Evaluation, Review
    from concord.quality.own_pairs import Pair
    from concord.quality.refit import Refit
    from concord.search.legs import Tools

Paths = Sequence[str | os.PathLike[str]]


class Measuring:
    """Measures the search that a knowledge base's settings and model make."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def evaluate(
        self,
        folder: str | os.PathLike[str],
        *,
        unanswerable: Paths = (),
        split: str | None = None,
        limit: int | None = None,
        progress: Progress = silent,
    ) -> Evaluation:
        """Measure search on a judged collection, indexed in a store of its own under the cache directory."""
        from concord.quality.collection import foreign_queries, read_collection
        from concord.quality.evaluate import evaluate

        collection = read_collection(Path(folder), split).sampled(limit)
        others = foreign_queries(unanswerable, limit, collection)
        with self.indexed_apart(collection, progress) as tools:
            return self._kept(evaluate(collection, tools, progress, others))

    def evaluate_own(
        self,
        *,
        source: str | None = None,
        n: int,
        save: str | os.PathLike[str] | None = None,
        progress: Progress = silent,
    ) -> Evaluation:
        """Measure search on one's own documents, by pairs that people wrote in them.

        They are asked of a copy in which their words are hidden. `save` names a folder to write them to, as a
        test collection.
        """
        from concord.core.places import find_source
        from concord.quality.apart import copy_without, save_beir
        from concord.quality.collection import settings_at
        from concord.quality.own_pairs import own_pairs

        store, settings = self._parts.store, self._parts.settings
        name = source or "your own documents"
        source_id = find_source(source, store.catalog.snapshot().sources).id if source else None
        pairs = own_pairs(store, n, source_id)
        if not pairs:
            raise BadValue(
                f"no words in {name} say what a document is about",
                hint="titles, headings and links of three words or more do, or results that were called good",
            )
        if save is not None:
            save_beir(pairs, store, Path(save), source_id)
        active = store.catalog.snapshot().active
        identity = active.identity if active else None
        with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            apart = settings_at(Path(folder), settings, self._parts.recipe())

            def fill(other: Parts) -> None:
                copy_without(pairs, store, other.store, identity, progress, source_id=source_id)

            with self._filled_apart(apart, fill, progress) as tools:
                return self._of_pairs(name, pairs, tools, progress, leaves_out=True)

    def evaluate_fixture(self, path: str | os.PathLike[str], *, progress: Progress = silent) -> Evaluation:
        """Measure search on one's own documents, by the questions and expected files of a JSON file."""
        from concord.quality.own_pairs import read_fixture

        pairs = read_fixture(Path(path), self._parts.store.catalog)
        return self._of_pairs(Path(path).stem, pairs, self._own_tools(), progress, leaves_out=False)

    def _of_pairs(
        self, name: str, pairs: Sequence[Pair], tools: Tools, progress: Progress, *, leaves_out: bool
    ) -> Evaluation:
        from concord.quality.collection import Collection
        from concord.quality.evaluate import evaluate

        named = {f"q{at}": pair for at, pair in enumerate(pairs)}
        queries = {id: pair.query for id, pair in named.items()}
        qrels = {id: dict.fromkeys(pair.targets, 1) for id, pair in named.items()}
        kinds = {id: pair.kind for id, pair in named.items()}
        collection = Collection(Path(name), queries, qrels)
        return self._kept(evaluate(collection, tools, progress, kinds=kinds, leaves_out=leaves_out))

    def last_report(self) -> dict[str, Any] | None:
        """Return what the last evaluation measured, as JSON, and when; None before the first."""
        try:
            report: dict[str, Any] = json.decode(self._report_file.read_bytes(), type=dict[str, Any])
        except (OSError, DecodeError):  # there is none, or it is no longer what was written
            return None
        return report

    @property
    def _report_file(self) -> Path:
        """Where the last report of this knowledge base is: beside no store, for most can hold no file."""
        settings, org = self._parts.settings, self._parts.org
        key = hashlib.sha256(f"{settings.store_url}\0{org}".encode()).hexdigest()[:12]
        return Path(settings.paths.data, f"evaluation-{key}.json")

    def _kept(self, found: Evaluation) -> Evaluation:
        """Keep a report for those who show the last one; where it cannot be kept, it is still returned."""
        from concord import __version__
        from concord.core.filesystem import replace_file
        from concord.core.values import iso_time
        from concord.ops.reports import report_to_json

        wire = report_to_json(found, measured_at=iso_time(time.time()), version=__version__)
        with suppress(OSError):
            self._report_file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            replace_file(self._report_file, json.encode(wire))
        return found

    def calibrate(
        self,
        folder: str | os.PathLike[str] | None = None,
        *,
        unanswerable: Paths = (),
        near_misses: Paths = (),
        split: str | None = None,
        limit: int | None = None,
        progress: Progress = silent,
    ) -> Refit:
        """Fit confidence to a judged collection, and keep what was fitted as the user's own calibration.

        Without a collection it is fitted to feedback alone. `near_misses` are files of queries about what the
        documents speak of and do not answer.
        """
        from concord.quality.collection import foreign_queries, read_collection
        from concord.quality.collection import near_misses as queries_of
        from concord.quality.evaluate import feedback_outcomes
        from concord.quality.refit import refit
        from concord.search.calibration import save_calibration

        collection = None if folder is None else read_collection(Path(folder), split).sampled(limit)
        others = foreign_queries(unanswerable, limit, collection)
        near = [text for path in near_misses for text in queries_of(Path(path))]
        identity, own = self._parts.tokenizer().identity, self._own_tools()
        judged = feedback_outcomes(own, progress)
        with self.indexed_apart(collection, progress) if collection else nullcontext(own) as tools:
            fitted = refit(collection, tools, identity, others, progress, judged, near)
        kept_in = Path(self._parts.settings.paths.data)
        return replace(fitted, path=save_calibration(fitted.calibration, identity, kept_in))

    def review(self) -> Review:
        """Return how search does on the results that somebody called good or bad."""
        from concord.quality.evaluate import review

        return review(self._own_tools())

    def _own_tools(self) -> Tools:
        return Searching(self._parts).tools(Request(""), wait_for_model=True)

    @contextmanager
    def indexed_apart(self, collection: Collection, progress: Progress) -> Iterator[Tools]:
        """Index a collection apart from the knowledge base, and yield what it is searched with."""
        from concord.quality.collection import index_collection, settings_apart

        identity, recipe = self._parts.tokenizer().identity, self._parts.recipe()
        apart = settings_apart(collection, self._parts.settings, identity, recipe)

        def fill(other: Parts) -> None:
            index_collection(collection, other.store, other.tokenizer(), other.limits().chunk, progress)

        with self._filled_apart(apart, fill, progress) as tools:
            yield tools

    @contextmanager
    def _filled_apart(
        self, apart: Settings, fill: Callable[[Parts], None], progress: Progress
    ) -> Iterator[Tools]:
        from concord.index.embedding import embed_pending

        with closing(Parts(apart, apart["org"])) as other:
            fill(other)
            if other.embedder is not None:
                embedding = embed_pending(other.store, other.embedder, progress)
                if embedding.pending:  # what is measured would not be what is searched later
                    told = f"{embedding.pending:,} chunks of the collection could not be embedded"
                    raise EmbedderDown(
                        joined(": ", told, embedding.degraded or ""),
                        hint="try again: what has been embedded is kept",
                    )
            yield Searching(other).tools(Request("", mode="auto"), wait_for_model=True)
