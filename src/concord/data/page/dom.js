// Building elements. Text becomes text nodes: no string is ever parsed as HTML here.

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

export const button = (label, onclick, look = "", more = {}) => h(`button${look}`, { type: "button", onclick, ...more }, label);

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

export const ago = (moment) => new Intl.RelativeTimeFormat("en", { numeric: "auto" }).format(Math.ceil((new Date(moment) - Date.now()) / 864e5), "day");

let fading = 0;

export function toast(text, shown = "shown") {
  const note = document.getElementById("toast");
  note.textContent = text;
  note.className = shown;
  clearTimeout(fading);
  fading = setTimeout(() => (note.className = ""), 3000);
}
export const announce = (text) => toast(text, "");

export async function attempt(promise) {
  try {
    return await promise;
  } catch (fault) {
    if (fault.name !== "AbortError") toast(fault.told ?? fault.message);
  }
}
