// The sources, and the work on them.

import * as api from "./api.js";
import { go } from "./app.js";
import { ago, announce, attempt, bar, button, capital, count, facts, h, plural } from "./dom.js";

export const NAME = "sources";

const AGAIN_MS = 1500;
const OVER = ["done", "failed", "stopped"];

export async function show(main, now, { signal }) {
  document.title = "Sources – Concord";
  const [work, list] = [h("div.stack", { "aria-live": "polite" }), h("div.stack")];
  const all = button("Sync all", () => attempt(api.post("/sync")));
  main.replaceChildren(h("section.column", h("div.head", h("h1", "Sources"), all), addForm(), work, list));
  await listed(list, signal);
  follow(work, list, signal);
}

async function listed(list, signal) {
  const { sources } = await api.get("/sources", {}, signal);
  list.replaceChildren(...(sources.length ? sources.map(card) : [h("p.soft", "There are none yet. Name a folder above.")]));
}

function card(row) {
  const path = `/sources/${encodeURIComponent(row.source)}`;
  const sync = row.kind !== "notes" && button("Sync", () => attempt(api.post(`${path}/sync`)), "", { "aria-label": `Sync ${row.source}` });
  const remove = button("Remove", () => removed(row, path), ".quiet", { "aria-label": `Remove ${row.source}` });
  return h("article.card.source", { "data-source": row.source },
    h("div.head", h("h2", h("bdi", row.source)), h("span.acts", sync, remove)),
    row.about && h("p", row.about),
    row.path && h("p.path", row.path),
    facts(plural(row.documents, "document"), plural(row.chunks, "passage"), row.synced_at && `read ${ago(row.synced_at)}`,
      row.patterns.join(" "), row.tags.map((tag) => `#${tag}`).join(" "), row.trust === "untrusted" && "untrusted"),
    row.chunks > row.vectors && h("p.note", `${plural(row.chunks - row.vectors, "passage")} left to embed: words find them, meaning does not yet.`));
}

export function addForm() {
  const field = (name, label, placeholder, more) => h("label.field", label, h("input", { name, placeholder, autocomplete: "off", ...more }));
  const fault = h("p.fault", { role: "alert" });
  const onsubmit = async (event) => {
    event.preventDefault();
    const { path, about, patterns } = Object.fromEntries(new FormData(event.target));
    fault.textContent = "";
    try {
      await api.post("/sources", { path: path.trim(), about: about || null, patterns: patterns.split(",").map((part) => part.trim()).filter(Boolean) });
      if (document.body.dataset.view === NAME) event.target.reset();
      else await go({ view: NAME });
      announce(`Reading ${path}`);
    } catch (problem) {
      fault.textContent = problem.told;
    }
  };
  return h("form.card", { onsubmit },
    h("div.line", field("path", "Folder or file", api.session.roots[0] ?? "/home/me/notes", { required: true }), h("button.primary", "Add")),
    h("details", h("summary", "Description, patterns"),
      h("div.line", field("about", "What is in it", "one line, which AI tools see"), field("patterns", "Only files like", "**/*.md, **/*.txt"))),
    api.session.roots.length > 0 && h("p.soft", "Within ", h("code", api.session.roots.join(", "))),
    fault);
}

function removed({ source, kind, documents: n }, path) {
  const kept = kind === "notes" ? "Notes are kept nowhere else." : "The files stay where they are.";
  if (confirm(`Remove ${source}? ${plural(n, "document")} will no longer be found. ${kept}`))
    attempt(api.remove(`${path}${kind === "notes" ? "?force=true" : ""}`));
}

async function follow(work, list, signal) {
  let over = null;
  while (!signal.aborted) {
    try {
      for await (const [, { jobs }] of api.events("/events", {}, signal)) {
        work.replaceChildren(...jobs.filter(isWork).toReversed().map(row));
        const ended = jobs.filter(isOver).length;
        if (over !== null && ended !== over) await listed(list, signal);
        over = ended;
      }
    } catch (fault) {
      if (fault.name === "AbortError") return;
    }
    await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
  }
}

const isOver = (job) => OVER.includes(job.state);
const isWork = (job) => job.label !== "doctor" || !isOver(job); // what a look found is with health

function row(job) {
  const far = job.total ? `${count(job.done)} of ${count(job.total)}` : job.done ? count(job.done) : "";
  const told = isOver(job) ? outcome(job) : `${capital(job.stage || job.state)} ${far}`;
  const going = !isOver(job) && [button("Stop", () => attempt(api.remove(`/jobs/${job.id}`)), ".quiet"), bar(job.total ? job.done / job.total : 0.05, told)];
  return h(`article.card.job.${job.state}`, { "data-job": job.id },
    h("div.head", h("h2", `${capital(job.doing)} ${job.label}`), going && going[0]), going && going[1],
    h(job.state === "failed" ? "p.fault" : "p.soft", told),
    reports(job).map(details));
}

const reports = ({ result }) => (result ? (result.sources ?? [result]) : []);

function outcome(job) {
  if (job.state === "stopped") return "Stopped. What was read stays; Sync goes on from there.";
  if (job.error) return new api.Fault(0, job.error).told;
  const sum = (name) => reports(job).reduce((total, report) => total + (report[name] || 0), 0);
  const told = ["added", "changed", "removed", "renamed", "unchanged"].filter(sum).map((name) => `${count(sum(name))} ${name}`);
  if (sum("documents_deleted")) told.push(`${plural(sum("documents_deleted"), "document")} removed`);
  if (sum("pending")) told.push(`${plural(sum("pending"), "passage")} left to embed`);
  return told.join(" · ") || "Nothing to do";
}

function details(report) {
  const files = (title, rows = [], open = false) => rows.length > 0 && h("details", { open },
    h("summary", `${title}: ${count(rows.length)}`),
    h("ul.files", rows.map(({ path, reason, pages, pages_without_text: unread }) =>
      h("li", h("code", path), h("span.soft", reason ?? `${unread} of ${pages} pages hold no text`)))));
  return [
    files("Could not be read", report.failed, true), files("Read in part", report.partly_read), files("Skipped", report.skipped_files),
    report.degraded && h("p.note.warned", report.degraded),
  ];
}
