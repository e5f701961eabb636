// What is shown before anything is asked: what there is to search, what was asked last, or how to begin.

import * as api from "./api.js";
import { count, h, plural } from "./dom.js";
import { addForm } from "./sources.js";

const KEYS = [["/", "search"], ["↑ ↓", "choose"], ["Enter", "open"], ["Esc", "back"]];

export async function home(place) {
  const { sources } = await api.get("/sources").catch(() => ({ sources: [] }));
  if (new URLSearchParams(location.search).get("q")) return; // typed meanwhile
  const documents = sources.reduce((sum, source) => sum + source.documents, 0);
  place.replaceChildren(documents ? welcome(sources, documents) : beginning(sources));
}

function welcome(sources, documents) {
  const recent = JSON.parse(localStorage.getItem("recent") ?? "[]");
  const link = (to, ...text) => h("li", h("a", { href: `/?${new URLSearchParams(to)}` }, text));
  return h("section.home",
    h("p.lead", `Search ${plural(documents, "document")}`),
    h("p.soft", "By words and by meaning. Each result says where it stands and how far to trust it."),
    recent.length > 0 && [h("h2", "Asked before"), h("ul.plain", recent.map((query) => link({ q: query }, h("bdi", query))))],
    h("h2", "Sources"),
    h("ul.plain", sources.slice(0, 12).map((source) =>
      link({ view: "sources" }, h("bdi", source.source), h("span.soft", ` ${count(source.documents)}`)))),
    h("p.keys.soft", KEYS.map(([key, does]) => h("span", h("kbd", key), ` ${does}`))));
}

function beginning(sources) {
  const told = sources.length ? "The sources hold no documents yet." : "Nothing is indexed yet.";
  return h("section.home",
    h("p.lead", told),
    h("p.soft", "Name a folder of documents, code or notes. It is read on this machine and stays here; its files are not changed."),
    addForm(), h("p.soft", "In a terminal: ", h("code", "kb add ~/notes")));
}
