"""The page, in a real browser: chromium, driven by Playwright, against a server in this process."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from concord import KnowledgeBase
from concord.core.config import load_settings
from concord.web.keys import Grant, Keys, digest_of
from support.judged import things
from support.mcp_session import BOUND_S, KB, environment
from support.pdf_samples import make_pdf
from support.web_server import ask, serving

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "src" / "concord" / "data" / "page"
CHROMIUM = shutil.which("chromium")
FLAGS = [
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update"),
]
TINTED = """(image) => {
    const canvas = new OffscreenCanvas(image.naturalWidth, image.naturalHeight).getContext("2d");
    canvas.drawImage(image, 0, 0);
    const { data } = canvas.getImageData(0, 0, image.naturalWidth, image.naturalHeight);
    return data.filter((value, at) => at % 4 === 0 && value + 20 < data[at + 1]).length;
}"""  # pixels that are more green than red
RUN_AXE = """axe.run().then((found) => found.violations.filter((one) => /serious|critical/.test(one.impact))
    .map((one) => [one.id, one.nodes.map((node) => node.target.join())]))"""
AXE = ROOT / "node_modules" / "axe-core" / "axe.min.js"
VIEWS = (
    "/",
    "/?q=reactor",
    "/?q=reactor&at=lib/guide.md:5-7",
    "/?at=lib/code.py",
    "/?at=lib/report.pdf",
    "/?view=sources",
    "/?view=sources&source=lib",
    "/?view=health",
)
FIRST = [f"The first page has line {n}, which is about gardens and weather and bread." for n in range(40)]
SECOND = [
    f"The second page has line {n}, which is about neutrons and how they are counted." for n in range(40)
]
HOSTILE = "<script>window.pwned=1</script><img src=x onerror=window.pwned=1>"

if CHROMIUM:
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    expect = sync_api.expect
    expect.set_options(timeout=15_000)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    if not CHROMIUM:
        pytest.skip("there is no chromium here: apt-get install chromium")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a home beside a folder of each kind of document."""
    place = tmp_path_factory.mktemp("page")
    folder = place / "lib"
    folder.mkdir()
    filler = "\n\n".join(f"Paragraph {n} is about gardens, weather and bread." for n in range(60))
    (folder / "guide.md").write_text(
        "# Plant guide\n\nHow a plant is run.\n\n## Cooling\n\nThe reactor is cooled by water. "
        f"See [code](code.py) and [site](https://example.org).\n\n## Other things\n\n{filler}\n\n"
        "## Shutdown\n\nTo stop the turbine, pull the red lever twice.\n",
        encoding="utf-8",
    )
    (folder / "code.py").write_text(
        'def start_reactor(power):\n    """Start."""\n    return power * 2\n', encoding="utf-8"
    )
    (folder / "report.pdf").write_bytes(make_pdf([FIRST, SECOND]))
    (folder / "hostile.md").write_text(
        f"# Hostile {HOSTILE} \u202eesrever\u202c\n\nhostileword {HOSTILE} [x](javascript:window.pwned=1) ![y](https://evil.example/z.png)\n\n"
        f"{'longword' * 1250} \u202eno end of this override\n",
        encoding="utf-8",
    )
    with KnowledgeBase(_settings(place / "home")) as kb:
        kb.add(folder)
    return place / "home"


def _settings(home: Path) -> Any:
    return load_settings({"embed.provider": "hashing"}, {"KB_HOME": str(home)})


@pytest.fixture(scope="module")
def url(library: Path) -> Iterator[str]:
    with serving(library) as url:
        yield url


@contextmanager
def opened(browser: Any, url: str, **context: Any) -> Iterator[Any]:
    """Open a page that must ask nobody but its server, and meet no fault of ours."""
    faults: list[str] = []
    asked: list[str] = []
    place = browser.new_context(**{"viewport": {"width": 1280, "height": 800}, **context})
    page = place.new_page()
    page.on("pageerror", lambda fault: faults.append(str(fault)))
    page.on("console", lambda said: faults.append(said.text) if "Content Security" in said.text else None)
    page.on("request", lambda request: asked.append(request.url))
    page.goto(url)
    yield page
    place.close()
    origin = re.match(r"https?://[^/]+", url)
    assert faults == []
    assert [
        question
        for question in asked
        if not question.startswith((origin[0] if origin else url, "blob:", "data:"))
    ] == []


