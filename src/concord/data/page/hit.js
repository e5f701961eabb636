// A hit: what it says, where it stands, how far to trust it, and what can be done with it.

import * as api from "./api.js";
import { button, copy, h, icon, plural, toast } from "./dom.js";
import { marked } from "./marks.js";
import { editorAddress } from "./session.js";
import { finders, freshness, odds } from "./trust.js";

const MOST_SHOWN = 1500; // characters of a snippet: a word may have ten thousand

export function hitCard(hit, { query, answer, parameters, why }) {
  const to = new URLSearchParams(parameters);
  to.delete("n");
  to.set("at", hit.citation);
  const crumbs = hit.heading.filter((part) => part !== hit.title).join(" › ");
  const title = h("a", { href: `/?${to}`, "data-step": "" }, h("bdi", marked(hit.title, query)));
  return h("li.hit.card", { "data-hit": hit.chunk_id },
    h("div.head", h("h2", title), odds(hit, answer.calibrated)),
    crumbs && h("p.crumbs", { dir: "auto" }, marked(crumbs, query)),
    snippet(hit, query, answer.answer?.text),
    hit.warnings.map((warning) => h("p.note.warned", { dir: "auto" }, warning)),
    h("div.foot", place(hit), facts(hit), h("span.acts", opinions(hit, query), button("Why", () => why(hit.citation), { look: "quiet" }))),
  );
}

function snippet(hit, query, wanted) {
  const text = hit.snippet.slice(0, MOST_SHOWN);
  const isCode = hit.type === "code" || hit.type === "data";
  const lines = isCode ? text : text.replace(/^(#{1,6} |```.*|~~~.*|\s*[-*] {1,3}|> ?)/gm, "").replace(/\n{2,}/g, "\n");
  return h("p", { class: isCode ? "snippet code" : "snippet", dir: "auto" }, marked(lines.trim(), query, wanted));
}

/** The citation, with what can be done with it. */
export function place(hit) {
  const editor = editorAddress(hit.file, hit.start_line);
  return h("span.place",
    h("code.citation", { dir: "ltr" }, hit.citation),
    button("Copy the citation", () => copy(hit.citation), { look: "bare", symbol: "copy", text: false }),
    editor && h("a.bare", { href: editor, title: "Open in the editor", "aria-label": "Open in the editor" }, icon("open")));
}

function facts(hit) {
  const more = hit.more_in_document && `${hit.more_in_document} more in this document`;
  const also = hit.also_at.length && h("span", { title: hit.also_at.join("\n") }, `also in ${plural(hit.also_at.length, "other place")}`);
  return h("span.facts", [finders(hit.found_by), freshness(hit.freshness, hit.superseded_by), more, also]
    .filter(Boolean).map((fact) => (typeof fact === "string" ? h("span", fact) : fact)));
}

function opinions(hit, query) {
  const group = h("span", { role: "group", "aria-label": "Was this good for the question?" });
  const vote = async (opinion, pressed) => {
    try {
      await api.post("/feedback", { reference: hit.citation, opinion, query });
      for (const other of group.children) other.setAttribute("aria-pressed", String(other === pressed));
      toast(opinion === "good" ? "Noted: a good result for this question." : "Noted: not what this question meant.");
    } catch (fault) {
      toast(fault.message);
    }
  };
  for (const [opinion, label] of [["good", "Good result"], ["bad", "Bad result"]])
    group.append(button(label, (event) => vote(opinion, event.currentTarget), { look: "bare", symbol: opinion, text: false, "aria-pressed": "false" }));
  return group;
}
