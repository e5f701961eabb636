// The session, which view an address stands for, the keyboard.

import * as api from "./api.js";
import * as reading from "./document.js";
import { address, announce, h } from "./dom.js";
import * as health from "./health.js";
import * as search from "./search.js";
import * as sources from "./sources.js";

const main = document.getElementById("main");
const box = document.getElementById("q");
const VIEWS = { sources, health };
let current = null; // the view that is shown
let leaving = new AbortController(); // what a view started ends when it is left

const here = () => Object.fromEntries(new URLSearchParams(location.search));

export function go(state, { replace = false } = {}) {
  const typed = search.settled();
  if (typed && !replace) history.replaceState({ inside: true }, "", address(typed));
  history[replace ? "replaceState" : "pushState"]({ inside: true }, "", address(state));
  return show();
}

async function show() {
  const now = here();
  const view = now.at ? reading : (VIEWS[now.view] ?? search);
  if (document.activeElement !== box) box.value = now.q ?? "";
  if (view !== search || current !== search) {
    leaving.abort();
    leaving = new AbortController();
  }
  current = view;
  document.body.dataset.view = view.NAME;
  for (const link of document.querySelectorAll("nav [data-view]")) link.ariaCurrent = link.dataset.view === view.NAME ? "page" : null;
  try {
    await view.show(main, now, { signal: leaving.signal, go });
  } catch (fault) {
    if (fault.name !== "AbortError") failed(fault);
  }
}

function failed(fault) {
  if (fault.status === 401) return signIn();
  current = null;
  const title = fault.status === 404 ? "Not found" : "That did not work";
  main.replaceChildren(h("section.column", h("h1", title), h("p", fault.told ?? fault.message)));
  announce(fault.message);
}

function signIn() {
  const field = h("input", { type: "password", required: true });
  const told = h("p.fault", { role: "alert" });
  const onsubmit = (event) => {
    event.preventDefault();
    enter({ token: field.value }).then(show, (fault) => (told.textContent = fault.told));
  };
  main.replaceChildren(h("section.column", h("h1", "A token is needed"),
    h("p", "On this machine ", h("code", "kb ui"), " opens this page signed in."),
    h("form.line", { onsubmit }, h("label.field", "Token", field), h("button.primary", "Enter")), told));
}

const enter = async (secret) => Object.assign(api.session, secret ? await api.post("/session", secret) : await api.get("/session"));

function followLink(event) {
  const link = event.target.closest("a[href^='/']");
  if (!link || link.target || event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
  event.preventDefault();
  box.blur();
  go(Object.fromEntries(new URL(link.href).searchParams)).then(() => current === search || main.focus({ preventScroll: true }));
}

function pressed(event) {
  const isTyping = event.target.matches("input, select") && event.target !== box;
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  if (event.key === "Escape") escape();
  else if (event.key === "/" && !isTyping && event.target !== box) {
    event.preventDefault();
    box.select();
  } else if (event.key === "ArrowDown" && !isTyping) step(event, 1);
  else if (event.key === "ArrowUp" && !isTyping) step(event, -1);
}

/** Go from hit to hit, and from the first of them back to the question. */
function step(event, by) {
  const links = [...document.querySelectorAll("[data-step]")];
  const from = document.activeElement.closest("[data-hit]")?.querySelector("[data-step]");
  const at = links.indexOf(from) + by;
  if (!links.length || (!from && by < 0)) return;
  event.preventDefault();
  const next = at < 0 ? box : links[Math.min(at, links.length - 1)];
  next.focus({ preventScroll: true });
  (next.closest("[data-hit]") ?? main).scrollIntoView({ block: "nearest" });
}

function escape() {
  if (current !== search) return history.state?.inside ? history.back() : go({ q: here().q });
  if (document.activeElement === box) go({});
  box.value = here().q ?? "";
  box.focus();
}

async function start() {
  const code = new URLSearchParams(location.hash.slice(1)).get("code");
  if (code) history.replaceState(null, "", location.pathname + location.search);
  // A code that was used before is no fault where the session that it began goes on.
  await enter(code && { code }).catch((fault) => (code ? enter() : Promise.reject(fault)));
  const typed = search.settled(); // before we were ready
  await (typed ? go(typed, { replace: true }) : show());
}

document.getElementById("ask").addEventListener("submit", (event) => {
  event.preventDefault();
  document.querySelector("[data-step]")?.focus();
});
box.addEventListener("input", () => search.typed(box.value, current === search ? here() : {}, go));
document.addEventListener("click", followLink);
document.addEventListener("keydown", pressed);
addEventListener("popstate", () => {
  box.blur();
  show();
});
addEventListener("server-away", () => {
  document.getElementById("away").textContent = "The server does not answer. This page goes on when it is back.";
});
addEventListener("server-back", () => {
  document.getElementById("away").replaceChildren();
  show();
});
start().catch(failed);
