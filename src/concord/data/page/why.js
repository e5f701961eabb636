// Why a passage ranks where it does, or does not.

import * as api from "./api.js";
import { bars, button, h, percent } from "./dom.js";

const NAMES = {
  lexical: "words", semantic: "meaning", fts_exact: "exact words", fts_relaxed: "some words", name: "a name asked for",
  coverage: "words of the question", document_cosine: "closeness in meaning", document_z: "how far it stands out",
};
const drawer = h("dialog.drawer", { "aria-labelledby": "why-title" });
drawer.addEventListener("click", (event) => event.target === drawer && drawer.close());
document.body.append(drawer);

export async function explain(asked, reference) {
  const body = h("div.stack", { "aria-live": "polite" }, h("p.soft", "Looking …"));
  const title = h("div.head", h("h2", { id: "why-title" }, "Why"), button("Close", () => drawer.close(), ".quiet"));
  drawer.replaceChildren(title, body, whyNot(asked));
  if (!drawer.open) drawer.showModal();
  try {
    body.replaceChildren(...explained(await api.get("/explain", { ...asked, reference })).filter(Boolean));
  } catch (fault) {
    body.replaceChildren(h("p.fault", fault.told));
  }
}

function whyNot(asked) {
  const field = h("input", { id: "why-not", placeholder: "docs/auth.md:12-31", required: true, autocomplete: "off" });
  const onsubmit = (event) => {
    event.preventDefault();
    explain(asked, field.value.trim());
  };
  return h("form", { onsubmit }, h("label", { for: "why-not" }, "Why not another passage? Its citation or path:"), h("span.line", field, h("button", "Explain")));
}

function explained({ citation, why, strategies, arithmetic }) {
  const { families, relevance } = arithmetic ?? {};
  const sides = families && Object.entries(families).map(([name, side]) => [name, side.added]);
  return [
    h("p", h("code.citation", citation)),
    h("p.lead", why),
    section("Who found it", bars(strategies.map(({ strategy, rank, reason }) => [named(strategy), rank ? rank ** -0.5 : 0, rank ? `rank ${rank}` : (reason ?? "no")]))),
    sides && section("What each side added", added(sides)),
    relevance?.features && section(`How that becomes ${percent(relevance.relevance)}`,
      added([...relevance.features.map((feature) => [feature.name, feature.added]), ["where it starts", relevance.intercept]])),
  ];
}

function added(rows) {
  const known = rows.filter(([, value]) => typeof value === "number");
  const most = Math.max(...known.map(([, value]) => Math.abs(value)));
  return bars(known.map(([name, value]) => [named(name), Math.abs(value) / most, value.toFixed(2), value < 0 ? ".less" : ""]));
}

const named = (name) => NAMES[name] ?? name.replaceAll("_", " ");
const section = (title, rows) => h("section", h("h3", title), rows);
