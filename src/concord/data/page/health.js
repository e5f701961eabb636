// Is all well, and how good are the answers?

import * as api from "./api.js";
import { ago, bars, button, count, facts, h, percent, plural, svg } from "./dom.js";

export const NAME = "health";

export async function show(main, now, { signal }) {
  document.title = "Health – Concord";
  const [checked, figures, measured] = [h("div.stack"), h("div.stack"), h("div.stack")];
  main.replaceChildren(h("section.column", h("h1", "Health"), checked, figures, measured));
  const stats = api.get("/stats", {}, signal).then((found) => figures.replaceChildren(...numbers(found)));
  const quality = api.get("/eval", {}, signal).then(({ report, note }) => measured.replaceChildren(h("h2", "How good it is"), ...good(report, note).filter(Boolean)));
  await Promise.all([examined(checked, () => api.get("/doctor", {}, signal)), stats, quality]);
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
  const finding = (look) => ({ message, hint }) => h(`li.card${look}`, h("p", message), hint && h("p.soft", api.inWords(hint)));
  return [
    h("div.head",
      h(`p.verdict.${healthy ? "answered" : "probably"}`, h("span.badge", healthy ? "All is well" : `${findings.length} to look at`), h("span.soft", `Looked at ${checks.join(", ")}.`)),
      findings.some(({ repairable }) => repairable) && button("Repair what can be", mend, ".primary")),
    h("ul.stack", findings.map(finding("")), fixed.map(finding(".fixed"))),
  ];
}

const shares = (rows) => bars(rows.map(([name, n, told = count(n)]) => [name, n / Math.max(...rows.map(([, most]) => most)), told]));

function numbers(stats) {
  const { good: liked = 0, bad = 0 } = stats.feedback;
  const { calls, p50, p95 } = stats.latencies_ms?.search ?? {};
  return [
    facts(`${plural(stats.documents, "document")} in ${plural(stats.sources, "source")}`, plural(stats.chunks, "passage"),
      stats.pending ? `${count(stats.pending)} left to embed` : "all embedded", stats.model?.model,
      calls && `searches: half within ${Math.round(p50)} ms, 95 % within ${Math.round(p95)} ms`),
    h("h2", "What readers said of results"),
    liked + bad ? shares([["good", liked], ["bad", bad]]) : h("p.soft", "Nothing yet."),
    ...stats.health.problems.map((problem) => h("p.note.warned", api.inWords(problem))),
  ];
}

function good(report, note) {
  if (!report?.calibration) return [h("p.soft", note ?? "Another version measured it: kb eval measures anew.")];
  const { calibration: { score, hit_labels: labels }, measures, mode_latency_ms: modes = {}, kinds = {} } = report;
  const asked = report.queries ?? Object.values(kinds).reduce((sum, n) => sum + n, 0); // of one's own documents
  return [
    h("p.soft", `nDCG@10 ${measures.auto["nDCG@10"].toFixed(3)} on ${report.collection}, ${plural(asked, "question")}, ${ago(report.measured_at)}.`),
    h("h3", `Of results with such a score, how many were relevant (ECE ${score.ece.toFixed(3)})`), plot(score.bins),
    h("h3", "Of results with such a label"), bars(labels.map(({ label, n, precision }) => [label.replace("_", " "), precision, `${percent(precision)} of ${count(n)}`])),
    modes.auto && h("h3", "How long a search takes, median"), shares(Object.entries(modes).map(([mode, { p50 }]) => [mode, p50, `${p50.toFixed(1)} ms`])),
  ];
}

function plot(bins) {
  const dots = bins.map(({ promised, true: held, n }) => svg("circle", { cx: promised * 100, cy: 100 - held * 100, r: 1.5 + Math.log10(n) }));
  const told = bins.map(({ promised, true: held }) => `${percent(promised)} promised, ${percent(held)} true`).join("; ");
  return svg("svg", { viewBox: "-4 -4 108 108", class: "plot", role: "img", "aria-label": told }, svg("path", { d: "M0 0V100H100M0 100L100 0" }), ...dots);
}
