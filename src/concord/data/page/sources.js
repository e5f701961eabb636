// The sources: what there is, what is being read, what could not be, and adding, bringing up to date, removing.

import * as api from "./api.js";
import { go } from "./app.js";
import { ago, announce, bar, button, bytes, count, h, icon, plural, toast } from "./dom.js";
import { session } from "./session.js";

export const NAME = "sources";

const AGAIN_MS = 1500;
const MANY_FILES = 200;

export async function show(main, parameters, { signal }) {
  if (parameters.get("source")) return documents(main, parameters.get("source"), signal);
  document.title = "Sources – Concord";
  const [work, list] = [h("div.work", { "aria-live": "polite" }), h("div.cards")];
  main.replaceChildren(h("section.column",
    h("div.head", h("h1", "Sources"), button("Sync all", () => started(api.post("/sync")), { symbol: "sync" })),
    addForm(), work, list));
  await listed(list, signal);
  follow(work, list, signal);
}

async function listed(list, signal) {
  const { sources } = await api.get("/sources", {}, signal);
  list.replaceChildren(...sources.map(card));
  if (!sources.length) list.append(h("p.soft", "There are none yet. Name a folder above."));
}

function card(row) {
  const name = api.encoded(row.source);
  const left = row.chunks - row.vectors;
  return h("article.card.source", { "data-source": row.source },
    h("div.head",
      h("h2", h("a", { href: `/?${new URLSearchParams({ view: NAME, source: row.source })}` }, h("bdi", row.source))),
      h("span.acts",
        row.kind !== "notes" && button("Sync", () => started(api.post(`/sources/${name}/sync`)), { "aria-label": `Sync ${row.source}` }),
        button("Remove", () => confirmRemoval(row), { look: "quiet", "aria-label": `Remove ${row.source}` }))),
    row.about && h("p", { dir: "auto" }, row.about),
    row.path && h("p.path", { dir: "ltr" }, row.path),
    h("p.facts",
      [plural(row.documents, "document"), plural(row.chunks, "passage"), row.synced_at && `read ${ago(row.synced_at)}`, row.patterns.join(" "), row.tags.map((tag) => `#${tag}`).join(" ")]
        .filter(Boolean).map((fact) => h("span", fact)),
      row.trust === "untrusted" && h("span.warned", "untrusted")),
    left > 0 && h("p.note", `${plural(left, "passage")} left to embed: words find them, meaning does not yet.`));
}

export function addForm() {
  const id = `add-${Math.random().toString(36).slice(2, 8)}`;
  const field = (name, label, placeholder, required = false) =>
    h("div.field", h("label", { for: `${id}-${name}` }, label), h("input", { id: `${id}-${name}`, name, placeholder, required, autocomplete: "off", spellcheck: "false" }));
  const fault = h("p.fault", { role: "alert", dir: "auto" });
  const list = (text) => text.split(",").map((part) => part.trim()).filter(Boolean);
  const onsubmit = async (event) => {
    event.preventDefault();
    const { path, name, patterns, tags } = Object.fromEntries(new FormData(event.target));
    fault.textContent = "";
    try {
      await api.post("/sources", { path: path.trim(), ...(name.trim() && { name: name.trim() }), patterns: list(patterns), tags: list(tags) });
      event.target.reset();
      announce(`Reading ${path}`);
      if (document.body.dataset.view !== NAME) await go({ view: NAME });
    } catch (problem) {
      fault.textContent = [problem.message, problem.hint].filter(Boolean).join(" – ");
    }
  };
  return h("form.card.add", { onsubmit },
    h("div.line", field("path", "Folder or file", session.roots[0] ?? "/home/me/notes", true), h("button.primary", icon("folder"), "Add")),
    h("details", h("summary", "Name, patterns, tags"),
      h("div.line", field("name", "Name", "its folder's name"), field("patterns", "Only files like", "**/*.md, **/*.txt"), field("tags", "Tags", "work, draft"))),
    session.roots.length > 0 && h("p.soft", "Within ", session.roots.map((root, at) => [at ? ", " : "", h("code", root)])),
    fault);
}

async function started(promise) {
  try {
    await promise;
  } catch (fault) {
    toast([fault.message, fault.hint].filter(Boolean).join(" – "));
  }
}

