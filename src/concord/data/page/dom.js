// Building elements. Text becomes text nodes and nothing else: no string is ever parsed as HTML here.

const SVG = "http://www.w3.org/2000/svg";
const ICONS = {
  copy: "M9 9h10v11H9z M5 15V4h10",
  open: "M14 4h6v6 M20 4l-9 9 M18 14v6H4V6h6",
  good: "M7 11v9H4v-9z M7 11l4-8c1.7 0 2.5 1 2.5 2.5L13 9h5.5c1.3 0 2.2 1.2 1.9 2.4l-1.6 7c-.2 1-1 1.6-2 1.6H7",
  bad: "M7 13V4H4v9z M7 13l4 8c1.7 0 2.5-1 2.5-2.5L13 15h5.5c1.3 0 2.2-1.2 1.9-2.4l-1.6-7c-.2-1-1-1.6-2-1.6H7",
  close: "M6 6l12 12 M18 6L6 18",
  theme: "M12 4v2 M12 18v2 M4 12h2 M18 12h2 M6.3 6.3l1.4 1.4 M16.3 16.3l1.4 1.4 M6.3 17.7l1.4-1.4 M16.3 7.7l1.4-1.4 M12 8.5a3.5 3.5 0 1 0 0 7 3.5 3.5 0 0 0 0-7",
  answered: "M5 12.5l4.5 4.5L19 7.5",
  probably: "M5 10c2.5-2.5 4.5-2.5 7 0s4.5 2.5 7 0 M5 16c2.5-2.5 4.5-2.5 7 0s4.5 2.5 7 0",
  absent: "M6 12h12",
  unknown: "M9 9a3 3 0 1 1 4.2 2.7c-.8.4-1.2 1-1.2 1.9v.6 M12 18v.1",
  folder: "M3 6h6l2 2h10v11H3z",
  back: "M15 5l-7 7 7 7",
  sync: "M20 11a8 8 0 0 0-14.5-4L4 9 M4 4v5h5 M4 13a8 8 0 0 0 14.5 4L20 15 M20 20v-5h-5",
};

/** Return an element: `h("p.soft", { dir: "auto" }, text, element, …)`; what is null or false is left out. */
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
  element.append(...parts.flat(9).filter((part) => part !== null && part !== undefined && part !== false && part !== ""));
  return element;
}

export function icon(name) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", "0 0 24 24");
  svg.setAttribute("aria-hidden", "true");
  svg.classList.add("icon");
  const path = svg.appendChild(document.createElementNS(SVG, "path"));
  path.setAttribute("d", ICONS[name]);
  return svg;
}

export function button(label, onclick, { look = "", symbol = null, text = true, ...more } = {}) {
  const name = text ? {} : { "aria-label": label, title: label };
  return h("button", { type: "button", class: look, onclick, ...name, ...more }, symbol && icon(symbol), text && label);
}

export function bar(share, label = null) {
  const fill = h("span", { class: "fill" });
  fill.style.width = `${Math.max(0, Math.min(1, share)) * 100}%`; // by CSSOM: the policy forbids style attributes
  return h("span", { class: "bar", role: label && "img", "aria-label": label, "aria-hidden": label ? null : "true" }, fill);
}

export const percent = (share) => (share > 0.99 && share < 1 ? "> 99 %" : `${Math.round(share * 100)} %`);
export const count = (n) => Number(n).toLocaleString("en");
export const plural = (n, noun) => `${count(n)} ${noun}${n === 1 ? "" : "s"}`;

export function ago(moment) {
  if (!moment) return "never";
  const s = (Date.now() - new Date(moment)) / 1000;
  for (const [unit, size] of [["year", 31557600], ["month", 2629800], ["day", 86400], ["hour", 3600], ["minute", 60]])
    if (s >= size) return `${plural(Math.floor(s / size), unit)} ago`;
  return "just now";
}

export function bytes(n) {
  for (const unit of ["B", "kB", "MB"]) {
    if (n < 1000) return `${n < 10 && unit !== "B" ? n.toFixed(1) : Math.round(n)} ${unit}`;
    n /= 1000;
  }
  return `${n.toFixed(1)} GB`;
}

export function announce(text) {
  document.getElementById("status").textContent = text;
}

let fading;
export function toast(text) {
  const note = document.getElementById("toast");
  note.textContent = text;
  note.classList.add("shown");
  clearTimeout(fading);
  fading = setTimeout(() => note.classList.remove("shown"), 2600);
}

export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    toast(`Copied ${text}`);
  } catch {
    toast(`The browser did not let us copy. Here it is: ${text}`);
  }
}
