// A document, opened at a passage: outline at the left, what it says in the middle, what belongs to it at the right.

import * as api from "./api.js";
import { ago, button, count, h, percent } from "./dom.js";
import { place } from "./hit.js";
import { imported } from "./imported.js";
import { marked, markIn } from "./marks.js";
import { changed } from "./search.js";
import { freshness } from "./trust.js";

export const NAME = "document";

const MANY_RELATED = 5;
const PAGE_WIDTH = 1400;

export async function show(main, parameters, { signal }) {
  const citation = parameters.get("at");
  const part = await api.get("/rendered", { citation, raw: parameters.get("as") === "raw" || null }, signal);
  document.title = `${part.title} – Concord`;
  const outline = h("nav.outline", { "aria-label": "Outline" });
  const about = h("aside.about", { "aria-label": "About this document" }, facts(part));
  const body = h("div.body", { dir: "auto" });
  const article = h("article.paper", { "data-document": part.document_id }, header(part, parameters), body);
  main.replaceChildren(h("div.reading", outline, article, about));
  if (part.type === "pdf" && parameters.get("as") !== "raw") pages(body, part, signal);
  else windows(body, part, parameters, signal);
  await Promise.allSettled([outlined(outline, part, parameters, signal), related(about, part, signal)]);
}

function header(part, parameters) {
  const q = parameters.get("q");
  const back = q && h("a.back", { href: `/?${changed(parameters, { at: null, as: null })}` }, "← ", h("bdi", q));
  const isPdf = part.type === "pdf";
  const raw = parameters.get("as") === "raw";
  const as = (name, told, isOn) => h("a", { href: `/?${changed(parameters, { as: name })}`, "aria-current": isOn ? "true" : null }, told);
  return h("header", back,
    h("h1", { dir: "auto" }, marked(part.title, q ?? "")),
    part.heading.length > 0 && h("p.crumbs", { dir: "auto" }, part.heading.filter((text) => text !== part.title).join(" › ")),
    h("div.foot", place(part), freshness(part.freshness, part.superseded_by),
      h("span.switch", { role: "group", "aria-label": "Shown as" }, as(null, isPdf ? "Pages" : "Rendered", !raw), as("raw", isPdf ? "Text" : "Raw", raw))));
}

/** What is shown of a long document is a window that grows as one scrolls. */
function windows(body, first, parameters, signal) {
  const ask = async (where) => {
    const part = await api.get("/rendered", { citation: first.document_id, ...where, raw: parameters.get("as") === "raw" || null }, signal);
    return piece(part, first, parameters);
  };
  const [before, after] = [edge("Show what comes before"), edge("Show more")];
  const grow = (end, from) => async () => {
    end.disabled = true;
    const more = await ask(from());
    const height = document.documentElement.scrollHeight;
    end === before ? before.after(more.element) : after.before(more.element);
    if (end === before) scrollBy({ top: document.documentElement.scrollHeight - height, behavior: "instant" });
    [reach.first, reach.last] = [Math.min(reach.first, more.first), Math.max(reach.last, more.last)];
    edges();
  };
  const reach = { first: first.first, last: first.last };
  const edges = () => {
    before.disabled = after.disabled = false;
    before.hidden = reach.first <= 1;
    after.hidden = reach.last >= first.lines;
  };
  before.addEventListener("click", grow(before, () => ({ end: reach.first })));
  after.addEventListener("click", grow(after, () => ({ start: reach.last + 1 })));
  const watch = new IntersectionObserver((seen) => seen.forEach((one) => one.isIntersecting && !after.disabled && after.click()), { rootMargin: "600px" });
  signal.addEventListener("abort", () => watch.disconnect());
  body.replaceChildren(before, piece(first, first, parameters).element, after);
  edges();
  watch.observe(after);
  toPassage(body, first);
}

const edge = (label) => button(label, null, { look: "edge quiet", hidden: true });

function piece(part, opened, parameters) {
  const element = h("div", { class: part.kind }, imported(part.html, part.path));
  const [first, last] = opened.passage ?? [0, -1];
  for (const block of element.querySelectorAll("[data-first]")) {
    if (block.dataset.first > last || block.dataset.last < first || block.querySelector("[data-first]")) continue;
    block.classList.add("passage");
    if (parameters.get("q")) markIn(block, parameters.get("q"));
  }
  const heading = element.firstElementChild;
  if (part.first === 1 && heading?.matches("h1") && heading.textContent.trim() === part.title) heading.classList.add("hidden");
  return { element, first: part.first, last: part.last };
}

function toPassage(body, part) {
  const at = body.querySelector(".passage");
  if (!part.passage || !at || part.passage[0] <= 3) return scrollTo({ top: 0, behavior: "instant" });
  at.scrollIntoView({ block: "start", behavior: "instant" });
}