function confirmRemoval(row) {
  const close = () => dialog.close();
  const sure = () => {
    started(api.remove(`/sources/${api.encoded(row.source)}`));
    close();
  };
  const dialog = h("dialog.ask", { "aria-labelledby": "sure", onclose: () => dialog.remove() },
    h("h2", { id: "sure" }, "Remove ", h("bdi", row.source), "?"),
    h("p", `${plural(row.documents, "document")} will no longer be found. `, row.kind === "notes" ? "Notes are kept nowhere else." : "The files stay where they are."),
    h("div.line.end", button("Cancel", close), button("Remove", sure, { look: "danger" })));
  document.body.append(dialog);
  dialog.showModal();
}

/** Show the work that is under way, as the server tells of it, until this view is left. */
async function follow(work, list, signal) {
  let before = new Map();
  while (!signal.aborted) {
    try {
      for await (const [event, data] of api.events("/events", {}, signal)) {
        if (event !== "jobs") continue;
        work.replaceChildren(...data.jobs.toReversed().map((job) => jobRow(job, before.get(job.id))));
        const ended = data.jobs.filter((job) => isOver(job) && before.size && !isOver(before.get(job.id) ?? {}));
        before = new Map(data.jobs.map((job) => [job.id, job]));
        if (ended.length) await listed(list, signal);
      }
    } catch (fault) {
      if (fault.name === "AbortError") return;
    }
    await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
  }
}

const isOver = (job) => ["done", "failed", "stopped"].includes(job.state);

function jobRow(job) {
  const told = isOver(job) ? outcome(job) : `${job.stage || job.state}${job.total ? ` ${count(job.done)} of ${count(job.total)}` : job.done ? ` ${count(job.done)}` : ""}`;
  return h("article", { class: `card job ${job.state}`, "data-job": job.id },
    h("div.head", h("h2", { dir: "auto" }, job.label),
      !isOver(job) && button("Stop", () => started(api.remove(`/jobs/${job.id}`)), { look: "quiet" })),
    !isOver(job) && bar(job.total ? job.done / job.total : 0.05, `${job.label}: ${told}`),
    h("p", { class: job.state === "failed" ? "fault" : "facts", dir: "auto" }, told),
    job.result && reports(job.result).map(details));
}

const reports = (result) => result.sources ?? [result];

function outcome({ state, error, result }) {
  if (error) return [error.message, error.hint].filter(Boolean).join(" – ");
  if (state === "stopped") return "Stopped. What was read stays.";
  const sum = (name) => reports(result ?? {}).reduce((total, report) => total + (Number(report[name]) || 0), 0);
  const told = ["added", "changed", "removed", "renamed", "unchanged"].filter((name) => sum(name)).map((name) => `${count(sum(name))} ${name}`);
  if (result?.documents_deleted !== undefined) return `Removed ${plural(result.documents_deleted, "document")}.`;
  if (sum("pending")) told.push(`${plural(sum("pending"), "passage")} left to embed`);
  return told.join(" · ") || "Nothing to do";
}

function details(report) {
  const files = (title, rows, look) => rows?.length > 0 && h("details", { class: look, open: look === "failures" && rows.length < 9 },
    h("summary", `${title}: ${count(rows.length)}`),
    h("ul.files", rows.slice(0, MANY_FILES).map((row) => h("li", h("code", { dir: "ltr" }, row.path), h("span", { dir: "auto" }, row.reason ?? `${row.pages_without_text} of ${row.pages} pages hold no text`)))));
  return [
    files("Could not be read", report.failed, "failures"),
    files("Read in part", report.partly_read, "partly"),
    files("Skipped", report.skipped_files, "skipped"),
    report.degraded && h("p.note.warned", { dir: "auto" }, report.degraded),
  ];
}

async function documents(main, source, signal) {
  document.title = `${source} – Concord`;
  const list = h("ul.documents");
  const told = h("p.soft");
  const more = button("Show more", () => next(), { hidden: true });
  let cursor = null;
  const next = async () => {
    const found = await api.get("/documents", { source, cursor }, signal);
    list.append(...found.documents.map((row) => h("li",
      h("a", { href: `/?${new URLSearchParams({ at: row.path })}`, dir: "auto" }, row.title || row.path),
      h("code", { dir: "ltr" }, row.path), h("span.soft", `${row.type} · ${bytes(row.size)} · ${ago(row.modified_at)}`))));
    cursor = found.next_cursor;
    more.hidden = !cursor;
    told.textContent = `${count(list.children.length)} of ${plural(found.total, "document")}`;
  };
  main.replaceChildren(h("section.column", h("a.back", { href: `/?view=${NAME}` }, "← Sources"), h("h1", { dir: "auto" }, source), told, list, more));
  await next();
}