@pytest.fixture
def page(browser: Any, url: str) -> Iterator[Any]:
    with opened(browser, url) as page:
        yield page


def hits(page: Any) -> Any:
    return page.locator(".hit")


@pytest.mark.promise("I.page.typing")
def test_what_is_typed_is_found_at_once_marked_and_judged(page: Any, url: str) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.locator("#q").press_sequentially("reactor cooled")
    expect(hits(page).first).to_contain_text("The reactor is cooled by water")
    expect(hits(page).first.locator("mark").filter(has_text="reactor").first).to_be_visible()
    expect(page).to_have_url(f"{url}/?q=reactor+cooled")
    page.wait_for_load_state("networkidle")
    whole = [request for request in asked if "query=reactor+cooled&" in request]
    assert ["reader=false" in request for request in whole] == [
        True,
        False,
    ]  # while typing nobody waits for it
    answer = ask(url, "GET /api/v1/search?query=reactor+cooled").json
    number = f"{round(100 * answer['results'][0]['score'])} %"
    expect(hits(page).first.locator(".odds .number")).to_have_text(number)
    expect(hits(page).first.locator(".facts")).to_contain_text("words + meaning")
    expect(hits(page).first.locator(".facts")).to_contain_text("up to date")
    expect(hits(page).first.locator("a[href^='vscode://file/']")).to_be_visible()
    expect(page.locator(".verdict")).to_contain_text("Answered")
    page.get_by_label("Type").select_option("office")
    expect(page.locator(".verdict")).to_contain_text("Not in here")


@pytest.mark.promise("I.page.typing")
def test_what_is_typed_before_the_page_has_begun_is_found_to_its_last_letter(page: Any) -> None:
    held: list[Any] = []
    page.route("**/api/v1/session", lambda route: held.append(route))
    page.reload()
    page.locator("#q").press_sequentially("reactor cooled")
    held[0].continue_()  # now its own first look at the address comes after the keys
    expect(hits(page).first).to_contain_text("The reactor is cooled by water")


@pytest.mark.promise("I.page.document")
def test_a_result_opens_its_document_at_the_passage_and_back_leads_to_the_results(page: Any) -> None:
    page.locator("#q").fill("stop the turbine")
    hits(page).first.locator("h2 a").click()
    passage = page.locator(".passage", has_text="red lever")
    expect(passage).to_be_in_viewport()
    expect(passage.locator("mark").first).to_be_visible()
    expect(page.locator(".outline [aria-current]")).to_have_text("Shutdown")
    page.locator(".outline a", has_text="Cooling").click()
    expect(page.locator(".passage", has_text="cooled by water")).to_be_in_viewport()
    expect(page.locator(".about")).to_contain_text("Links")
    page.locator(".prose a", has_text="code").click()
    expect(page.locator(".lines .k").first).to_have_text("def")
    page.go_back()
    page.go_back()
    page.go_back()
    expect(hits(page).first).to_contain_text("red lever")


@pytest.mark.promise("I.page.document")
def test_a_page_of_a_pdf_is_shown_as_it_is_printed_and_as_text(page: Any, url: str) -> None:
    page.goto(f"{url}/?at=lib/report.pdf:p2")
    image = page.locator("img.sheet")
    expect(image).to_have_attribute("alt", "Page 2 of 2")
    expect(image).to_have_js_property("complete", True)
    assert image.evaluate(TINTED) > 500
    page.get_by_role("button", name="Previous page").click()
    expect(image).to_have_attribute("alt", "Page 1 of 2")
    page.get_by_role("link", name="Text").click()
    expect(page.locator(".lines .passage", has_text="neutrons").first).to_be_visible()


@pytest.mark.promise("I.page.filters")
def test_filters_limit_the_search_and_are_in_the_address(page: Any, url: str) -> None:
    page.goto(f"{url}/?q=reactor")
    expect(hits(page)).not_to_have_count(1)
    page.get_by_label("Type").select_option("code")
    expect(hits(page)).to_have_count(1)
    expect(page).to_have_url(f"{url}/?q=reactor&type=code")
    page.reload()
    expect(page.get_by_label("Type")).to_have_value("code")
    expect(hits(page)).to_have_count(1)
    page.get_by_role("button", name="Clear").click()
    expect(hits(page)).not_to_have_count(1)
    page.get_by_label("Path, as").fill("lib/*.md")
    page.get_by_label("Path, as").press("Enter")
    expect(page).to_have_url(re.compile("path=lib"))
    page.get_by_label("Date").select_option("7d")
    expect(page).to_have_url(re.compile("since=7d"))
    expect(hits(page).first).to_contain_text("guide.md")


