// The JSON API: its address, its errors, and whether the server answers.

const BASE = "/api/v1";
const RETRY_MS = 1500;
const WORDS = { doctor: "Health", stats: "Health", search: "Search" };

export class Fault extends Error {
  constructor(status, { error = "", message = "The server's answer cannot be read.", hint = "" } = {}) {
    super(message);
    Object.assign(this, { status, error, hint, told: inWords([message, hint].filter(Boolean).join(" – ")) });
  }
}

export const session = { roots: [], editor: "" };

export const inWords = (text) => text.replace(/(GET|POST|DELETE|PATCH) \/api\/v1\/(\w+)[^\s,;)]*/g, (_, method, what) => WORDS[what] ?? "Sources");

let away = false;

/** Whether the server answers: the events `server-away` and `server-back` of window tell. */
function isAway(value) {
  if (away === value) return;
  away = value;
  dispatchEvent(new Event(value ? "server-away" : "server-back"));
  if (value) setTimeout(look, RETRY_MS);
}

async function look() {
  const answer = await fetch("/health", { cache: "no-store" }).catch(() => null);
  if (answer?.ok) isAway(false);
  else setTimeout(look, RETRY_MS);
}

function address(path, options) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(options ?? {})) for (const one of [value].flat()) if (one) query.append(name, one);
  return `${BASE}${path}${query.size ? `?${query}` : ""}`;
}

async function request(method, url, { body, accept = "application/json", signal } = {}) {
  const headers = { accept, ...(body && { "content-type": "application/json" }) };
  let answer;
  try {
    answer = await fetch(url, { method, headers, signal, body: body && JSON.stringify(body) });
  } catch (fault) {
    if (fault.name === "AbortError") throw fault;
    isAway(true);
    throw new Fault(0, { message: "The server does not answer." });
  }
  isAway(false);
  if (!answer.ok) throw new Fault(answer.status, await answer.json().catch(() => ({})));
  return answer;
}

export const get = async (path, options, signal) => (await request("GET", address(path, options), { signal })).json();
export const post = async (path, body = {}) => (await request("POST", BASE + path, { body })).json();
export const remove = async (path) => (await request("DELETE", BASE + path)).json();
export const pageImage = (id, page, options) => address(`/documents/${id}/pages/${page}.png`, options);

export async function* events(path, options, signal) {
  const answer = await request("GET", address(path, options), { signal, accept: "text/event-stream" });
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (let { done, value } = await reader.read(); !done; { done, value } = await reader.read()) {
      const blocks = (rest + value).replaceAll("\r\n", "\n").split("\n\n");
      rest = blocks.pop();
      for (const block of blocks) {
        const fields = Object.fromEntries(block.split("\n").map((line) => line.split(/: ?(.*)/s)));
        if (fields.data) yield [fields.event, JSON.parse(fields.data)];
      }
    }
  } catch (fault) {
    if (fault instanceof TypeError) isAway(true); // the connection broke
    throw fault;
  }
}
