// Before anything is asked: what there is to search, or how to begin.

import * as api from "./api.js";
import { h, plural } from "./dom.js";
import { addForm } from "./sources.js";

export async function home(place, signal) {
  const { sources } = await api.get("/sources", {}, signal).catch(() => ({ sources: [] }));
  if (signal.aborted) return; // typed meanwhile
  const documents = sources.reduce((sum, source) => sum + source.documents, 0);
  place.replaceChildren(h("section.home.stack", documents ? welcome(documents) : beginning()));
}

const welcome = (documents) => [
  h("p.lead", `Search ${plural(documents, "document")}`),
  h("p.soft", "/ searches, ↑ ↓ choose, Enter opens, Esc goes back."),
];

const beginning = () => [
  h("p.lead", "Nothing is indexed yet"),
  h("p.soft", "Name a folder of documents, code or notes. It is read on this machine and stays here; its files are not changed."),
  addForm(),
  h("p.soft", "In a terminal: ", h("code", "kb add ~/notes")),
];