@pytest.mark.promise("I.page.sources")
def test_a_folder_that_is_added_shows_its_progress_and_what_could_not_be_read(
    browser: Any, tmp_path: Path
) -> None:
    folder = tmp_path / "many"
    folder.mkdir()
    for n in range(400):
        (folder / f"{n}.md").write_text(f"# Note {n}\n\nAbout {n} lanterns.\n", encoding="utf-8")
    (folder / "broken.pdf").write_bytes(b"%PDF-1.4 cut off")
    with serving(tmp_path / "home") as url, opened(browser, url) as page:
        expect(page.locator("main")).to_contain_text("Nothing is indexed yet")
        page.get_by_label("Folder or file").fill(str(folder))
        page.get_by_role("button", name="Add").click()
        job = page.locator(".job")
        expect(job.locator(".bar")).to_be_visible()
        expect(job).to_contain_text(re.compile(r"\d+ of \d+"))
        expect(job).to_contain_text("400 added")
        expect(job.locator("summary")).to_contain_text("Could not be read: 1")
        expect(job.locator(".files")).to_contain_text("broken.pdf")
        expect(job.locator(".files")).to_contain_text("not a readable PDF")
        card = page.locator("[data-source=many]")
        expect(card).to_contain_text("400 documents")
        (folder / "new.md").write_text("# New\n\nA new lantern.\n", encoding="utf-8")
        card.get_by_role("button", name="Sync").click()
        expect(page.locator(".job").first).to_contain_text("1 added")
        page.once("dialog", lambda asked: asked.accept())
        page.locator("[data-source=many]").get_by_role("button", name="Remove").click()
        expect(page.locator("[data-source=many]")).to_have_count(0)


@pytest.mark.promise("I.page.hits")
def test_two_hundred_matches_come_ten_at_first_and_fifty_on_demand(browser: Any, tmp_path: Path) -> None:
    folder = tmp_path / "many"
    folder.mkdir()
    for n in range(200):
        (folder / f"{n}.md").write_text(f"# Lantern {n}\n\nA lantern of kind {n}.\n", encoding="utf-8")
    with KnowledgeBase(_settings(tmp_path / "home")) as kb:
        kb.add(folder)
    with serving(tmp_path / "home") as url, opened(browser, f"{url}/?q=lantern") as page:
        expect(hits(page)).to_have_count(10)
        page.get_by_role("link", name="Show up to 50").click()
        expect(hits(page)).to_have_count(50)
        expect(page.locator(".column")).to_contain_text("A filter or another word narrows it")


@pytest.mark.promise("I.page.long")
def test_two_megabytes_open_at_a_passage_near_the_end_and_grow_on_demand(
    browser: Any, tmp_path: Path
) -> None:
    folder = tmp_path / "long"
    folder.mkdir()
    part = "Rain fell on the fields and the rivers rose a little that day.\n\n" * 300
    sections = [f"## Part {n}\n\n{part}" for n in range(105)]
    sections[90] = f"## Ninetieth\n\nThe heron ate a quixotic fish.\n\n{part}"
    text = "# A long book\n\n" + "".join(sections)
    (folder / "book.md").write_text(text, encoding="utf-8")
    assert len(text) > 2_000_000
    with KnowledgeBase(_settings(tmp_path / "home")) as kb:
        kb.add(folder)
    with serving(tmp_path / "home") as url, opened(browser, f"{url}/?q=quixotic+fish") as page:
        hits(page).first.locator("h2 a").click()
        expect(page.locator(".passage", has_text="quixotic")).to_be_in_viewport()
        before = page.locator(".prose > *").count()
        assert before < 2_000
        page.get_by_role("button", name="Show more").click()
        expect(page.locator(".prose")).to_have_count(2)
        assert page.locator(".prose > *").count() > before
        page.get_by_text("Read from the beginning").click()
        expect(page.locator(".prose h2").first).to_have_text("Part 0")


