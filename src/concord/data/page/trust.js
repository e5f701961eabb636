// How far to trust an answer or a hit, as a person says it.

import { bar, h, percent } from "./dom.js";

const SURE = 0.8; // from here on an answer is called answered, below it probably

function judged({ answerable, confidence_score: sure, returned }, isPreliminary) {
  if (isPreliminary) return ["unknown", "Still looking", "Found by words. Meaning is being asked."];
  if (!returned) return ["absent", "Not in here", "Nothing that is indexed matches."];
  if (answerable === null || sure === null) return ["unknown", "Not judged", "How far to trust these is not known."];
  if (!answerable) return ["absent", "Not in here", "The answer is probably not in what is indexed. This is nearest.", sure];
  const told = `Of answers like this, ${percent(sure).replace(">", "more than")} hold what was asked for.`;
  return sure >= SURE ? ["answered", "Answered", told, sure] : ["probably", "Probably", told, sure];
}

export function verdict(answer, isPreliminary) {
  const [look, name, told, sure] = judged(answer, isPreliminary);
  const number = sure !== undefined && h("span.number", percent(sure));
  return { name, element: h(`p.verdict.${look}`, h("span.badge", name, number), h("span.soft", told)) };
}

export const odds = (hit) =>
  h("span.odds", { title: `${percent(hit.score)} of hits like this one are relevant` },
    bar(hit.score), h("span.number", percent(hit.score)), h("span.hidden", " likely to be relevant"));

export function finders(strategies) {
  const names = strategies.map((name) => (name === "semantic" ? "meaning" : name.startsWith("fts") ? "words" : name));
  const isLoose = strategies.includes("fts_relaxed") && !strategies.includes("fts_exact");
  return [...new Set(names)].join(" + ").replace("words", isLoose ? "some words" : "words");
}

const STATES = { fresh: "up to date", changed: "changed since it was indexed", deleted: "its file is gone" };

export function freshness({ freshness: state, superseded_by: newer }) {
  if (newer) return h("span.warned", "superseded");
  return state && h(state === "fresh" ? "span" : "span.warned", STATES[state]);
}
