// Search as you type: an address is a search, and what it finds is shown as it comes.

import * as api from "./api.js";
import { announce, count, h, plural } from "./dom.js";
import { filters } from "./filters.js";
import { hitCard } from "./hit.js";
import { home } from "./home.js";
import { verdict } from "./trust.js";
import { explain } from "./why.js";

export const NAME = "search";

const WORDS_WAIT_MS = 60; // what words alone found is shown if the whole answer takes longer than this
const ADDRESS_WAIT_MS = 300; // after the last key, so that the history has searches and not letters
const FEW = 10;
const MANY = 50; // as many as one answer may have

let parts = null; // the elements of this view, while it is shown
let asking = new AbortController();
let settling = 0;
let last = ""; // the search that is shown, so that coming back to it does not ask again

export async function show(main, parameters, { isSame, signal, go }) {
  if (!isSame || !parts?.root.isConnected) mount(main, go);
  clearTimeout(settling);
  parts.filters.update(parameters);
  signal.addEventListener("abort", () => asking.abort());
  await run(parameters);
}

function mount(main, go) {
  const [summary, answer, list, more] = [
    h("div.summary"), h("div"), h("ol.hits", { "aria-label": "Results" }), h("p.more"),
  ];
  const row = filters((parameters) => go(parameters));
  const root = h("section.column", h("h1.hidden", "Search"), row.element, summary, answer, list, more);
  parts = { root, summary, answer, list, more, filters: row };
  main.replaceChildren(root);
}

/** What was typed is looked for at once; the address follows when the typing rests. */
export function typed(text, { go, isSearching }) {
  const parameters = new URLSearchParams(isSearching ? location.search : "");
  const isNew = !isSearching || !parameters.get("q");
  parameters.delete("n");
  if (text.trim()) parameters.set("q", text);
  else parameters.delete("q");
  if (isNew) return go(parameters);
  clearTimeout(settling);
  settling = setTimeout(() => go(parameters, { replace: true }), ADDRESS_WAIT_MS);
  run(parameters);
}

export function submitted() {
  parts?.list.querySelector("[data-step]")?.focus();
}

async function run(parameters) {
  const key = parameters.toString();
  if (key === last && parts.list.children.length) return;
  asking.abort();
  const { signal } = (asking = new AbortController());
  last = key;
  document.title = parameters.get("q") ? `${parameters.get("q")} – Concord` : "Concord";
  if (!parameters.get("q")?.trim()) return empty();
  parts.root.classList.remove("at-home");
  parts.root.setAttribute("aria-busy", "true");
  let waiting = 0;
  try {
    for await (const [event, data] of api.events("/search", asked(parameters), signal)) {
      if (signal.aborted) return;
      clearTimeout(waiting);
      if (event === "error") throw new api.Fault(400, data);
      if (event === "words") waiting = setTimeout(() => signal.aborted || render(data, parameters, true), WORDS_WAIT_MS);
      else if (event === "answer") render(data, parameters, false);
    }
  } catch (fault) {
    clearTimeout(waiting);
    if (fault.name === "AbortError" || signal.aborted) return;
    last = "";
    if (fault.status) refused(fault);
  } finally {
    if (!signal.aborted) parts.root.setAttribute("aria-busy", "false");
  }
}

export function asked(parameters) {
  const { q: query, tag: tags, n: limit = FEW, ...rest } = Object.fromEntries(parameters);
  const { source, type, path, since, until } = rest;
  return { query, limit, tags: tags?.split(",").map((tag) => tag.trim()).filter(Boolean), source, type, path, since, until };
}

function empty() {
  parts.root.classList.add("at-home");
  parts.root.setAttribute("aria-busy", "false");
  parts.answer.replaceChildren();
  parts.list.replaceChildren();
  parts.more.replaceChildren();
  home(parts.summary);
}

function refused(fault) {
  parts.summary.replaceChildren(h("p.fault", { role: "alert", dir: "auto" }, fault.message, fault.hint && ` (${fault.hint})`));
  parts.answer.replaceChildren();
  parts.list.replaceChildren();
  parts.more.replaceChildren();
}

function render(answer, parameters, isPreliminary) {
  const query = parameters.get("q");
  const { name, element } = verdict(answer, isPreliminary);
  parts.summary.replaceChildren(element, ...notes(answer, parameters));
  parts.answer.replaceChildren(...answering(answer, parameters));
  const focused = document.activeElement.closest?.("[data-hit]")?.dataset.hit;
  const context = { query, answer, parameters, why: (reference) => explain(asked(parameters), reference) };
  parts.list.replaceChildren(...answer.results.map((hit) => hitCard(hit, context)));
  if (focused) parts.list.querySelector(`[data-hit="${CSS.escape(focused)}"] [data-step]`)?.focus({ preventScroll: true });
  parts.more.replaceChildren(...more(answer, parameters));
  if (!isPreliminary) {
    announce(`${name}. ${plural(answer.returned, "result")}.`);
    remember(query, answer);
  }
}

function answering({ answer }, parameters) {
  if (!answer?.text) return [];
  const to = new URLSearchParams({ at: answer.citation, q: parameters.get("q") });
  return [
    h("section.answer.card", { "aria-label": "The words that answer" },
      h("p.said", { dir: "auto" }, answer.text),
      h("a.citation", { href: `/?${to}`, dir: "ltr" }, answer.citation)),
  ];
}

function notes(answer, parameters) {
  const told = [];
  const other = (query) => h("a", { href: `/?${changed(parameters, { q: query, n: null })}` }, query);
  if (answer.note) told.push(h("p.note", { dir: "auto" }, capital(answer.note)));
  for (const { strategy, reason } of answer.degraded)
    told.push(h("p.note.warned", `${capital(strategy)} did not take part: ${reason}`));
  if (answer.suggestions.length && !answer.answerable)
    told.push(h("p.note", "Try ", answer.suggestions.map((query, at) => [at ? " · " : "", other(query)])));
  return told;
}

function more(answer, parameters) {
  const told = `${count(answer.returned)} of ${plural(answer.total_hits, "candidate")} in ${Math.round(answer.search_time_ms)} ms`;
  const isMore = answer.returned >= FEW && answer.returned < MANY && answer.total_hits > answer.returned;
  const link = isMore && h("a.button", { href: `/?${changed(parameters, { n: MANY })}` }, `Show up to ${MANY}`);
  return [link, h("span.soft", answer.returned >= MANY ? `${told}. A filter or another word narrows it.` : told)];
}

export function changed(parameters, changes) {
  const next = new URLSearchParams(parameters);
  for (const [name, value] of Object.entries(changes)) {
    if (value) next.set(name, value);
    else next.delete(name);
  }
  return next;
}

const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);

/** Keep the last searches that found something, on this machine's browser alone. */
let keeping = 0;
function remember(query, answer) {
  clearTimeout(keeping);
  if (!answer.returned || !answer.answerable) return;
  keeping = setTimeout(() => {
    const before = JSON.parse(localStorage.getItem("recent") ?? "[]").filter((other) => !query.startsWith(other) && other !== query);
    localStorage.setItem("recent", JSON.stringify([query, ...before].slice(0, 6)));
  }, 2000);
}
