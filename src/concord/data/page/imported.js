// Rendered documents come as HTML. What is taken from it: elements and attributes of this list, nothing else.

const ELEMENTS = new Set("P H1 H2 H3 H4 H5 H6 UL OL LI PRE CODE SPAN EM STRONG S BLOCKQUOTE TABLE THEAD TBODY TR TH TD HR BR A DIV".split(" "));
const ATTRIBUTES = ["class", "data-first", "data-last", "start"];

/** Return the nodes of a rendered part, built anew; links within the knowledge base lead to it. */
export function imported(html, path) {
  const parsed = new DOMParser().parseFromString(html, "text/html"); // inert: nothing runs, nothing is loaded
  const result = document.createDocumentFragment();
  result.append(...[...parsed.body.childNodes].map((node) => rebuilt(node, path)));
  return result;
}

function rebuilt(node, path) {
  if (node.nodeType === Node.TEXT_NODE) return node.data;
  if (node.nodeType !== Node.ELEMENT_NODE) return "";
  const children = [...node.childNodes].map((child) => rebuilt(child, path));
  const element = ELEMENTS.has(node.tagName) ? document.createElement(node.tagName) : document.createDocumentFragment();
  element.append(...children);
  if (!(element instanceof Element)) return element;
  for (const name of ATTRIBUTES) if (node.hasAttribute(name)) element.setAttribute(name, node.getAttribute(name));
  if (node.tagName === "TABLE") return framed(element);
  return node.tagName === "A" ? linked(element, node.getAttribute("href"), path) : element;
}

function framed(table) {
  const frame = document.createElement("div"); // a wide table scrolls by itself, and by the keyboard
  Object.assign(frame, { className: "wide", tabIndex: 0 });
  frame.append(table);
  return frame;
}

function linked(element, href, path) {
  if (/^(https?|mailto):/i.test(href ?? "")) {
    element.setAttribute("href", href);
    element.setAttribute("target", "_blank");
    element.setAttribute("rel", "noreferrer noopener");
  } else if (href && !/^[a-z][a-z0-9+.-]*:|^[\\/]{2}/i.test(href) && !href.startsWith("#")) {
    const to = new URL(href, `http://base/${path.split("/").map(encodeURIComponent).join("/")}`);
    element.setAttribute("href", `/?${new URLSearchParams({ at: decodeURIComponent(to.pathname.slice(1)) })}`);
  }
  return element;
}
