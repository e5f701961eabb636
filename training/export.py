"""Writes a trained reader as the product reads it: ONNX, int8 with a scale for each channel.

python -m training.export WEIGHTS OUT.onnx
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import torch
from onnxruntime.quantization import QuantType, quantize_dynamic

from training.model import Reader

INPUTS, OUTPUTS = ("input_ids", "attention_mask", "token_type_ids"), ("start", "end", "answerable")
OPSET = 17


class Named(torch.nn.Module):
    """The reader one level down, as the names of its weights in the file that ships begin with `m.`."""

    def __init__(self, reader: Reader) -> None:
        super().__init__()
        self.m = reader

    def forward(self, *given: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Return what the reader does."""
        made: tuple[torch.Tensor, ...] = self.m(*given)
        return made


def export(reader: Reader, out: Path) -> None:
    """Write a reader; a scale for each channel keeps what one for a whole matrix loses (.04 of AUROC)."""
    given = tuple(torch.ones((2, 16), dtype=torch.long) for _ in INPUTS)
    axes = {name: {0: "n", 1: "t"} for name in (*INPUTS, "start", "end")} | {"answerable": {0: "n"}}
    with tempfile.TemporaryDirectory() as place:
        plain = Path(place, "plain.onnx")
        torch.onnx.export(
            Named(reader.eval()),
            given,
            str(plain),
            input_names=list(INPUTS),
            output_names=list(OUTPUTS),
            dynamic_axes=axes,
            opset_version=OPSET,
            dynamo=False,
        )
        quantize_dynamic(plain, out, per_channel=True, weight_type=QuantType.QInt8)


def main() -> None:
    """Export weights that `training.train` has written."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("weights", type=Path)
    parser.add_argument("out", type=Path)
    given = parser.parse_args()
    reader = Reader()
    reader.load_state_dict(torch.load(given.weights))
    export(reader, given.out)
    print(f"wrote {given.out}, {given.out.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
