// A hit: what it says, how far to trust it, what can be done with it.

import * as api from "./api.js";
import { attempt, button, capital, facts, h, link, toast } from "./dom.js";
import { marked, plain } from "./marks.js";
import { finders, freshness, odds } from "./trust.js";

export function hitCard(hit, { now, answer, why }) {
  const crumbs = crumbsOf(hit);
  const title = link({ ...now, n: "", at: hit.citation }, h("bdi", marked(hit.title, now.q)));
  title.dataset.step = "";
  const more = hit.more_in_document > 0 && link({ ...now, n: "", path: hit.path }, `${hit.more_in_document} more here`);
  return h("li.hit.card", { "data-hit": hit.chunk_id },
    h("div.head", h("h2", title), answer.calibrated && odds(hit)),
    crumbs && h("p.crumbs", marked(crumbs, now.q)),
    snippet(hit, now.q, answer.answer?.rank === hit.rank && answer.answer.text),
    hit.warnings.map((warning) => h("p.note.warned", warning)),
    h("div.foot", place(hit), facts(finders(hit.found_by), freshness(hit), more),
      h("span.acts", opinions(hit, now.q), button("Why", () => why(hit.citation), ".quiet"))),
  );
}

export const crumbsOf = ({ heading, title }) => heading.filter((part) => part !== title).join(" › ");

function snippet(hit, query, answer) {
  const text = hit.snippet;
  if (hit.type === "code" || hit.type === "data") return h("p.snippet.code", marked(text, query, answer));
  return h("p.snippet", marked(plain(text), query, answer && plain(answer)));
}

export function place(hit) {
  const { editor: template } = api.session;
  const file = hit.file?.split("/").map(encodeURIComponent).join("/");
  const editor = file && template && template.replace("{file}", file).replace("{line}", hit.start_line ?? 1);
  const copy = async () => {
    await attempt(navigator.clipboard.writeText(hit.citation).then(() => toast(`Copied ${hit.citation}`)));
  };
  return h("span.place", h("code.citation", hit.citation), button("Copy", copy, ".quiet", { "aria-label": "Copy the citation" }),
    editor && h("a.quiet.button", { href: editor, "aria-label": "Open in the editor" }, "Editor"));
}

const OPINIONS = ["good", "bad"];
const given = new Map(); // opinions by question and passage: results are drawn anew while they come

function opinions(hit, query) {
  const key = `${query}\n${hit.citation}`;
  const group = h("span", { role: "group", "aria-label": "Was this good for the question?" });
  const mark = () => OPINIONS.forEach((one, at) => group.children[at].setAttribute("aria-pressed", String(given.get(key) === one)));
  const vote = (opinion) => async () => {
    const before = given.get(key);
    given.set(key, opinion);
    if (!(await attempt(api.post("/feedback", { reference: hit.citation, opinion, query })))) return given.set(key, before);
    mark();
  };
  group.append(...OPINIONS.map((opinion) => button(capital(opinion), vote(opinion), ".quiet", { "aria-label": `A ${opinion} result` })));
  mark();
  return group;
}
