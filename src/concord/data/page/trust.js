// How far to trust an answer or a hit, as a person says it, with the number behind it.

import { bar, h, icon, percent } from "./dom.js";

const SURE = 0.8; // from here on an answer is called answered, below it probably

function kind({ answerable, confidence_score: sure, returned }, isPreliminary) {
  if (isPreliminary) return ["unknown", "Still looking", "These were found by their words. Meaning is being asked."];
  if (!returned) return ["absent", "Not in here", "Nothing that is indexed matches."];
  if (answerable === null || sure === null)
    return ["unknown", "Not judged", "How far to trust these is not known for this way of searching."];
  if (!answerable) return ["absent", "Not in here", "The answer is probably not in what is indexed. This is the nearest."];
  const told = `Of answers like this, ${percent(sure)} hold what was asked for.`;
  return sure >= SURE ? ["answered", "Answered", told] : ["probably", "Probably", told];
}

export function verdict(answer, isPreliminary = false) {
  const [symbol, name, told] = kind(answer, isPreliminary);
  const number = !isPreliminary && answer.returned > 0 && answer.confidence_score !== null;
  const element = h("p", { class: `verdict ${symbol}` },
    h("span.badge", icon(symbol), name, number && h("span.number", percent(answer.confidence_score))),
    h("span.told", told));
  return { name, element };
}

const WORDS = { very_high: "almost certainly", high: "very likely", medium_high: "likely", medium: "perhaps", low: "hardly", speculative: "a guess" };

/** How likely a hit is relevant: a bar, the number and words for it. */
export function odds(hit, isCalibrated) {
  if (!isCalibrated) return null;
  const told = WORDS[hit.confidence] ?? "not judged";
  return h("span.odds", { title: `${percent(hit.score)} of hits like this one are relevant: ${told}` },
    bar(hit.score), h("span.number", percent(hit.score)), h("span.hidden", ` relevant, ${told}`));
}

const LEGS = [[/^fts_exact/, "exact words"], [/^fts|words/, "words"], [/semantic|meaning/, "meaning"]];

/** Who found a hit; loose words are not told of where exact ones found it too. */
export function finders(strategies) {
  const names = strategies.map((name) => LEGS.find(([pattern]) => pattern.test(name))?.[1] ?? name.replaceAll("_", " "));
  return [...new Set(names)].filter((name) => name !== "words" || !names.includes("exact words")).join(" + ");
}

const FRESH = { fresh: "up to date", changed: "changed since it was indexed", deleted: "its file is gone" };

export function freshness(state, replacedBy) {
  if (replacedBy) return h("span.warned", "superseded");
  return state && h("span", { class: state === "fresh" ? "fresh" : "warned" }, FRESH[state] ?? state);
}
