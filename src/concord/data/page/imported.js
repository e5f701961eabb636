// Rendered documents come as HTML. What is taken from it: the elements and attributes named here, nothing else.

import { address } from "./dom.js";

const ELEMENTS = new Set("P H1 H2 H3 H4 H5 H6 UL OL LI PRE CODE SPAN EM STRONG S BLOCKQUOTE TABLE THEAD TBODY TR TH TD HR BR A".split(" "));
const ATTRIBUTES = ["class", "data-first", "data-last", "start"];

/** Return the nodes of a rendered part, built anew; links within the knowledge base lead to it. */
export function imported(html, path) {
  const parsed = new DOMParser().parseFromString(html, "text/html"); // inert: nothing runs, nothing is loaded
  return [...parsed.body.childNodes].map((node) => rebuilt(node, path));
}

function rebuilt(node, path) {
  if (node.nodeType !== Node.ELEMENT_NODE) return node.data ?? "";
  const element = ELEMENTS.has(node.tagName) ? document.createElement(node.tagName) : document.createDocumentFragment();
  element.append(...[...node.childNodes].map((child) => rebuilt(child, path)));
  if (!ELEMENTS.has(node.tagName)) return element;
  for (const name of ATTRIBUTES) if (node.hasAttribute(name)) element.setAttribute(name, node.getAttribute(name));
  if (node.tagName === "A") follow(element, node.getAttribute("href") ?? "", path);
  if (node.tagName !== "TABLE") return element;
  const frame = document.createElement("div"); // a wide table scrolls by itself, also by the keyboard
  frame.className = "wide";
  frame.tabIndex = 0;
  frame.append(element);
  return frame;
}

function follow(link, href, path) {
  if (/^(https?|mailto):/i.test(href)) {
    Object.assign(link, { href, target: "_blank", rel: "noreferrer" });
  } else if (!/^([a-z][a-z0-9+.-]*:|[\\/#]|$)/i.test(href)) {
    const { pathname } = new URL(href, `http://base/${path.split("/").map(encodeURIComponent).join("/")}`);
    link.href = address({ at: decodeURIComponent(pathname.slice(1)) });
  }
}
