// The sources: what there is, what is being read, what could not be; to add, to bring up to date, to remove.

import * as api from "./api.js";
import { go } from "./app.js";
import { address, ago, announce, attempt, bar, button, bytes, capital, count, facts, h, link, plural } from "./dom.js";

export const NAME = "sources";

const AGAIN_MS = 1500;
const MANY_FILES = 200;
const OVER = ["done", "failed", "stopped"];

export async function show(main, now, { signal }) {
  if (now.source) return documents(main, now.source, signal);
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
  const left = row.chunks - row.vectors;
  const sync = row.kind !== "notes" && button("Sync", () => attempt(api.post(`${path}/sync`)), "", { "aria-label": `Sync ${row.source}` });
  const remove = button("Remove", () => confirmRemoval(row, path), ".quiet", { "aria-label": `Remove ${row.source}` });
  return h("article.card.source", { "data-source": row.source },
    h("div.head", h("h2", link({ view: NAME, source: row.source }, h("bdi", row.source))), h("span.acts", sync, remove)),
    row.about && h("p", row.about),
    row.path && h("p.path", row.path),
    facts(plural(row.documents, "document"), plural(row.chunks, "passage"), row.synced_at && `read ${ago(row.synced_at)}`,
      row.patterns.join(" "), row.tags.map((tag) => `#${tag}`).join(" "), row.trust === "untrusted" && "untrusted"),
    left > 0 && h("p.note", `${plural(left, "passage")} left to embed: words find them, meaning does not yet.`));
}

export function addForm() {
  const field = (name, label, placeholder, more) =>
    h("label.field", label, h("input", { name, placeholder, autocomplete: "off", spellcheck: "false", ...more }));
  const fault = h("p.fault", { role: "alert" });
  const list = (text) => text.split(",").map((part) => part.trim()).filter(Boolean);
  const onsubmit = async (event) => {
    event.preventDefault();
    const { path, name, about, patterns, tags } = Object.fromEntries(new FormData(event.target));
    fault.textContent = "";
    try {
      await api.post("/sources", { path: path.trim(), name: name.trim() || null, about: about || null, patterns: list(patterns), tags: list(tags) });
      announce(`Reading ${path}`);
      if (document.body.dataset.view === NAME) event.target.reset();
      else await go({ view: NAME });
    } catch (problem) {
      fault.textContent = problem.told;
    }
  };
  return h("form.card", { onsubmit },
    h("div.line", field("path", "Folder or file", api.session.roots[0] ?? "/home/me/notes", { required: true }), h("button.primary", "Add")),
    h("details", h("summary", "Name, description, patterns, tags"),
      h("div.line", field("name", "Name", "its folder's name"), field("about", "What is in it", "one line, which AI tools see"), field("patterns", "Only files like", "**/*.md, **/*.txt"), field("tags", "Tags", "work, draft"))),
    api.session.roots.length > 0 && h("p.soft", "Within ", h("code", api.session.roots.join(", "))),
    fault);
}

function confirmRemoval(row, path) {
  const sure = async () => {
    dialog.close();
    await attempt(api.remove(`${path}${row.kind === "notes" ? "?force=true" : ""}`));
  };
  const dialog = h("dialog.stack", { "aria-labelledby": "sure", onclose: () => dialog.remove() },
    h("h2", { id: "sure" }, "Remove ", h("bdi", row.source), "?"),
    h("p", `${plural(row.documents, "document")} will no longer be found. `, row.kind === "notes" ? "Notes are kept nowhere else." : "The files stay where they are."),
    h("div.line", button("Remove", sure, ".danger"), button("Cancel", () => dialog.close())));
  document.body.append(dialog);
  dialog.showModal();
}

/** Show the work that is under way, as the server tells of it, until this view is left. */
async function follow(work, list, signal) {
  let over = null;
  while (!signal.aborted) {
    try {
      for await (const [, { jobs }] of api.events("/events", {}, signal)) {
        work.replaceChildren(...jobs.filter(isWork).toReversed().map(row));
        const ended = jobs.filter((job) => OVER.includes(job.state)).length;
        if (over !== null && ended !== over) await listed(list, signal);
        over = ended;
      }
    } catch (fault) {
      if (fault.name === "AbortError") return;
    }
    await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
  }
}

function row(job) {
  const isOver = OVER.includes(job.state);
  const far = job.total ? `${count(job.done)} of ${count(job.total)}` : job.done ? count(job.done) : "";
  const told = isOver ? outcome(job) : `${capital(job.stage || job.state)} ${far}`;
  return h(`article.card.job.${job.state}`, { "data-job": job.id },
    h("div.head", h("h2", `${capital(job.doing)} ${job.label}`),
      !isOver && button("Stop", () => attempt(api.remove(`/jobs/${job.id}`)), ".quiet")),
    !isOver && bar(job.total ? job.done / job.total : 0.05, told),
    h(job.state === "failed" ? "p.fault" : "p.soft", told),
    reports(job).map(details));
}

const isWork = (job) => job.label !== "doctor" || !OVER.includes(job.state); // what a look found is with health
const reports = ({ result }) => (result ? (result.sources ?? [result]) : []);

function outcome(job) {
  if (job.state === "stopped") return "Stopped. What was read stays; Sync goes on from there.";
  if (job.error) return new api.Fault(0, job.error).told;
  const sum = (name) => reports(job).reduce((total, report) => total + (report[name] || 0), 0);
  const files = ["added", "changed", "removed", "renamed", "unchanged"].filter(sum).map((name) => `${count(sum(name))} ${name}`);
  if (sum("documents_deleted")) return `Removed ${plural(sum("documents_deleted"), "document")}.`;
  return [...files, sum("pending") && `${plural(sum("pending"), "passage")} left to embed`].filter(Boolean).join(" · ") || "Nothing to do";
}

function details(report) {
  const files = (title, rows = [], open = false) => rows.length > 0 && h("details", { open },
    h("summary", `${title}: ${count(rows.length)}`),
    h("ul.files", rows.slice(0, MANY_FILES).map(({ path, reason, pages, pages_without_text: unread }) =>
      h("li", h("code", path), h("span.soft", reason ?? `${unread} of ${pages} pages hold no text`)))));
  return [
    files("Could not be read", report.failed, true), files("Read in part", report.partly_read), files("Skipped", report.skipped_files),
    report.degraded && h("p.note.warned", report.degraded),
  ];
}

async function documents(main, source, signal) {
  document.title = `${source} – Concord`;
  const list = h("ul.documents");
  const told = h("p.soft");
  let cursor = null;
  const next = async () => {
    const found = await api.get("/documents", { source, cursor }, signal);
    list.append(...found.documents.map((row) => h("li", h("a", { href: address({ at: row.path }) }, row.title || row.path),
      h("code", row.path), h("span.soft", [row.type, bytes(row.size), row.modified_at && ago(row.modified_at)].filter(Boolean).join(" · ")))));
    cursor = found.next_cursor;
    more.hidden = !cursor;
    told.textContent = `${count(list.children.length)} of ${plural(found.total, "document")}`;
  };
  const more = button("Show more", () => attempt(next()), ".edge", { hidden: true });
  main.replaceChildren(h("section.column", h("p", link({ view: NAME }, "← Sources")), h("h1", source), told, list, more));
  await next();
}
