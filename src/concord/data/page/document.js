// A document, opened at a passage: outline, what it says, what belongs to it.

import * as api from "./api.js";
import { address, ago, button, count, h, link } from "./dom.js";
import { crumbsOf, place } from "./hit.js";
import { marked, markIn } from "./marks.js";
import { freshness } from "./trust.js";

export const NAME = "document";

const MANY = 5; // related documents
const PAGE_WIDTH = 1400;

export async function show(main, now, { signal }) {
  const ask = (start) => api.get("/rendered", { citation: now.at, raw: now.as === "raw" && "true", start }, signal);
  const part = await ask();
  document.title = `${part.title} – Concord`;
  const body = h("div.body");
  const outline = h("nav.outline", { "aria-label": "Outline" });
  const about = h("aside.about", { "aria-label": "About this document" }, facts(part));
  main.replaceChildren(h("div.reading", outline, h("article.paper", header(part, now), body), about));
  if (part.type === "pdf" && now.as !== "raw") pages(body, part, /:p(\d+)/.exec(now.at)?.[1]);
  else text(body, part, now, ask);
  await Promise.allSettled([outlined(outline, part, now, signal), related(about, part, signal)]);
}

function header(part, now) {
  const isPdf = part.type === "pdf";
  const as = (name, told) => Object.assign(link({ ...now, as: name }, told), { ariaCurrent: (now.as ?? "") === name || null });
  const crumbs = crumbsOf(part);
  return h("header.stack",
    now.q && h("p", link({ ...now, at: "", as: "" }, "← ", h("bdi", now.q))),
    h("h1", marked(part.title, now.q ?? "")),
    crumbs && h("p.crumbs", crumbs),
    h("div.foot", place(part), freshness(part),
      h("span.switch", { role: "group", "aria-label": "Shown as" }, as("", isPdf ? "Pages" : "Rendered"), as("raw", isPdf ? "Text" : "Raw"))));
}

/** Return the nodes of a rendered part, in which the server lets no HTML of a document be; links lead on. */
function imported(html, path) {
  const { body } = new DOMParser().parseFromString(html, "text/html"); // inert: nothing runs, nothing is loaded
  for (const element of body.querySelectorAll("a")) {
    const href = element.getAttribute("href");
    element.removeAttribute("href");
    if (/^(https?|mailto):/i.test(href)) Object.assign(element, { href, target: "_blank", rel: "noreferrer" });
    else if (!/^([a-z][a-z0-9+.-]*:|[\\/#]|$)/i.test(href)) {
      const { pathname } = new URL(href, `http://base/${path.split("/").map(encodeURIComponent).join("/")}`);
      element.href = address({ at: decodeURIComponent(pathname.slice(1)) });
    }
  }
  return [...body.childNodes];
}

/** What is shown of a long document is a window that grows as one reads on. */
function text(body, opened, now, ask) {
  let { last } = opened;
  const more = button("Show more", async () => {
    more.disabled = true;
    const part = await ask(last + 1);
    last = part.last;
    more.before(piece(part));
    more.disabled = false;
    more.hidden = last >= opened.lines;
  }, ".edge", { hidden: last >= opened.lines });
  const earlier = opened.first > 1 && link({ ...now, at: opened.path }, h("span.button.edge", `Lines ${count(opened.first)} and on. Read from the beginning`));
  const first = piece(opened);
  const [from, to] = opened.passage ?? [0, -1];
  for (const block of first.querySelectorAll("[data-first]")) {
    if (block.dataset.first > to || block.dataset.last < from || block.querySelector("[data-first]")) continue;
    block.classList.add("passage");
    if (now.q) markIn(block, now.q);
  }
  body.replaceChildren(...[earlier, first, more].filter(Boolean));
  const passage = body.querySelector(".passage");
  if (passage && from > 3) passage.scrollIntoView({ block: "start" });
  else scrollTo(0, 0);
}

function piece(part) {
  const element = h(`div.${part.kind}`, imported(part.html, part.path));
  const heading = element.firstElementChild;
  if (part.first === 1 && heading?.matches("h1") && heading.textContent.trim() === part.title) heading.remove();
  return element;
}

function pages(body, part, asked) {
  const total = part.pages_total ?? 1;
  let page = Number(asked ?? part.pages?.[0] ?? 1);
  const image = h("img.sheet");
  const told = h("span.soft", { "aria-live": "polite" });
  const turn = (by) => () => {
    page += by;
    image.src = api.pageImage(part.document_id, page, { width: PAGE_WIDTH, mark: part.passage && part.citation });
    image.alt = told.textContent = `Page ${page} of ${total}`;
    [earlier.disabled, later.disabled] = [page <= 1, page >= total];
  };
  const [earlier, later] = [button("Previous page", turn(-1)), button("Next page", turn(1))];
  image.addEventListener("error", () => (told.textContent = `Page ${page} cannot be shown; Text has what it says.`));
  body.replaceChildren(h("div.head", earlier, told, later), image);
  turn(0)();
  scrollTo(0, 0);
}

async function outlined(place, part, now, signal) {
  const { sections } = await api.get(`/documents/${part.document_id}/outline`, {}, signal);
  const named = sections.filter(({ heading }) => heading.length);
  if (named.length < 2) return;
  const least = Math.min(...named.map(({ level }) => level));
  const here = named.findLast(({ start_line: line }) => line <= part.start_line);
  const item = (section) => {
    const to = link({ ...now, at: section.citation }, h("bdi", section.heading.at(-1)));
    to.ariaCurrent = section === here ? "location" : null;
    return h(`li.depth${Math.min(2, section.level - least)}`, to);
  };
  place.append(h("details", { open: matchMedia("(min-width: 60rem)").matches }, h("summary", "Outline"), h("ol", named.map(item))));
  const current = place.querySelector("[aria-current]");
  if (current) place.scrollTop = current.offsetTop - place.clientHeight / 2;
}

const facts = (part) =>
  h("ul.plain.soft", [part.source, part.type, part.tags.join(", "), `${count(part.lines)} lines`, part.modified_at && `changed ${ago(part.modified_at)}`].filter(Boolean).map((told) => h("li", told)));

async function related(about, part, signal) {
  const list = (title, items) => items.length && about.append(h("h2", title), h("ul.plain", items.slice(0, MANY).map((item) => h("li", item))));
  const { out, back, broken } = await api.get(`/documents/${part.document_id}/links`, {}, signal);
  const other = (end) => link({ at: end.path }, h("bdi", end.title || end.path));
  const once = (ends) => [...new Map(ends.map((end) => [end.document_id, end])).values()].map(other);
  list("Links to", once(out));
  list("Linked from", once(back));
  list("Broken links", broken.map((end) => h("bdi", end.target)));
  const near = await api.get(`/documents/${part.document_id}/related`, { limit: MANY }, signal);
  list("Related", near.related.map(other));
}