@pytest.mark.promise("I.page.safe")
def test_hostile_titles_and_texts_are_only_text(page: Any, url: str) -> None:
    for address in (
        "/?q=hostileword",
        "/?q=hostileword&at=lib/hostile.md",
        "/?at=lib/hostile.md&as=raw",
    ):
        page.goto(url + address)
        expect(page.locator("main")).to_contain_text("window.pwned=1")
        assert page.evaluate("window.pwned") is None
        assert (
            page.locator(
                "main :is(script, img, iframe, [onerror], [style*=url], a[href^='javascript'])"
            ).count()
            == 0
        )
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.locator("#q").fill(f"{HOSTILE} hostileword")
    expect(hits(page).first).to_be_visible()
    assert page.evaluate("window.pwned") is None


@pytest.mark.promise("I.page.why")
def test_why_shows_the_arithmetic_and_why_not_for_another_passage(page: Any, url: str) -> None:
    page.goto(f"{url}/?q=reactor+cooled")
    hits(page).first.get_by_role("button", name="Why").click()
    drawer = page.get_by_role("dialog")
    expect(drawer).to_contain_text("It is result 1 of")
    expect(drawer.locator(".bars .fill").first).to_be_visible()
    drawer.get_by_label("Why not another passage").fill("lib/report.pdf:p1")
    drawer.get_by_role("button", name="Explain").click()
    expect(drawer.locator(".citation")).to_contain_text("lib/report.pdf:p1")
    expect(drawer.locator(".lead")).not_to_contain_text("result 1 of")
    page.keyboard.press("Escape")
    expect(drawer).to_have_count(0)


@pytest.mark.promise("I.page.feedback")
def test_a_good_result_is_counted_and_health_tells(page: Any, url: str) -> None:
    page.goto(f"{url}/?q=reactor+cooled")
    button = hits(page).first.get_by_role("button", name="A good result")
    with page.expect_response("**/api/v1/feedback"):
        button.click()
    expect(button).to_have_attribute("aria-pressed", "true")
    assert ask(url, "GET /api/v1/stats").json["feedback"]["good"] == 1
    page.get_by_role("link", name="Health").click()
    expect(page.locator("main")).to_contain_text("Looked at open, storage")
    expect(page.locator(".bars li", has_text="good")).to_contain_text("1")


@pytest.mark.promise("I.page.health")
def test_health_shows_how_good_search_was_when_it_was_measured_last(browser: Any, tmp_path: Path) -> None:
    with serving(tmp_path / "home") as url, opened(browser, f"{url}/?view=health") as page:
        expect(page.locator("main")).to_contain_text("has not been measured yet")
    settings = load_settings({"embed.provider": "hashing"}, {"KB_HOME": str(tmp_path / "home")})
    with KnowledgeBase(settings) as kb:
        kb.measuring.evaluate(things(tmp_path / "judged", 20))
    with serving(tmp_path / "home") as url, opened(browser, f"{url}/?view=health") as page:
        expect(page.locator("svg.plot circle").first).to_be_visible()
        expect(page.locator("main")).to_contain_text("Of results with such a label")
        expect(page.locator(".bars li").filter(has_text="auto")).to_contain_text("ms")


@pytest.mark.promise("I.page.look")
@pytest.mark.parametrize("width", [320, 768])
def test_nothing_has_to_be_scrolled_sideways_on_a_small_screen(browser: Any, url: str, width: int) -> None:
    with opened(browser, url, viewport={"width": width, "height": 800}) as page:
        for view in VIEWS:
            page.goto(url + view)
            page.wait_for_load_state("networkidle") if "sources" not in view else page.wait_for_selector(
                ".column"
            )
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), view
            assert page.evaluate("document.querySelector('nav').offsetHeight < 50"), "a word is broken"


@pytest.mark.promise("I.page.keyboard")
def test_the_keyboard_is_enough(page: Any, url: str) -> None:
    page.goto(f"{url}/?view=sources")
    expect(page.get_by_role("heading", name="Sources")).to_be_visible()
    page.locator("body").press("/")
    page.keyboard.type("reactor")
    expect(hits(page).nth(1)).to_be_visible()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    expect(hits(page).nth(1).locator("h2 a")).to_be_focused()
    page.keyboard.press("ArrowUp")
    expect(hits(page).nth(0).locator("h2 a")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("article.paper")).to_be_visible()
    page.keyboard.press("Escape")
    expect(hits(page).first).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#q")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page).to_have_url(f"{url}/")


