"""`kb eval`: what it prints, and the report that it writes."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from concord import KnowledgeBase, __version__
from concord.core.arguments import Nothing
from concord.operations import OPERATIONS
from concord.quality.evaluate import MODES, SAMPLE
from concord.quality.metrics import MEASURES
from concord.types import silent
from support.judged import recipes, things

pytestmark = pytest.mark.slow


def test_kb_eval_prints_a_table_for_people(kb, tmp_path: Path):
    things(tmp_path / "set")
    recipes(tmp_path / "recipes")
    status, out, _ = kb("eval", "set", "--limit", "20", "--unanswerable", "recipes")
    assert status == 0
    assert "30 documents" in out
    assert all(re.search(rf"^{mode} ", out, re.MULTILINE) for mode in MODES)
    assert all(measure in out for measure in {*MEASURES, "MRR"} - {"RR"})
    assert re.search(r"^latency of auto, over all of them: p50 \d+\.\d ms, p95 \d", out, re.MULTILINE)
    assert f"by mode; times are of at most {SAMPLE} queries, asked once more in each\nmode" in out
    assert re.search(r"^mode .* p50 ms +p95 ms$", out, re.MULTILINE)
    assert re.search(r"^kind +n +mode +nDCG@10 +R@5 +MRR$", out, re.MULTILINE)
    assert all(re.search(rf"^{mode} .* \d+\.\d +\d+\.\d$", out, re.MULTILINE) for mode in MODES)
    assert re.search(r"^recipes +3 ", out, re.MULTILINE)
    assert "not indexed" not in out


@pytest.mark.promise("B.eval.report")
def test_kb_eval_writes_json_runs_and_a_page_that_needs_nothing_else(kb, tmp_path: Path):
    things(tmp_path / "set")
    status, out, _ = kb("eval", "set", "--limit", "9", "--run", "runs", "--report", "out/page.html", "--json")
    assert status == 0
    told = json.loads(out)
    assert told["queries"] == 9
    assert told["model"].startswith("hashing/")
    assert set(told["mode_latency_ms"]) == set(MODES)
    assert told["by_kind"].keys() == told["kinds"].keys()
    assert told["calibration"]["score"]["n"] >= 9
    assert {"ece", "brier", "bins"} <= told["calibration"]["confidence_score"].keys()
    assert (tmp_path / "runs" / "auto.run").read_text().split()[1] == "Q0"
    page = (tmp_path / "out" / "page.html").read_text()
    assert page.count("<svg") == 2
    assert not re.search(r"(?:src|href)=", page)
    assert page.count("<th>p95 ms</th>") == 1
    assert told["model"] in page
    assert f"Concord {__version__}, 20" in page


def test_the_last_report_is_kept_for_whoever_shows_it(kb, tmp_path: Path):
    things(tmp_path / "set")
    kb("eval", "set", "--limit", "5")
    kb("eval", "set", "--limit", "9")
    with KnowledgeBase() as knowledge:
        kept = OPERATIONS["eval_report"].run(knowledge, Nothing(), silent)
    assert kept["note"] is None
    assert kept["report"]["queries"] == 9
    assert set(kept["report"]["measures"]) == set(MODES)
    assert {"score", "hit_labels"} <= kept["report"]["calibration"].keys()
