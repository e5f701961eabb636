"""The reader in torch: a BERT of twelve layers with heads for spans and for whether a passage answers.

It starts from an int8 ONNX file of the reader: the weights in it are turned back into numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnx
import torch
import torch.nn.functional as functional
from onnx import numpy_helper
from torch import Tensor, nn

WIDTH, HEADS, INNER, LAYERS, PIECES, POSITIONS = 384, 12, 1536, 12, 30522, 512
OUTSIDE = -1e4  # a logit of what cannot be an answer
RELEVANCE = 0.3  # of the relevance that the starting model knows, in the logit of answering


class Layer(nn.Module):
    """One layer of a BERT."""

    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.v, self.ao = (nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.f1, self.f2 = nn.Linear(WIDTH, INNER), nn.Linear(INNER, WIDTH)
        self.aln, self.fln = nn.LayerNorm(WIDTH, 1e-12), nn.LayerNorm(WIDTH, 1e-12)

    def forward(self, states: Tensor, bias: Tensor) -> Tensor:
        """Return the states after attention and the inner network."""
        rows, length, _ = states.shape

        def split(made: Tensor) -> Tensor:
            return made.view(rows, length, HEADS, WIDTH // HEADS).transpose(1, 2)

        parts = split(self.q(states)), split(self.k(states)), split(self.v(states))
        mixed = functional.scaled_dot_product_attention(*parts, attn_mask=bias).transpose(1, 2)
        states = self.aln(states + self.ao(mixed.reshape(rows, length, WIDTH)))
        made: Tensor = self.fln(states + self.f2(functional.gelu(self.f1(states))))
        return made


class Reader(nn.Module):
    """Ids, mask and types in; logits of starts, of ends and of answering out."""

    def __init__(self) -> None:
        super().__init__()
        self.word, self.pos = nn.Embedding(PIECES, WIDTH), nn.Embedding(POSITIONS, WIDTH)
        self.seg, self.ln = nn.Embedding(2, WIDTH), nn.LayerNorm(WIDTH, 1e-12)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.pool, self.rel = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, 1)
        self.span, self.mix, self.ans = nn.Linear(WIDTH, 2), nn.Linear(2 * WIDTH, WIDTH), nn.Linear(WIDTH, 1)

    def forward(self, ids: Tensor, mask: Tensor, types: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the logits; position 0 is that of "no word answers"."""
        states = self.ln(self.word(ids) + self.pos.weight[: ids.shape[1]][None] + self.seg(types))
        bias = (1.0 - mask[:, None, None, :].to(states.dtype)) * OUTSIDE
        for layer in self.layers:
            states = layer(states, bias)
        allowed = (types == 1) & (mask == 1)
        allowed[:, 0] = True
        spans = self.span(states).masked_fill(~allowed[:, :, None], OUTSIDE)
        shares = spans[:, 1:].softmax(1).mean(-1, keepdim=True)
        best = (states[:, 1:] * shares).sum(1)  # what the words that may answer say together
        relevance = self.rel(torch.tanh(self.pool(states[:, 0]))).squeeze(-1)
        answers = self.ans(torch.tanh(self.mix(torch.cat([states[:, 0], best], -1)))).squeeze(-1)
        return spans[..., 0], spans[..., 1], RELEVANCE * relevance + answers

    def freeze(self, layers: int) -> None:
        """Keep the table of words, positions and the first layers as they are."""
        fixed = ("word", "pos.", "seg", "ln.", *(f"layers.{at}." for at in range(layers)))
        for name, parameter in self.named_parameters():
            parameter.requires_grad = not name.startswith(fixed)


def started_from(path: Path) -> Reader:
    """Return a reader with the weights of an int8 ONNX file."""
    reader = Reader()
    known = {name: torch.from_numpy(value.copy()) for name, value in weights(path).items()}
    shapes = {name: old.shape for name, old in reader.state_dict().items()}
    reader.load_state_dict({name: known[name].reshape(shape) for name, shape in shapes.items()})
    return reader


def weights(path: Path) -> dict[str, np.ndarray]:
    """Return the weights of an int8 ONNX file as torch names them."""
    graph = onnx.load(str(path)).graph
    held = {one.name: numpy_helper.to_array(one) for one in graph.initializer}
    plain = {name: value for name, value in held.items() if value.dtype == np.float32}
    found = {name[2:]: value for name, value in plain.items() if name.startswith("m.")}
    for table in ("word", "seg"):
        found[f"{table}.weight"] = _plain(held, f"m.{table}.weight")
    for node in graph.node:
        if node.op_type == "MatMulInteger":  # /m/layers.0/q/MatMul_quant multiplies by the transposed weight
            name = node.name.removeprefix("/m/").rpartition("/")[0].replace("/", ".")
            found[f"{name}.weight"] = _plain(held, node.input[1].removesuffix("_quantized")).T
    return found


def _plain(held: Mapping[str, np.ndarray], name: str) -> np.ndarray:
    scale, zero = held[f"{name}_scale"], held[f"{name}_zero_point"]
    plain: np.ndarray = (held[f"{name}_quantized"].astype(np.float32) - zero.astype(np.float32)) * scale
    return plain
