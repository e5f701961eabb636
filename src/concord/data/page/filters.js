// What a search is limited to. All of it is in the address.

import * as api from "./api.js";
import { button, h } from "./dom.js";

const TYPES = ["markdown", "text", "code", "pdf", "html", "office", "mail", "notebook", "image", "data", "note"];
const DATES = [["", "Any time"], ["1d", "Last day"], ["7d", "Last week"], ["30d", "Last month"], ["365d", "Last year"]];
const NONE = { source: "", type: "", tag: "", path: "", since: "", until: "" };

export function filters(go) {
  const change = (changes) => go({ ...Object.fromEntries(new URLSearchParams(location.search)), n: "", ...changes });
  const input = (tag, name, label, options = []) =>
    h(tag, { "aria-label": label, placeholder: label, onchange: ({ target }) => change({ [name]: target.value.trim(), until: "" }) }, named(options));
  const inputs = {
    source: input("select", "source", "Source"),
    type: input("select", "type", "Type", [["", "All types"], ...TYPES.map((type) => [type, type])]),
    tag: input("input", "tag", "Tag"),
    path: input("input", "path", "Path, as docs/**/*.md"),
    since: input("select", "since", "Date", DATES),
  };
  const clear = button("Clear", () => change(NONE), ".quiet");
  const summary = h("summary");
  const element = h("details.filters", { open: matchMedia("(min-width: 40rem)").matches }, summary, h("div.fields", Object.values(inputs), clear));

  async function update(now) {
    const given = Object.keys(NONE).filter((name) => now[name]).length;
    summary.textContent = given ? `Filters (${given})` : "Filters";
    clear.hidden = !given;
    const { sources } = await api.get("/sources").catch(() => ({ sources: [] }));
    const names = new Set([...sources.map((row) => row.source), now.source].filter(Boolean)); // also one that is not known
    inputs.source.replaceChildren(...named([["", "All sources"], ...[...names].map((name) => [name, name])]));
    for (const [name, input] of Object.entries(inputs)) {
      input.value = now[name] ?? "";
      input.classList.toggle("on", Boolean(now[name]));
    }
  }
  return { element, update };
}

const named = (options) => options.map(([value, text]) => h("option", { value }, text));
