"""Jupyter notebooks: what is read of them, and how it is cited."""

from __future__ import annotations

import base64
import json
import random
from typing import Any

import pytest

from concord.extract.text import NotebookExtractor
from concord.text.chunk import chunk
from concord.types import Extracted

PICTURE = base64.b64encode(random.Random(7).randbytes(45_000)).decode()


def words(text: str) -> list[int]:
    return [
        at for at, letter in enumerate(text) if not letter.isspace() and (at == 0 or text[at - 1].isspace())
    ]


def markdown_cell(*source: str) -> dict[str, Any]:
    return {"cell_type": "markdown", "metadata": {}, "source": list(source)}


def code_cell(*source: str, outputs: tuple[dict[str, Any], ...] = ()) -> dict[str, Any]:
    return {
        "cell_type": "code",
        "execution_count": 1,
        "metadata": {},
        "outputs": list(outputs),
        "source": list(source),
    }


def printed(*text: str) -> dict[str, Any]:
    return {"name": "stdout", "output_type": "stream", "text": list(text)}


def shown(**data: str) -> dict[str, Any]:
    kinds = {kind.replace("_", "/"): value for kind, value in data.items()}
    return {"output_type": "display_data", "data": kinds, "metadata": {}}


def notebook(*cells: dict[str, Any], **metadata: Any) -> str:
    return json.dumps({"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}, indent=1)


def read(file: str) -> Extracted:
    return NotebookExtractor().extract(file.encode(), "a.ipynb")


def test_cells_become_markdown_and_code_with_what_they_printed():
    file = notebook(
        markdown_cell("# Tariffs\n", "\n", "How the *tariff* grows."),
        code_cell("def tariff(x):\n", "    return 2 * x", outputs=(printed("tariff is ", "14\n"),)),
        code_cell("1 / 0", outputs=({"output_type": "error", "ename": "ZeroDivisionError", "evalue": "no"},)),
        kernelspec={"language": "python"},
    )
    extracted = read(file)
    assert (extracted.type, extracted.title) == ("notebook", "Tariffs")
    assert extracted.text == (
        "# Tariffs\n\nHow the *tariff* grows.\n\n"
        "```python\ndef tariff(x):\n    return 2 * x\n```\n\n```\ntariff is 14\n```\n\n"
        "```python\n1 / 0\n```\n\n```\nZeroDivisionError\nno\n```"
    )


def test_pictures_are_left_out_and_so_is_what_stands_in_for_them():
    plot = shown(image_png=PICTURE, text_plain="<Figure size 640x480 with 1 Axes>")
    file = notebook(
        markdown_cell(f"![plot](data:image/png;base64,{PICTURE})"), code_cell("plot()", outputs=(plot,))
    )
    assert read(file).text == "![plot](data:image/png;base64,…)\n\n```\nplot()\n```"


def test_of_a_progress_bar_its_last_state_is_kept():
    bar = printed("\r 10%", "\r 90%\r", "100%\n", "done\r\n")
    assert "```\n100%\ndone\n```" in read(notebook(code_cell("run()", outputs=(bar,)))).text


def test_a_notebook_is_cited_by_the_lines_of_its_text():
    compact = json.dumps(json.loads(notebook(markdown_cell("one\n", "two"), code_cell("x = 1\ny = 2"))))
    assert read(compact).text == "one\ntwo\n\n```\nx = 1\ny = 2\n```"
    (piece,) = chunk(read(compact), words)
    assert (piece.start_line, piece.end_line) == (1, 7)


def test_code_that_holds_a_fence_stays_in_its_own():
    assert read(notebook(code_cell('"""\n```\n"""'))).text == '````\n"""\n```\n"""\n````'


@pytest.mark.parametrize(
    "text",
    ["{}", "", "[1, 2]", '{"cells": 3}', "<<<<<<< HEAD\n{}", "[" * 100_000, '{"cells": [' + "1" * 5000 + "]"],
)
def test_what_is_no_notebook_is_data(text: str):
    assert (read(text).type, read(text).text) == ("data", text)


@pytest.mark.parametrize(
    "cell", [None, 3, [], {}, {"source": 3}, {"cell_type": "code", "outputs": [None, {"data": 1}]}]
)
def test_cells_that_make_no_sense_are_left_out(cell: Any):
    assert read(notebook(cell, markdown_cell("words"))).text == "words"
