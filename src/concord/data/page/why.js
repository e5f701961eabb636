// Why a passage ranks where it does, or does not: the arithmetic as bars.

import * as api from "./api.js";
import { bar, button, h, percent } from "./dom.js";

const PARTS = {
  lexical: "words", semantic: "meaning", name: "a name that was asked for", coverage: "words of the question that it has",
  document_cosine: "closeness in meaning", document_z: "how far it stands out", boosts: "boosts",
};
const drawer = h("dialog.drawer", { "aria-labelledby": "why-title" });
drawer.addEventListener("click", (event) => event.target === drawer && drawer.close());
document.body.append(drawer);

/** Open the drawer on one passage of a search. */
export async function explain(asked, reference) {
  const body = h("div", { "aria-live": "polite" }, h("p.soft", "Asking every strategy for a thousand …"));
  drawer.replaceChildren(
    h("header", h("h2", { id: "why-title" }, "Why"), button("Close", () => drawer.close(), { look: "bare", symbol: "close", text: false })),
    body, whyNot(asked));
  if (!drawer.open) drawer.showModal();
  try {
    body.replaceChildren(...explained(await api.post("/explain", defined({ ...asked, limit: Number(asked.limit), reference }))));
  } catch (fault) {
    body.replaceChildren(h("p.fault", { dir: "auto" }, fault.message, fault.hint && ` (${fault.hint})`));
  }
}

const defined = (options) => Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined && value !== ""));

function whyNot(asked) {
  const field = h("input", { id: "why-not", placeholder: "docs/auth.md:12-31", required: true, autocomplete: "off" });
  const onsubmit = (event) => {
    event.preventDefault();
    explain(asked, field.value.trim());
  };
  return h("form", { onsubmit }, h("label", { for: "why-not" }, "Why not another passage? Its citation or path:"),
    h("span.line", field, h("button", "Explain")));
}

function explained(why) {
  const sums = why.arithmetic;
  return [
    h("p", h("code.citation", { dir: "ltr" }, why.citation)),
    h("p.lead", why.why),
    section("Who found it", why.strategies.map((row) =>
      row.rank ? line(row.strategy, 1 / Math.sqrt(row.rank), `rank ${row.rank}`) : line(row.strategy, 0, row.reason ?? "did not find it"))),
    why.words.length && section("Words of the question", why.words.map((word) =>
      h("li", h("bdi", word.text), h("span.soft", word.pruned ? "too frequent to look for" : word.held ? `here, and in ${word.chunks} in all` : `not here; in ${word.chunks} others`)))),
    sums?.families && section("What each side added", added(Object.entries(sums.families).map(([name, side]) => [name, side.added]))),
    sums?.relevance?.features && section(`How that becomes ${percent(sums.relevance.relevance)}`,
      added(sums.relevance.features.map((feature) => [feature.name, feature.added]), sums.relevance.intercept)),
    sums?.label && h("p.soft", `Label ${sums.label.label.replaceAll("_", " ")}, by ${sums.label.row}.`),
    why.overlap && h("p.soft", `Nearest in words: ${why.overlap.citation}, ${percent(why.overlap.similarity)} the same.`),
  ].filter(Boolean);
}

function added(rows, intercept) {
  const known = rows.filter(([, value]) => typeof value === "number");
  const most = Math.max(...known.map(([, value]) => Math.abs(value)), 1e-9);
  const lines = known.map(([name, value]) => line(PARTS[name] ?? name.replaceAll("_", " "), Math.abs(value) / most, value.toFixed(2)));
  return intercept === undefined ? lines : [...lines, line("where it starts", 0, intercept.toFixed(2))];
}

const section = (title, rows) => h("section", h("h3", title), h("ul.bars", rows));
const line = (name, share, told) =>
  h("li", h("span", name.replaceAll("_", " ")), bar(share), h("span.number", told));
