"""What does a search work with? The adapters that are open, and the settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from concord.search.calibration import UNFITTED, Calibration

if TYPE_CHECKING:
    from concord.core.protocols import Reranker, Similarity, Strategy
    from concord.search.reader_model import ReaderModel
    from concord.store.contract import Snapshot, Store
    from concord.types import Degraded


class Tools(Struct, frozen=True):
    """What a search works with."""

    store: Store
    strategies: Sequence[Strategy]
    settings: Mapping[str, Any]
    org: str
    similarity: Similarity | None = None  # for cosines of chunks that the semantic strategy did not return
    calibration: Calibration = UNFITTED
    reranker: Reranker | None = None
    snapshot: Snapshot | None = None  # if it was taken already
    absent: Degraded | None = None  # why meaning is not among the strategies, where it should be
    reader: ReaderModel | None = None
    unread: Degraded | None = None  # why there is no reader, where there should be
