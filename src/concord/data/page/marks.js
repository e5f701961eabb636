// Which words of a text are those of a query, and where the answer stands.

import { h } from "./dom.js";

const PIECES = /\p{Lu}*[\p{Ll}\p{M}]+|\p{Lu}+|\p{N}+|\p{Lo}+/gu; // getUserName is three
const LITTLE = new Set(
  "a an and are as at be by can do does for from has have how i if in is it my not of on or that the this to was what when where which who why with you".split(" "),
);

const fold = (word) => word.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();
const stem = (word) => (word.length > 4 ? word.replace(/(ations?|ings?|ied|ies|ed|es|ers?|ly|s|e)$/, "") : word);

/** Return a function that tells which part of a piece of text is to be marked, as [first, end]. */
function matcher(query) {
  const asked = query.split(/\s+/).filter((word) => !/^-|^(AND|OR|NOT)$/.test(word)).join(" ");
  const all = (asked.match(PIECES) ?? []).map(fold);
  const telling = all.filter((word) => !LITTLE.has(word));
  const words = new Set((telling.length ? telling : all).map(stem));
  const typing = telling.at(-1) ?? "";
  return (piece) => {
    const folded = fold(piece);
    if (words.has(stem(folded)) || (typing.length > 2 && folded.startsWith(typing))) return [0, piece.length];
    const inside = /\p{Lo}/u.test(piece) && [...words].find((word) => piece.includes(word)); // no spaces between words
    return inside && [piece.indexOf(inside), piece.indexOf(inside) + inside.length];
  };
}

function words(text, part) {
  const nodes = [];
  let told = 0;
  for (const found of text.matchAll(PIECES)) {
    const span = part(found[0]);
    if (!span) continue;
    nodes.push(text.slice(told, found.index + span[0]), h("mark", found[0].slice(...span)));
    told = found.index + span[1];
  }
  return [...nodes, text.slice(told)].filter(Boolean);
}

/** Return a few lines of Markdown as plain text; lines become one but where an item of a list begins. */
export function plain(text) {
  const bare = text.replace(/^(#+ |```.*|~~~.*|> ?)|[`*]{1,3}(?=\S)|(?<=\S)[`*]{1,3}/gm, "");
  return bare.replace(/\n(?![\n\s]*([-+|]|\d+\.) )/g, " ").trim();
}

export function marked(text, query, answer) {
  const part = matcher(query);
  const at = answer ? text.indexOf(answer) : -1;
  const [first, end] = at < 0 ? [text.length, text.length] : [at, at + answer.length];
  const inside = end > first && h("mark.answer", words(text.slice(first, end), part));
  return [words(text.slice(0, first), part), inside, words(text.slice(end), part)];
}

export function markIn(root, query) {
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  const texts = [];
  while (walker.nextNode()) texts.push(walker.currentNode);
  for (const node of texts) node.replaceWith(...words(node.data, matcher(query)));
}
