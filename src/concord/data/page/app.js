// Where everything starts: the session, which view an address stands for, the keyboard and the theme.

import * as api from "./api.js";
import * as reading from "./document.js";
import { announce, button, h, icon, toast } from "./dom.js";
import * as health from "./health.js";
import * as search from "./search.js";
import * as sources from "./sources.js";
import { session } from "./session.js";

const main = document.getElementById("main");
const box = document.getElementById("q");
const VIEWS = { sources, health };
let current = null; // the view that is shown
let leaving = new AbortController(); // what it started ends when it is left

/** Go to an address of this page, given as its parameters. */
export function go(parameters, { replace = false } = {}) {
  const query = new URLSearchParams(parameters).toString();
  history[replace ? "replaceState" : "pushState"]({ inside: true }, "", query ? `/?${query}` : "/");
  return show();
}

async function show() {
  const parameters = new URLSearchParams(location.search);
  const view = parameters.has("at") ? reading : (VIEWS[parameters.get("view")] ?? search);
  const isSame = view === current;
  if (document.activeElement !== box) box.value = parameters.get("q") ?? "";
  if (!isSame || view !== search) leaving.abort();
  if (leaving.signal.aborted) leaving = new AbortController();
  current = view;
  document.body.dataset.view = view.NAME;
  for (const link of document.querySelectorAll("nav a")) {
    if (link.dataset.view === view.NAME) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  try {
    await view.show(main, parameters, { signal: leaving.signal, isSame, go });
  } catch (fault) {
    if (fault.name !== "AbortError") failed(fault);
  }
}

function failed(fault) {
  if (fault.status === 401) return signIn();
  if (fault.status === undefined) console.error(fault);
  main.replaceChildren(
    h("section.column.empty", h("h1", fault.status === 404 ? "Not found" : "That did not work"),
      h("p", { dir: "auto" }, fault.message), fault.hint && h("p.soft", { dir: "auto" }, fault.hint)),
  );
  announce(fault.message);
}

function signIn() {
  document.body.dataset.view = "sign-in";
  const field = h("input", { id: "token", type: "password", autocomplete: "off", required: true });
  const told = h("p.fault", { role: "alert" });
  const onsubmit = async (event) => {
    event.preventDefault();
    try {
      await enter({ token: field.value });
      await show();
    } catch (fault) {
      told.textContent = fault.message;
    }
  };
  main.replaceChildren(
    h("section.column.empty", h("h1", "This knowledge base asks who you are"),
      h("p", "On this machine, ", h("code", "kb ui"), " opens this page signed in. Elsewhere, enter the token you were given."),
      h("form.line", { onsubmit }, h("label", { for: "token" }, "Token"), field, h("button.primary", "Enter")), told),
  );
}

async function enter(secret) {
  Object.assign(session, secret ? await api.post("/session", secret) : await api.get("/session"));
}

function toggleTheme() {
  const isDark = getComputedStyle(document.documentElement).colorScheme === "dark" ||
    (!document.documentElement.dataset.theme && matchMedia("(prefers-color-scheme: dark)").matches);
  localStorage.setItem("theme", isDark ? "light" : "dark");
  document.documentElement.dataset.theme = isDark ? "light" : "dark";
}

function followLink(event) {
  const link = event.target.closest?.("a[href^='/?'], a[href='/']");
  if (!link || event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey || link.target) return;
  event.preventDefault();
  go(new URL(link.href).searchParams).then(() => current !== search && main.focus({ preventScroll: true }));
}

function pressed(event) {
  const isTyping = event.target.matches("input, textarea, select");
  if (event.key === "Escape") return escape();
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "/" && !isTyping) {
    event.preventDefault();
    box.focus();
    box.select();
  }
  const isBetween = (!isTyping || event.target === box) && !document.querySelector("dialog[open]");
  if (isBetween && (event.key === "ArrowDown" || event.key === "ArrowUp")) step(event, event.key === "ArrowDown" ? 1 : -1);
}

function step(event, by) {
  const links = [...document.querySelectorAll("[data-step]")];
  if (!links.length) return;
  const at = links.indexOf(document.activeElement.closest("[data-hit]")?.querySelector("[data-step]") ?? null);
  if (at < 0 && document.activeElement !== box && document.activeElement !== document.body && current !== search) return;
  event.preventDefault();
  if (at + by < 0) return box.focus();
  const next = links[Math.min(links.length - 1, at + by)];
  next.focus({ preventScroll: true });
  next.closest("[data-hit]").scrollIntoView({ block: "nearest" });
}

function escape() {
  const parameters = new URLSearchParams(location.search);
  if (document.querySelector("dialog[open]")) return; // it closes itself
  if (current !== search) return history.state?.inside ? history.back() : go({ q: parameters.get("q") ?? "" });
  if (document.activeElement === box && box.value) {
    box.value = "";
    search.typed("", { go, isSearching: true });
  }
  box.focus();
}

document.getElementById("theme").append(icon("theme"));
document.getElementById("theme").addEventListener("click", toggleTheme);
document.getElementById("ask").addEventListener("submit", (event) => {
  event.preventDefault();
  search.submitted();
});
box.addEventListener("input", () => search.typed(box.value, { go, isSearching: current === search }));
document.addEventListener("click", followLink);
document.addEventListener("keydown", pressed);
addEventListener("popstate", () => {
  box.blur();
  show();
});
addEventListener("storage", (event) => {
  if (event.key === "theme") document.documentElement.dataset.theme = event.newValue;
});
addEventListener("server-away", () => {
  const again = button("Try now", () => location.reload(), { look: "quiet" });
  document.getElementById("away").replaceChildren("The server does not answer. This page goes on when it is back.", again);
});
addEventListener("server-back", () => {
  document.getElementById("away").replaceChildren();
  toast("The server is back.");
  show();
});

async function start() {
  const code = new URLSearchParams(location.hash.slice(1)).get("code");
  if (code) history.replaceState(null, "", location.pathname + location.search);
  try {
    await enter(code && { code });
  } catch (fault) {
    if (fault.status === 401 && code) await enter().catch(failed); // used before: the cookie may still be good
    else failed(fault);
    if (fault.status === 401 && session.org === undefined) return;
  }
  await show();
}

start();
