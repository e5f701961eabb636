"""Models and their vectors: building a new model's beside the old, trying it, switching, going back."""

from __future__ import annotations

from concord.protocols import Store


def delete_vectors(store: Store, source_id: str) -> int:
    """Delete the vectors of a source, of every model; return how many there were."""
    spaces = store.spaces.all()
    return sum(store.spaces.of(space.identity).delete_source(source_id) for space in spaces)
