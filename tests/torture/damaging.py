"""Damage as disks and file systems do it, at a random place of a file."""

from __future__ import annotations

import random
from pathlib import Path

from concord.store.sqlite.migrations import PAGE_BYTES

KINDS = ("bit", "bit", "zeroed", "cut", "swapped")


def damage(file: Path, draw: random.Random, unit: int) -> str:
    """Damage a file in units of a page or a sector; say how, for whoever reads of a case that is lost."""
    data = bytearray(file.read_bytes())
    units = -(-len(data) // unit)
    first, second = (draw.randrange(units) * unit for _ in range(2))
    kind = draw.choice(KINDS)
    if kind == "bit":
        first = draw.randrange(len(data))
        data[first] ^= 1 << draw.randrange(8)
    elif kind == "zeroed":
        end = min(first + unit, len(data))
        data[first:end] = bytes(end - first)
    elif kind == "cut":
        first = draw.randrange(len(data))
        del data[first:]
    else:
        one, other = data[first : first + unit], data[second : second + unit]
        data[first : first + len(other)], data[second : second + len(one)] = other, one
    file.write_bytes(data)
    return f"{kind} at {first} (of {len(data)}, unit {first // unit + 1})"


def beyond_opening(file: Path, draw: random.Random) -> str:
    """Damage the beginning of a database, without which nothing of it is found; say how."""
    data = bytearray(file.read_bytes())
    kind, end = draw.choice(("header", "noise", "page", "several")), 100
    if kind == "noise":
        end = 512
    elif kind != "header":
        end = PAGE_BYTES * (1 if kind == "page" else draw.randrange(2, 6))
    end = min(end, len(data))
    data[:end] = draw.randbytes(end) if kind == "noise" else bytes(end)
    file.write_bytes(data)
    return f"{kind} up to {end}"
