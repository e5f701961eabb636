// What is shown before anything is asked: what there is to search, or how to begin.

import * as api from "./api.js";
import { count, h, plural } from "./dom.js";
import { addForm } from "./sources.js";

const KEYS = { "/": "search", "↑ ↓": "choose", Enter: "open", Esc: "back" };

export async function home(place, signal) {
  const { sources } = await api.get("/sources", {}, signal).catch(() => ({ sources: [] }));
  if (signal.aborted) return; // typed meanwhile
  const documents = sources.reduce((sum, source) => sum + source.documents, 0);
  place.replaceChildren(h("section.home.stack", documents ? welcome(sources, documents) : beginning()));
}

const welcome = (sources, documents) => [
  h("p.lead", `Search ${plural(documents, "document")}`),
  h("ul.plain", sources.map(({ source, documents: n }) => h("li", h("bdi", source), h("span.soft", ` ${count(n)}`)))),
  h("p.keys.soft", Object.entries(KEYS).map(([key, does]) => h("span", h("kbd", key), ` ${does}`))),
];

const beginning = () => [
  h("p.lead", "Nothing is indexed yet"),
  h("p.soft", "Name a folder of documents, code or notes. It is read on this machine and stays here; its files are not changed."),
  addForm(),
  h("p.soft", "In a terminal: ", h("code", "kb add ~/notes")),
];
