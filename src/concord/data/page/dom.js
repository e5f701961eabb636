// Building elements. Text becomes text nodes and nothing else: no string is ever parsed as HTML here.

const ICONS = {
  copy: "M9 9h10v11H9zM5 15V4h10",
  open: "M14 4h6v6M20 4l-9 9M18 14v6H4V6h6",
  good: "M7 11v9H4v-9zl4-8c1.7 0 2.5 1 2.5 2.5L13 9h5.5c1.3 0 2.2 1.2 1.9 2.4l-1.6 7c-.2 1-1 1.6-2 1.6H7",
  bad: "M7 13V4H4v9zl4 8c1.7 0 2.5-1 2.5-2.5L13 15h5.5c1.3 0 2.2-1.2 1.9-2.4l-1.6-7c-.2-1-1-1.6-2-1.6H7",
  close: "M6 6l12 12M18 6L6 18",
};

/** Return an element: `h("p.soft", text, element, …)`; what is null or false is left out. */
export function h(name, ...parts) {
  const [tag, ...classes] = name.split(".");
  const element = document.createElement(tag);
  if (classes.length) element.className = classes.join(" ");
  const attributes = parts[0]?.constructor === Object ? parts.shift() : {};
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (key in element && typeof value !== "string") element[key] = value;
    else element.setAttribute(key, value);
  }
  element.append(...parts.flat(9).filter((part) => part || part === 0));
  return element;
}

export function svg(name, attributes, ...parts) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...parts);
  return element;
}
export const icon = (name) => svg("svg", { viewBox: "0 0 24 24", class: "icon", "aria-hidden": "true" }, svg("path", { d: ICONS[name] }));

export const button = (label, onclick, look = "", more = {}) => h(`button${look}`, { type: "button", onclick, ...more }, label);

/** A button with a symbol, whose name is for those who hover or listen. */
export const symbol = (name, label, onclick, more = {}) =>
  h("button.bare", { type: "button", onclick, "aria-label": label, title: label, ...more }, icon(name));

/** The address of a state of this page: what is in it and not empty. */
export function address(state) {
  const told = new URLSearchParams(Object.entries(state).filter(([, value]) => value));
  return told.size ? `/?${told}` : "/";
}
export const link = (state, ...parts) => h("a", { href: address(state) }, ...parts);

export function bar(share, label) {
  const fill = h("span.fill");
  fill.style.width = `${Math.max(0, Math.min(1, share)) * 100}%`; // by CSSOM: the policy forbids style attributes
  return h("span.bar", label ? { role: "img", "aria-label": label } : { "aria-hidden": "true" }, fill);
}

export const bars = (rows) =>
  h("ul.bars", rows.map(([name, share, told, look = ""]) => h(`li${look}`, h("span", name), bar(share), h("span.number", told))));

export const percent = (share) => (share > 0.99 && share < 1 ? "> 99 %" : `${Math.round(share * 100)} %`);
export const count = (n) => n.toLocaleString("en");
export const plural = (n, noun) => `${count(n)} ${noun}${n === 1 ? "" : "s"}`;
export const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);
export const facts = (...told) => h("span.facts", told.filter(Boolean).map((fact) => (fact instanceof Node ? fact : h("span", fact))));

export function ago(moment) {
  const seconds = (Date.now() - new Date(moment)) / 1000;
  for (const [unit, size] of [["year", 31557600], ["month", 2629800], ["day", 86400], ["hour", 3600], ["minute", 60]])
    if (seconds >= size) return `${plural(Math.floor(seconds / size), unit)} ago`;
  return "just now";
}

let fading = 0;

/** Tell those who listen, and show it for a while. */
export function toast(text, shown = "shown") {
  const note = document.getElementById("toast");
  note.textContent = text;
  note.className = shown;
  clearTimeout(fading);
  fading = setTimeout(() => (note.className = ""), 3000);
}
export const announce = (text) => toast(text, "");

/** Wait for what a button began; if it fails, say why. */
export async function attempt(promise) {
  try {
    return await promise;
  } catch (fault) {
    if (fault.name !== "AbortError") toast(fault.told ?? fault.message);
  }
}
