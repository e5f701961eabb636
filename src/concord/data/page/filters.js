// What a search is limited to: source, type, tag, path and date. All of it is in the address.

import * as api from "./api.js";
import { button, h } from "./dom.js";

const TYPES = ["markdown", "text", "code", "pdf", "html", "office", "data", "note"];
const DATES = [["", "Any time"], ["1d", "Last day"], ["7d", "Last week"], ["30d", "Last month"], ["365d", "Last year"], ["between", "Between …"]];
const NAMES = ["source", "type", "tag", "path", "since", "until"];

export function filters(onchange) {
  const change = (changes) => {
    const next = new URLSearchParams(location.search);
    next.delete("n");
    if (changes.since === "between") return (between.hidden = false);
    for (const [name, value] of Object.entries(changes)) value ? next.set(name, value) : next.delete(name);
    onchange(next);
  };
  const select = (name, label, choices) =>
    h("select", { "aria-label": label, onchange: (event) => change(chosen(name, event.target.value)) },
      choices.map(([value, text]) => h("option", { value }, text)));
  const field = (name, label, type = "text") =>
    h("input", { type, "aria-label": label, placeholder: label, title: label, onchange: (event) => change({ [name]: event.target.value.trim() }) });
  const inputs = {
    source: select("source", "Source", [["", "All sources"]]),
    type: select("type", "Type", [["", "All types"], ...TYPES.map((type) => [type, type])]),
    tag: field("tag", "Tag"),
    path: field("path", "Path, as docs/**/*.md"),
    since: field("since", "Changed since", "date"),
    until: field("until", "Changed until", "date"),
  };
  const date = select("since", "Date", DATES);
  const between = h("span.between", { hidden: true }, inputs.since, h("span.soft", "to"), inputs.until);
  const clear = button("Clear", () => change(Object.fromEntries(NAMES.map((name) => [name, ""]))), { look: "quiet" });
  const fields = h("div.fields", { id: "filters" }, inputs.source, inputs.type, inputs.tag, inputs.path, date, between, clear);
  const toggle = button("Filters", () => toggle.setAttribute("aria-expanded", String(fields.classList.toggle("open"))),
    { look: "quiet toggle", "aria-expanded": "false", "aria-controls": "filters" });
  const element = h("div.filters", { role: "group", "aria-label": "Filters" }, toggle, fields);
  return { element, update: (parameters) => update(parameters, { inputs, date, between, clear, toggle }) };
}

const chosen = (name, value) => (name === "since" ? { since: value, until: "" } : { [name]: value });

async function update(parameters, { inputs, date, between, clear, toggle }) {
  const given = NAMES.filter((name) => parameters.get(name));
  const isBetween = parameters.has("until") || (parameters.get("since") && !DATES.some(([value]) => value === parameters.get("since")));
  toggle.textContent = given.length ? `Filters (${given.length})` : "Filters";
  clear.hidden = !given.length;
  between.hidden = !isBetween && date.value !== "between";
  date.value = isBetween ? "between" : (parameters.get("since") ?? "");
  date.classList.toggle("on", Boolean(date.value));
  await known(inputs.source, parameters.get("source"));
  for (const name of NAMES) {
    inputs[name].value = parameters.get(name) ?? "";
    inputs[name].classList.toggle("on", Boolean(inputs[name].value));
  }
}

/** The sources to choose from; one that the address names is there even if it is not known. */
async function known(select, chosen) {
  if (select.options.length > 1 && [...select.options].some((option) => option.value === (chosen ?? ""))) return;
  const { sources } = await api.get("/sources").catch(() => ({ sources: [] }));
  const names = new Set([...sources.map((row) => row.source), ...(chosen ? [chosen] : [])]);
  select.replaceChildren(h("option", { value: "" }, "All sources"), ...[...names].map((name) => h("option", { value: name }, name)));
}
