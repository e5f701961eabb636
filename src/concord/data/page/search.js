// Search as you type: an address is a search.

import * as api from "./api.js";
import { announce, capital, count, h, link, plural } from "./dom.js";
import { filters } from "./filters.js";
import { hitCard } from "./hit.js";
import { home } from "./home.js";
import { plain } from "./marks.js";
import { verdict } from "./trust.js";
import { explain } from "./why.js";

export const NAME = "search";

const WORDS_WAIT_MS = 30; // what words alone found is shown if the whole answer takes longer than this
const PAUSE_MS = 300; // after the last key, the reader reads and the address follows
const FEW = 10;
const MANY = 50; // as many as one answer may have

let parts = {}; // the elements of this view, while it is shown
let asking = new AbortController();
let settling = 0;
let pending = null; // what was typed, until the address follows
let last = ""; // the search that is shown: coming back to it does not ask again

export async function show(main, now, { signal, go }) {
  if (!parts.root?.isConnected) mount(main, go);
  settled();
  signal.addEventListener("abort", () => asking.abort());
  await Promise.all([parts.filters.update(now), run(now)]);
}

function mount(main, go) {
  parts = { filters: filters(go), summary: h("div.stack"), list: h("ol.stack.hits", { "aria-label": "Results" }), linked: h("div.stack"), more: h("p.foot") };
  parts.root = h("section.column", h("h1.hidden", "Search"), parts.filters.element, parts.summary, parts.list, parts.linked, parts.more);
  main.replaceChildren(parts.root);
  last = "";
}

/** What was typed is looked for at once and without the reader; when the typing rests, with it. */
export function typed(text, now, go) {
  const next = { ...now, n: "", q: text.trim() && text };
  if (!parts.root?.isConnected) return go(next);
  settled();
  pending = next;
  settling = setTimeout(() => go(next, { replace: Boolean(now.q) }), PAUSE_MS);
  run(next, "false");
}

/** Return what the address has not followed yet, for whoever goes on from there. */
export function settled() {
  clearTimeout(settling);
  const state = pending;
  pending = null;
  return state;
}

async function run(now, reader) {
  const question = JSON.stringify(asked(now));
  const key = `${question}${reader ?? ""}`;
  if (key === last) return;
  const isShown = last === `${question}false`;
  last = key;
  asking.abort();
  const { signal } = (asking = new AbortController());
  document.title = now.q ? `${now.q} – Concord` : "Concord";
  parts.root.classList.toggle("at-home", !now.q);
  if (!now.q) {
    fill();
    return home(parts.summary, signal);
  }
  let waiting = 0;
  try {
    for await (const [event, data] of api.events("/search", { ...asked(now), reader }, signal)) {
      clearTimeout(waiting);
      if (event === "error") throw new api.Fault(400, data);
      if (event === "words" && !isShown) waiting = setTimeout(() => signal.aborted || render(data, now, true), WORDS_WAIT_MS);
      if (event === "answer") render(data, now);
    }
  } catch (fault) {
    clearTimeout(waiting);
    if (signal.aborted) return;
    last = "";
    if (fault.status) fill([h("p.fault", { role: "alert" }, fault.told)]);
  }
}

const asked = ({ q: query, tag, n, source, type, path, since, until }) =>
  ({ query, limit: Number(n) || FEW, tags: tag?.split(/\s*,\s*/).filter(Boolean), source, type, path, since, until });

function fill(summary = [], hits = [], more = [], linked = []) {
  parts.linked.replaceChildren(...linked);
  parts.summary.replaceChildren(...summary.flat(2).filter(Boolean));
  parts.list.replaceChildren(...hits);
  parts.more.replaceChildren(...more.filter(Boolean));
}

function render(answer, now, isPreliminary = false) {
  const { name, element } = verdict(answer, isPreliminary);
  const focused = document.activeElement.closest("[data-hit]")?.dataset.hit;
  const why = (reference) => explain(asked(now), reference);
  const told = isPreliminary ? [] : [answering(answer, now), notes(answer, now)];
  fill([element, told], answer.results.map((hit) => hitCard(hit, { now, answer, why })), more(answer, now), answer.linked.map((row) => beside(row, now)));
  if (focused) parts.list.querySelector(`[data-hit="${focused}"] [data-step]`)?.focus({ preventScroll: true });
  if (!isPreliminary) announce(`${name}. ${plural(answer.returned, "result")}.`);
}

function answering({ answer }, now) {
  if (!answer?.text) return null;
  return h("section.answer.card", { "aria-label": "The words that answer" },
    h("p.said", plain(answer.text)), h("p", link({ ...now, n: "", at: answer.citation }, h("code.citation", answer.citation))));
}

function beside(row, now) {
  return h("aside.card", { "aria-label": "Linked from the results" },
    h("p", "→ ", link({ ...now, n: "", at: row.citation }, h("bdi", row.title)), ` (${row.kind} in `, h("code.citation", row.via), ")"),
    h("p.snippet", plain(row.snippet)), row.warnings.map((warning) => h("p.note.warned", warning)));
}

function notes(answer, now) {
  const others = answer.suggestions.map((query, at) => [at > 0 && " · ", link({ ...now, n: "", q: query }, query)]);
  return [
    answer.note && h("p.note", capital(api.inWords(answer.note))),
    ...answer.degraded.map(({ strategy, reason }) => h("p.note.warned", `${capital(strategy)} did not take part: ${reason}`)),
    others.length > 0 && !answer.answerable && h("p.note", "Try ", others),
  ];
}

function more(answer, now) {
  const told = `${count(answer.returned)} of ${plural(answer.total_hits, "candidate")} in ${Math.round(answer.search_time_ms)} ms`;
  const isMore = answer.returned === FEW && answer.total_hits > FEW;
  const rest = answer.returned === MANY ? ". A filter or another word narrows it." : "";
  return [isMore && link({ ...now, n: MANY }, h("span.button", `Show up to ${MANY}`)), h("span.soft", told + rest)];
}
