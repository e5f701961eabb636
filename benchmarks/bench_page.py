"""The page while somebody types, in chromium: from a key stroke until what it finds is shown."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from statistics import median, quantiles

from benchmarks.measure import KB, Row, absent, quick_environment, sized
from benchmarks.synthetic import filled_store, questions

CHUNKS = sized(10_000, 200)
QUESTIONS = sized(12, 1)
MOST_MS = 120
WARMING_MS = sized(8_000, 500)  # the model is loaded
REST_MS = 400  # after each question, until the reader has read and the address has followed
FLAGS = ("--no-sandbox", "--disable-gpu")
TYPE = """async (text) => {
    const box = document.getElementById("q"), took = [];
    for (let end = 1; end <= text.length; end++) {
        const shown = new Promise((resolve) => {
            const seen = new MutationObserver(() => { seen.disconnect(); requestAnimationFrame(resolve); });
            seen.observe(document.getElementById("main"), { childList: true, subtree: true });
        });
        const pressed = performance.now();
        box.value = text.slice(0, end);
        box.dispatchEvent(new Event("input", { bubbles: true }));
        await shown;
        took.push(performance.now() - pressed);
    }
    return took;
}"""  # one key after the other, each once the one before has its results


def run() -> Iterator[Row]:
    """Type questions into the page."""
    chromium = shutil.which("chromium")
    what = f"key stroke to results, {CHUNKS:,} chunks, p50 / p95"
    if chromium is None:
        yield absent(what, "there is no chromium")
        return
    command = [KB, "serve", "--port", "0", "--json"]
    environment = quick_environment(KB_STORE_URL=filled_store(CHUNKS))
    with (
        tempfile.TemporaryDirectory() as folder,
        subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True) as server,
    ):
        try:
            assert server.stdout is not None
            took = _typed(chromium, json.loads(server.stdout.readline())["url"].removesuffix("/mcp"))
        finally:
            server.terminate()
    p50, p95 = median(took), quantiles(took, n=20)[-1]
    yield Row(what, f"{p50:.0f} / {p95:.0f} ms", target=f"p50 ≤ {MOST_MS} ms", is_met=p50 <= MOST_MS)


def _typed(chromium: str, url: str) -> list[float]:
    from playwright.sync_api import sync_playwright

    took: list[float] = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        page = browser.new_page()
        page.goto(f"{url}/?q={questions(1)[0]}")
        page.wait_for_timeout(WARMING_MS)
        for question in questions(QUESTIONS):
            took += page.evaluate(TYPE, question)
            page.wait_for_timeout(REST_MS)
        browser.close()
    return took
