// What a search is limited to: source, type, tag, path and date. All of it is in the address.

import * as api from "./api.js";
import { button, h } from "./dom.js";

const TYPES = ["markdown", "text", "code", "pdf", "html", "office", "mail", "notebook", "image", "data", "note"];
const DATES = { "": "Any time", "1d": "Last day", "7d": "Last week", "30d": "Last month", "365d": "Last year" };
const NONE = { source: "", type: "", tag: "", path: "", since: "", until: "" };

export function filters(go) {
  const change = (changes) => go({ ...Object.fromEntries(new URLSearchParams(location.search)), n: "", ...changes });
  const changed = (name) => (event) => change({ [name]: event.target.value.trim() });
  const field = (name, label) => h("input", { "aria-label": label, placeholder: label, onchange: changed(name) });
  const select = (label, onchange) => h("select", { "aria-label": label, onchange });
  const inputs = {
    source: select("Source", changed("source")),
    type: select("Type", changed("type")),
    tag: field("tag", "Tag"), path: field("path", "Path, as docs/**/*.md"),
    since: select("Date", (event) => change({ since: event.target.value, until: "" })),
  };
  inputs.since.append(...Object.entries(DATES).map(([value, text]) => h("option", { value }, text)));
  inputs.type.append(h("option", { value: "" }, "All types"), ...TYPES.map((type) => h("option", type)));
  const clear = button("Clear", () => change(NONE), ".quiet");
  const fields = h("div.fields", { id: "filters" }, inputs.source, inputs.type, inputs.tag, inputs.path, inputs.since, clear);
  const toggle = button("Filters", () => toggle.setAttribute("aria-expanded", String(fields.classList.toggle("open"))), ".quiet.toggle",
    { "aria-expanded": "false", "aria-controls": "filters" });

  async function update(now) {
    const given = Object.keys(NONE).filter((name) => now[name]).length;
    toggle.textContent = given ? `Filters (${given})` : "Filters";
    clear.hidden = !given;
    await named(inputs.source, now.source ?? "");
    for (const [name, input] of Object.entries(inputs)) {
      input.value = now[name] ?? "";
      input.classList.toggle("on", Boolean(now[name]));
    }
  }
  return { element: h("div.filters", { role: "group", "aria-label": "Filters" }, toggle, fields), update };
}

/** The sources to choose from; the one that the address names is there even if it is not known. */
async function named(select, chosen) {
  const { sources } = await api.get("/sources").catch(() => ({ sources: [] }));
  const names = new Set([...sources.map((row) => row.source), chosen].filter(Boolean));
  select.replaceChildren(h("option", { value: "" }, "All sources"), ...[...names].map((name) => h("option", { value: name }, name)));
}
