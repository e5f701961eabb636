// Is all well, how much is there, how fast does it answer, and what have its readers said?

import * as api from "./api.js";
import { bar, button, bytes, count, h, percent } from "./dom.js";

export const NAME = "health";

export async function show(main, parameters, { signal }) {
  document.title = "Health – Concord";
  const [checked, figures] = [h("div", h("p.soft", "Looking …")), h("div")];
  main.replaceChildren(h("section.column", h("h1", "Health"), checked, figures));
  const stats = api.get("/stats", {}, signal).then((found) => figures.replaceChildren(...numbers(found)));
  await Promise.all([examined(checked, () => api.get("/doctor", {}, signal)), stats]);
}

async function examined(place, ask) {
  place.setAttribute("aria-busy", "true");
  try {
    place.replaceChildren(...diagnosis(await ask(), place));
  } catch (fault) {
    if (fault.name === "AbortError") throw fault;
    place.replaceChildren(h("p.fault", { role: "alert" }, [fault.message, fault.hint].filter(Boolean).join(" – ")));
  }
  place.setAttribute("aria-busy", "false");
}

function diagnosis(found, place) {
  if (!found.checks) return [h("p", "This takes longer; its progress is with the sources.")]; // a job by now
  const mend = () => examined(place, () => api.post("/doctor", { fix: true }));
  const finding = (one, look) => h("li", { class: `card ${look}` }, h("p", { dir: "auto" }, one.message), one.hint && h("p.soft", { dir: "auto" }, one.hint));
  return [
    h("div.head",
      h("p", { class: `verdict ${found.healthy ? "answered" : "probably"}` },
        h("span.badge", found.healthy ? "All is well" : `${found.findings.length} to look at`),
        h("span.told", `Looked at ${found.checks.join(", ")}.`)),
      h("span.acts", found.findings.some((one) => one.repairable) && button("Repair what can be", mend, { look: "primary" }),
        button("Look again", () => examined(place, () => api.get("/doctor"))))),
    h("ul.cards", found.findings.map((one) => finding(one, "finding")), found.fixed.map((one) => finding(one, "fixed"))),
  ];
}

function numbers(stats) {
  const figure = (name, value, told) => h("div.card.figure", h("dt", name), h("dd", value), told && h("dd.soft", told));
  const model = stats.model && `${stats.model.provider}, ${stats.model.dimension} numbers`;
  const { good = 0, bad = 0 } = stats.feedback;
  const speed = stats.latencies_ms?.search;
  return [
    h("dl.figures",
      figure("Documents", count(stats.documents), `in ${count(stats.sources)} sources`),
      figure("Passages", count(stats.chunks), stats.pending ? `${count(stats.pending)} left to embed` : "all embedded"),
      stats.size_bytes && figure("On disk", bytes(stats.size_bytes)),
      stats.model && figure("Model", stats.model.model, model),
      speed?.calls > 0 && figure("Search, median", `${Math.round(speed.p50)} ms`, `95 of 100 within ${Math.round(speed.p95)} ms, of ${count(speed.calls)}`),
      stats.cache?.hit_rate > 0 && figure("Embedding cache", percent(stats.cache.hit_rate), "of texts were known already")),
    h("h2", "Types"), shares(Object.entries(stats.types)),
    h("h2", "What readers said of results"),
    good + bad ? shares([["good", good], ["bad", bad]]) : h("p.soft", "Nothing yet. The two buttons at each result say whether it was what was meant."),
    ...(stats.problems ?? []).map((problem) => h("p.note.warned", { dir: "auto" }, problem)),
  ];
}

function shares(rows) {
  const most = Math.max(...rows.map(([, n]) => n), 1);
  return h("ul.bars", rows.toSorted((a, b) => b[1] - a[1]).map(([name, n]) => h("li", h("span", name), bar(n / most), h("span.number", count(n)))));
}
