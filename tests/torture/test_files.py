"""Files of every format, flipped, cut, repeated and spliced: each is read, or fails with a sentence."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path
from zipfile import ZipFile

import pytest

from support.file_samples import SAMPLES
from support.office_samples import make_archive
from support.recorders import SyncBench, opened, write

MUTANTS = 50  # files in one case
# Not what a reader says by accident: a library's own words are as good as ours.
SENTENCE = re.compile(
    r"(?!.*\b(Recursion|Overflow|Type|Key|Index|Attribute|Name|UnboundLocal|Assertion|ZeroDivision)Error).+",
    re.DOTALL,
)


def mutated(data: bytes, draw: random.Random) -> bytes:
    """Return what became of bytes: some flipped, cut, repeated, a few times or very often, or spliced."""
    at, end = sorted(draw.choices(range(len(data) + 1), k=2))
    kind, piece = draw.randrange(5), data[at:end][:80]
    if kind == 0:
        return bytes(byte ^ (1 << draw.randrange(8)) if draw.random() < 0.03 else byte for byte in data)
    if kind == 1:
        return data[:end]
    if kind == 2:
        return data[:at] + piece * draw.choice((2, 9, 300, 20_000 // (len(piece) or 1))) + data[end:]
    other = SAMPLES[draw.choice(sorted(SAMPLES))] if kind == 3 else data
    return data[:end] + other[draw.randrange(len(other)) :] + data[at:]


def within(data: bytes, draw: random.Random) -> bytes:
    """Return an archive of which one part was mutated before it was packed."""
    with ZipFile(BytesIO(data)) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    name = draw.choice(sorted(parts))
    return make_archive({**parts, name: mutated(parts[name], draw)})


def mutants(name: str, draw: random.Random) -> Iterator[bytes]:
    for _ in range(MUTANTS):
        data = SAMPLES[name]
        if data.startswith(b"PK") and draw.random() < 0.7:
            yield within(data, draw)
        else:
            for _ in range(draw.choice((1, 1, 3))):
                data = mutated(data, draw)
            yield data


@pytest.mark.promise("torture.files")
@pytest.mark.campaign(whole=198, part=3)
def test_each_mutated_file_of_a_folder_is_read_or_fails_with_a_sentence(
    seed: int, home: Path, counted: Callable[[int, int], None]
):
    draw, name = random.Random(seed), sorted(SAMPLES)[seed * 7 % len(SAMPLES)]
    write(home / "docs" / f"first-{name}", SAMPLES[name])
    for n, data in enumerate(mutants(name, draw)):
        write(home / "docs" / f"mutant{n}-{name}", data)
    write(home / "docs" / "then.md", "# The last\n\nThe heron waits.\n")
    bench = SyncBench(opened("memory://"))
    try:
        report = bench.add(home / "docs")
    finally:
        bench.reader.close()
    read = bench.paths()
    faults = [each for each in (*report.failed, *report.skipped_files) if not SENTENCE.fullmatch(each.reason)]
    counted(MUTANTS, MUTANTS - len(faults))
    assert not faults
    assert {f"docs/first-{name}", "docs/then.md"} <= set(read)
    assert len(read) + len(report.failed) + sum(report.skipped.values()) == MUTANTS + 2