function pages(body, part, signal) {
  const total = part.pages_total ?? part.pages?.[1] ?? 1;
  let page = part.pages?.[0] ?? 1;
  const image = h("img.sheet", { alt: "" });
  const told = h("span.soft", { "aria-live": "polite" });
  const boxes = h("div.boxes", { "aria-hidden": "true" });
  const turn = (by) => () => {
    page = Math.min(total, Math.max(1, page + by));
    image.src = api.pageImage(part.document_id, page, PAGE_WIDTH);
    image.alt = `Page ${page} of ${total}`;
    told.textContent = `Page ${page} of ${total}`;
    [earlier.disabled, later.disabled] = [page <= 1, page >= total];
    boxes.replaceChildren();
    found(boxes, part, page, signal);
  };
  const [earlier, later] = [button("Previous page", turn(-1)), button("Next page", turn(1))];
  image.addEventListener("error", () => (told.textContent = `Page ${page} cannot be shown; the text view has what it says.`));
  body.replaceChildren(h("div.line.turn", earlier, told, later), h("div.leaf", image, boxes));
  turn(0)();
  scrollTo({ top: 0, behavior: "instant" });
}

/** Mark the passage on the image of its page, where the PDF says where its text stands. */
async function found(boxes, part, page, signal) {
  const { rectangles } = await api.get("/marks", { citation: part.citation, page }, signal).catch(() => ({ rectangles: [] }));
  for (const [left, top, width, height] of rectangles) {
    const box = boxes.appendChild(h("span"));
    Object.assign(box.style, { left: percentage(left), top: percentage(top), width: percentage(width), height: percentage(height) });
  }
}

const percentage = (share) => `${share * 100}%`;

async function outlined(place, part, parameters, signal) {
  const { sections } = await api.get(`/documents/${api.encoded(part.document_id)}/outline`, {}, signal);
  const named = sections.filter((section, at) => section.heading.length && section.heading.join("\0") !== sections[at - 1]?.heading.join("\0"));
  if (named.length < 2) return;
  const least = Math.min(...named.map((section) => section.level));
  const isHere = (section) => section.start_line <= part.start_line && (section.end_line ?? section.start_line) >= part.start_line;
  const here = named.findLast(isHere);
  const item = (section) => {
    const link = h("a", { href: `/?${changed(parameters, { at: section.citation })}`, "aria-current": section === here ? "location" : null },
      h("bdi", section.heading.at(-1)));
    return h("li", { class: `depth${Math.min(3, section.level - least)}` }, link);
  };
  const details = h("details", h("summary", "Outline"), h("ol", named.map(item)));
  details.open = matchMedia("(min-width: 60rem)").matches;
  place.replaceChildren(details);
  const current = place.querySelector("[aria-current]");
  if (current) place.scrollTop = current.offsetTop - place.clientHeight / 2;
}

function facts(part) {
  const rows = [
    ["Path", h("span.path", { dir: "ltr" }, part.path)], ["Source", part.source], ["Type", part.type],
    ["Tags", part.tags.join(", ")], ["Lines", part.lines && count(part.lines)], ["Changed", part.modified_at && ago(part.modified_at)],
    ["Indexed", part.indexed_at && ago(part.indexed_at)],
  ];
  return h("dl", rows.filter(([, value]) => value).map(([name, value]) => [h("dt", name), h("dd", value)]));
}

async function related(about, part, signal) {
  const links = [...document.querySelectorAll(".body a[href]")].map((link) => [link.getAttribute("href"), link.textContent]);
  const unique = [...new Map(links.filter(([, text]) => text.trim())).entries()].slice(0, 8);
  if (unique.length) about.append(h("h2", "Links"), h("ul.plain", unique.map(([href, text]) =>
    h("li", h("a", { href, rel: "noreferrer", target: href.startsWith("/") ? null : "_blank" }, h("bdi", text))))));
  const query = [part.title, part.heading.at(-1)].filter(Boolean).join(" ").slice(0, 300);
  const { results } = await api.get("/search", { query, limit: 20 }, signal);
  const others = results.filter((hit) => hit.document_id !== part.document_id);
  const each = [...new Map(others.toReversed().map((hit) => [hit.document_id, hit])).values()].toReversed().slice(0, MANY_RELATED);
  if (each.length) about.append(h("h2", "Related"), h("ul.plain", each.map((hit) =>
    h("li", h("a", { href: `/?${new URLSearchParams({ at: hit.citation })}` }, h("bdi", hit.title)), h("span.soft", ` ${percent(hit.score)}`)))));
}
