// Is all well, how much is there, how fast does it answer, and what have its readers said?

import * as api from "./api.js";
import { bars, button, bytes, count, h, percent, plural } from "./dom.js";

export const NAME = "health";

export async function show(main, now, { signal }) {
  document.title = "Health – Concord";
  const [checked, figures] = [h("div.stack"), h("div.stack")];
  main.replaceChildren(h("section.column", h("h1", "Health"), checked, figures));
  const stats = api.get("/stats", {}, signal).then((found) => figures.replaceChildren(...numbers(found)));
  await Promise.all([examined(checked, () => api.get("/doctor", {}, signal)), stats]);
}

async function examined(place, ask) {
  place.replaceChildren(h("p.soft", { role: "status" }, "Looking …"));
  try {
    place.replaceChildren(...diagnosis(await ask(), place));
  } catch (fault) {
    if (fault.name === "AbortError") throw fault;
    place.replaceChildren(h("p.fault", { role: "alert" }, fault.told));
  }
}

function diagnosis({ checks, findings, fixed, healthy }, place) {
  if (!checks) return [h("p", "This takes longer. Sources shows how far it is.")];
  const mend = () => examined(place, () => api.post("/doctor", { fix: true }));
  const again = () => examined(place, () => api.get("/doctor"));
  const finding = (look) => ({ message, hint }) => h(`li.card${look}`, h("p", message), hint && h("p.soft", api.inWords(hint)));
  return [
    h("div.head",
      h(`p.verdict.${healthy ? "answered" : "probably"}`, h("span.badge", healthy ? "All is well" : `${findings.length} to look at`), h("span.soft", `Looked at ${checks.join(", ")}.`)),
      h("span.acts", findings.some(({ repairable }) => repairable) && button("Repair what can be", mend, ".primary"), button("Look again", again))),
    h("ul.stack", findings.map(finding("")), fixed.map(finding(".fixed"))),
  ];
}

function numbers(stats) {
  const figure = (name, value, told) => h("div.card.figure", h("dt", name), h("dd", value), told && h("dd.soft", told));
  const { good = 0, bad = 0 } = stats.feedback;
  const { calls, p50, p95 } = stats.latencies_ms?.search ?? {};
  const shares = (rows) => bars(rows.map(([name, n]) => [name, n / Math.max(...rows.map(([, most]) => most)), count(n)]));
  return [
    h("dl.figures",
      figure("Documents", count(stats.documents), `in ${plural(stats.sources, "source")}`),
      figure("Passages", count(stats.chunks), stats.pending ? `${count(stats.pending)} left to embed` : "all embedded"),
      stats.size_bytes && figure("On disk", bytes(stats.size_bytes)),
      calls > 0 && figure("Search, median", `${Math.round(p50)} ms`, `95 % within ${Math.round(p95)} ms, of ${count(calls)}`),
      stats.cache?.hit_rate > 0 && figure("Embedding cache", percent(stats.cache.hit_rate), "of texts were known"),
      stats.model && figure("Model", stats.model.provider, stats.model.model)),
    h("h2", "Types"), shares(Object.entries(stats.types)),
    h("h2", "What readers said of results"),
    good + bad ? shares([["good", good], ["bad", bad]]) : h("p.soft", "Nothing yet. Two buttons at each result say whether it was what was meant."),
    ...(stats.health?.problems ?? []).map((problem) => h("p.note.warned", api.inWords(problem))),
  ];
}
