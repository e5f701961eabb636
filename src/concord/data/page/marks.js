// Which words of a text are those of a query, and where in it the answer stands.

import { h } from "./dom.js";

const PIECES = /\p{Lu}*[\p{Ll}\p{M}]+|\p{Lu}+|\p{N}+|\p{Lo}+/gu; // getUserName is three
const LITTLE = new Set(
  "a an and are as at be by can could do does for from had has have how i if in into is it its me my no not of on or our should so than that the their them then there these they this to was we were what when where which who why will with would you your".split(" "),
);

const fold = (word) => word.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();
const stem = (word) => (word.length > 4 ? word.replace(/(ations?|ings?|ied|ies|ed|es|ers?|ly|s|e)$/, "") : word);

/** Return a function that tells which part of a piece of text is to be marked, as [first, end]. */
function matcher(query) {
  const asked = query.split(/\s+/).filter((word) => !/^-|^(AND|OR|NOT)$/.test(word)).join(" ");
  const all = (asked.match(PIECES) ?? []).map(fold);
  const telling = all.filter((word) => !LITTLE.has(word) && (word.length > 1 || /\p{Lo}|\p{N}/u.test(word)));
  const words = new Set((telling.length ? telling : all).map(stem));
  const typing = /[\p{L}\p{N}]$/u.test(asked) && telling.at(-1) === all.at(-1) ? all.at(-1) : null;
  return (piece) => {
    const folded = fold(piece);
    if (words.has(stem(folded)) || (typing?.length > 2 && folded.startsWith(typing))) return [0, piece.length];
    if (!/\p{Lo}/u.test(piece)) return null;
    const inside = [...words].find((word) => /\p{Lo}/u.test(word) && piece.includes(word));
    return inside ? [piece.indexOf(inside), piece.indexOf(inside) + inside.length] : null;
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
  return [...nodes, text.slice(told)].filter((node) => node !== "");
}

/** Return where `wanted` stands in `text`, however its white space is broken, as [first, end]. */
export function whereIs(wanted, text) {
  const pattern = wanted.trim().split(/\s+/).map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")).join("\\s+");
  const found = pattern && wanted.length < 2000 ? new RegExp(pattern).exec(text) : null;
  return found && [found.index, found.index + found[0].length];
}

/** Return the nodes of a text in which the words of a query are marked, and the answer as a whole. */
export function marked(text, query, answer = null) {
  const part = matcher(query);
  const span = answer && whereIs(answer, text);
  if (!span) return words(text, part);
  const [first, end] = span;
  const inside = h("mark.answer", words(text.slice(first, end), part));
  return [...words(text.slice(0, first), part), inside, ...words(text.slice(end), part)];
}

/** Mark the words of a query in what is shown already. */
export function markIn(root, query) {
  const part = matcher(query);
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  const texts = [];
  while (walker.nextNode()) texts.push(walker.currentNode);
  for (const node of texts) {
    const nodes = words(node.data, part);
    if (nodes.length > 1 || nodes[0] instanceof Element) node.replaceWith(...nodes);
  }
}
