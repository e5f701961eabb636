"""Write the networks of our models to src/concord/data: two ONNX graphs of each, without their weights.

    python scripts/build_model.py           writes them, and the vectors that `kb doctor` compares with
    python scripts/build_model.py --check   exits with 1 if the files there are not those it would write

The bundled one is a six-layer RoBERTa encoder whose first token is the answer; the multilingual one has
twelve layers, and its answer is the mean of all tokens. Three things make them cheaper than an exported
graph with the same result to six digits:

- the word table stays int8, and only the rows of the text become floats;
- where the first token is the answer, only that token gets a query, a projection and a feed-forward in
  the last layer: one seventh of all the work;
- a sum followed by LayerNormalization, not onnxruntime's SkipLayerNormalization, which took 7 % of the time
  (onnxruntime 1.31, AVX2) where the two take 2 %.

With precision `int8` the matrices are multiplied in 8-bit integers. Each token is scaled by its own largest
value, so a text's vector does not depend on what else is in its batch and nothing has to be calibrated;
columns are first balanced against the weights. Cosine to exact: 0.998 on average and 0.996 at worst over
prose and code, 0.987 over rubbish such as one word three hundred times. (With one scale for all tokens and
calibrated smoothing: 0.993 on average, and 0.957 for `CVE-2024-1234`.)

A change of the graphs or of their weights wants another `version` of what ships, which names what users
have cached.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from concord.core.config import Paths
from concord.embed import pack
from concord.embed.bundled import SENTENCES, BundledEmbedder, Shipped
from concord.embed.multilingual import MultilingualEmbedder
from concord.embed.onnx import Encoder, does_not_run
from concord.embed.runtime import Session
from support.onnx_file import FLOAT, INT32, INT64, Graph

NOWHERE = Paths("", "", "")  # nothing is kept while a model is built
_SIGNED_MAX = 127
_ZERO_POINT = 128  # the unsigned byte that stands for 0: integer kernels on x86 are fastest with these
_SMALLEST = 1e-6  # used as the largest value of a row of zeros, so that nothing is divided by 0


class _Operand(NamedTuple):
    """The left side of a product: floats, or bytes and what each row was divided by."""

    states: str
    scale: str | None = None


class Network(Graph):
    """The model with the inputs and the output that sentence encoders commonly have."""

    def __init__(self, contents: pack.Pack, precision: pack.Precision) -> None:
        super().__init__()
        self.arch = contents.arch
        self.is_exact = precision == "exact"
        self.is_mean = self.arch.get("pooling") == "mean"
        self.weights = dict(pack.weights(contents, precision))
        ids = self.input("input_ids", INT64, ["batch", "tokens"])
        mask = self.input("attention_mask", INT64, ["batch", "tokens"])
        # rows are filled up on the right, so their lengths say all that the mask does
        lengths = self.node("ReduceSum", [mask, self.integers(1)], keepdims=0)
        lengths = self.node("Cast", [lengths], to=INT32)
        states = self.embedding(ids)
        for layer in range(self.arch["layers"]):
            states = self.layer(layer, states, lengths)
        vectors = self.mean(states, mask) if self.is_mean else self.only(states)
        vectors = self.node("LpNormalization", [vectors], axis=-1, p=2)
        self.output("sentence_embedding", vectors, FLOAT, ["batch", self.arch["hidden"]])

    def only(self, states: str) -> str:
        """Return the states of the one token that is left."""
        return self.node("Reshape", [states, self.integers(-1, self.arch["hidden"])])

    def mean(self, states: str, mask: str) -> str:
        """Add the states of each text's tokens up, which has the direction of their mean."""
        weights = self.node("Unsqueeze", [self.node("Cast", [mask], to=FLOAT), self.integers(-1)])
        weighted = self.node("Mul", [states, weights])
        return self.node("ReduceSum", [weighted, self.integers(1)], keepdims=0)

    def embedding(self, ids: str) -> str:
        """Add words, places and the one segment there is, and normalise."""
        width = self.node("Slice", [self.node("Shape", [ids]), self.integers(1), self.integers(2)])
        place = self.node("Slice", [self.weight("places"), self.integers(0), width])
        return self.normalised(self.words(ids), place, "emb_ln")

    def words(self, ids: str) -> str:
        """Look the words up, as floats."""
        hidden, groups = self.arch["hidden"], self.weights["word_scales"].shape[1]
        values = self.node("Gather", [self.weight("word_values"), ids])
        values = self.node("Cast", [values], to=FLOAT)
        values = self.node("Reshape", [values, self.integers(0, 0, groups, hidden // groups)])
        scales = self.node("Gather", [self.weight("word_scales"), ids])
        values = self.node("Mul", [values, scales])
        return self.node("Reshape", [values, self.integers(0, 0, hidden)])

    def layer(self, layer: int, states: str, lengths: str) -> str:
        """Attention, then feed-forward, each added to what it read."""
        name = f"l{layer}."
        is_last = layer == self.arch["layers"] - 1
        reader = self.first_token(states) if is_last and not self.is_mean else states
        mixed = self.attention(name + "qkv", reader, states, lengths)
        states = self.normalised(self.linear(name + "ao", mixed), reader, name + "aln")
        inner = self.multiply(name + "f1", self.operand(name + "f1", states))
        active = self.fused("BiasGelu", [inner, self.weight(name + "f1.b")])
        return self.normalised(self.linear(name + "f2", active), states, name + "fln")

    def first_token(self, states: str) -> str:
        """Return the states of each text's first token."""
        return self.node("Slice", [states, self.integers(0), self.integers(1), self.integers(1)])

    def attention(self, name: str, reader: str, states: str, lengths: str) -> str:
        """Let each token of `reader` gather from those of `states`; query, key and value are stacked."""
        source = self.operand(name, states)
        asking = source if reader == states else self.operand(name, reader)
        query, key, value = (
            self.multiply(name, operand, part * self.arch["hidden"])
            for part, operand in enumerate((asking, source, source))
        )
        inputs = [query, key, value, self.weight(name + ".b"), lengths]
        return self.fused("MultiHeadAttention", inputs, num_heads=int(self.arch["heads"]))

    def linear(self, name: str, states: str) -> str:
        """Multiply by a matrix and add its bias."""
        product = self.multiply(name, self.operand(name, states))
        return self.node("Add", [product, self.weight(name + ".b")])

    def operand(self, name: str, states: str) -> _Operand:
        """Make states ready to be multiplied by a matrix."""
        if self.is_exact:
            return _Operand(states)
        balanced = self.node("Mul", [states, self.weight(name + ".balance")])
        largest = self.node("ReduceMax", [self.node("Abs", [balanced])], axes=[-1], keepdims=1)
        scale = self.node("Max", [largest, self.scalar("smallest", np.array(_SMALLEST, np.float32))])
        unit = self.node("Div", [balanced, scale])
        return _Operand(self.node("QuantizeLinear", [unit, *self.byte_scale()]), scale)

    def multiply(self, name: str, operand: _Operand, start: int = 0) -> str:
        """Multiply by a matrix, or by the part of it that begins at a row; the bias is the caller's."""
        weight = self.weight(f"{name}.w[{start}]")
        if operand.scale is None:
            return self.node("MatMul", [operand.states, weight])
        step, zero = self.byte_scale()
        inputs = [operand.states, weight, step, self.weight(f"{name}.w[{start}].scales"), zero]
        return self.node("Mul", [self.fused("MatMulIntegerToFloat", inputs), operand.scale])

    def normalised(self, change: str, states: str, name: str) -> str:
        """Add a change to states and normalise the sum."""
        inputs = [self.node("Add", [change, states]), self.weight(name + ".w"), self.weight(name + ".b")]
        return self.node("LayerNormalization", inputs, axis=-1, epsilon=float(self.arch["layer_norm_eps"]))

    def byte_scale(self) -> tuple[str, str]:
        """Return the step and the zero point of values between -1 and 1."""
        step = self.scalar("step", np.array(1 / _SIGNED_MAX, np.float32))
        return step, self.scalar("zero", np.array(_ZERO_POINT, np.uint8))

    def weight(self, name: str) -> str:
        """Use a weight and return its name."""
        return self.constant(name, self.weights[name])

    def scalar(self, name: str, value: NDArray[Any]) -> str:
        """Use a number and return its name."""
        return self.constant(name, value)

    def integers(self, *numbers: int) -> str:
        """Use a list of numbers and return its name."""
        return self.constant("_".join(map(str, ("integers", *numbers))), np.array(numbers, np.int64))


def main() -> int:
    """Write the graphs and the golden vectors, or compare them with those that are there."""
    return max(map(_build, (BundledEmbedder, MultilingualEmbedder)))


def _build(kind: type[BundledEmbedder]) -> int:
    contents, shipped = kind.shipped.read(), kind.shipped
    networks = {name: Network(contents, name) for name in get_args(pack.Precision)}
    made = {shipped.graph_path(name): _graph(network, name, shipped) for name, network in networks.items()}
    if "--check" in sys.argv:
        return int(any(path.read_bytes() != graph for path, graph in made.items()))
    for path, graph in made.items():
        path.write_bytes(graph)
    shipped.golden.write_bytes(_golden(networks["exact"], kind))
    return 0


def _graph(network: Network, precision: pack.Precision, shipped: Shipped) -> bytes:
    offsets, end = {}, 0
    for name, array in network.weights.items():
        offsets[name] = -(-end // pack.PAGE) * pack.PAGE
        end = offsets[name] + array.nbytes
    if end != shipped.sizes[precision]:
        raise SystemExit(f"the file of weights of {shipped.model}, {precision}, has {end:_} bytes: say so")
    return network.to_bytes(offsets, shipped.weights_file(precision))


class _Built(BundledEmbedder):
    """A model before it is shipped."""

    def __init__(self, network: Network, kind: type[BundledEmbedder]) -> None:
        name, graph = kind.shipped.model, network.to_bytes()
        tokenizer = kind({}, NOWHERE).new_tokenizer()
        Encoder.__init__(
            self, kind.card, tokenizer, lambda: Session(name, graph, 0, does_not_run(name), is_fused=True)
        )


def _golden(network: Network, kind: type[BundledEmbedder]) -> bytes:
    """Return the vectors of the sentences that `kb doctor` compares, by a network with its weights inside."""
    return b"".join(_Built(network, kind)._embed(SENTENCES))


if __name__ == "__main__":
    raise SystemExit(main())