@pytest.mark.promise("I.page.accessible")
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(browser: Any, url: str, scheme: str) -> None:
    if not AXE.exists():
        pytest.skip("axe-core is not here: npm install --no-save axe-core")
    with opened(browser, url, color_scheme=scheme) as page:
        for view in (*VIEWS, "why"):
            if view == "why":
                page.goto(f"{url}/?q=reactor")
                hits(page).first.get_by_role("button", name="Why").click()
                expect(page.locator(".drawer .bars").first).to_be_visible()
            else:
                page.goto(url + view)
                page.wait_for_selector("main h1")
                page.wait_for_timeout(300)
            page.evaluate(AXE.read_text(encoding="utf-8"))
            assert page.evaluate(RUN_AXE) == [], view


@pytest.mark.promise("I.page.away")
def test_the_page_goes_on_when_its_server_comes_back(browser: Any, tmp_path: Path, library: Path) -> None:
    def start(port: str) -> tuple[Any, str]:
        command = [*KB, "serve", "--port", port, "--json"]
        process = subprocess.Popen(
            command, env=environment(library), cwd=tmp_path, stdout=subprocess.PIPE, text=True
        )
        assert process.stdout
        served = re.search(r"http://[^/\"]+", process.stdout.readline())
        assert served
        return process, served[0]

    process, url = start("0")
    try:
        with opened(browser, f"{url}/?q=reactor") as page:
            expect(hits(page).first).to_be_visible()
            process.kill()
            process.communicate(timeout=BOUND_S)
            page.locator("#q").fill("turbine")
            expect(page.locator("#away")).to_contain_text("does not answer")
            process, _ = start(url.rpartition(":")[2])
            expect(page.locator("#away")).to_be_empty()
            expect(hits(page).first).to_contain_text("turbine")
    finally:
        process.kill()
        process.communicate(timeout=BOUND_S)


@pytest.mark.promise("I.page.tabs")
def test_two_tabs_show_the_same_work(browser: Any, tmp_path: Path) -> None:
    folder = tmp_path / "few"
    folder.mkdir()
    (folder / "a.md").write_text("# A\n\nwords\n", encoding="utf-8")
    with serving(tmp_path / "home") as url, opened(browser, f"{url}/?view=sources") as first:
        second = first.context.new_page()
        second.goto(f"{url}/?view=sources")
        expect(second.locator("main")).to_contain_text("There are none yet")
        first.get_by_label("Folder or file").fill(str(folder))
        first.get_by_role("button", name="Add").click()
        for tab in (first, second):
            expect(tab.locator("[data-source=few]")).to_contain_text("1 document")


@pytest.mark.promise("I.page.session")
def test_a_code_opens_the_page_once_and_leaves_the_address(browser: Any, library: Path) -> None:
    secret = "a secret of sixteen or more"
    keys = Keys((Grant("default", digest_of(secret)),))
    with serving(library, keys=keys) as url:
        address = f"{url}/#code={keys.new_code()}"
        with opened(browser, address) as page:
            expect(page.locator("main")).to_contain_text("Search 4 documents")
            assert page.url == f"{url}/"
        with opened(browser, address) as page:
            expect(page.get_by_role("heading", name="A token is needed")).to_be_visible()
            page.get_by_label("Token").fill(secret)
            page.get_by_role("button", name="Enter").click()
            expect(page.locator("main")).to_contain_text("Search 4 documents")


@pytest.mark.promise("I.page.small")
def test_the_page_is_small_has_nothing_inline_and_names_no_other_host() -> None:
    files = [path for path in PAGE.iterdir() if path.is_file()]
    texts = {path.name: path.read_text(encoding="utf-8") for path in files}
    assert sum(len(text.encode()) for text in texts.values()) <= 60_000
    assert sum(text.count("\n") for text in texts.values()) <= 1_500
    html = texts["index.html"]
    assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\bstyle=|\bon\w+=", html)
    named = {url for text in texts.values() for url in re.findall(r"https?://[\w.-]+", text)}
    assert named <= {"http://www.w3.org", "http://base"}
    assert not any(
        re.search(r"innerHTML|insertAdjacentHTML|\beval\(|document\.write", text) for text in texts.values()
    )
