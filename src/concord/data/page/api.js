// The JSON API: one place that knows its address, its errors and whether the server answers.

const BASE = "/api/v1";
const RETRY_MS = 1500;
const { signal: never } = new AbortController();

export class Fault extends Error {
  constructor(status, { error = "Fault", message = "the server answered with nothing that can be read", hint = null } = {}) {
    super(message);
    Object.assign(this, { status, kind: error, hint });
  }
}

let away = false;

/** Whether the server answers is told to the page by the events `server-away` and `server-back` of window. */
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

function address(path, parameters) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters))
    for (const one of [value].flat()) if (one !== null && one !== undefined && one !== "") query.append(name, one);
  return `${BASE}${path}${query.size ? `?${query}` : ""}`;
}

async function request(method, path, { parameters = {}, body, accept = "application/json", signal = never } = {}) {
  const headers = { accept, ...(body !== undefined && { "content-type": "application/json" }) };
  let answer;
  try {
    answer = await fetch(address(path, parameters), { method, headers, signal, body: body && JSON.stringify(body) });
  } catch (fault) {
    if (fault.name === "AbortError") throw fault;
    isAway(true);
    throw new Fault(0, { error: "Away", message: "The server does not answer.", hint: "It may have been stopped: kb ui starts it." });
  }
  isAway(false);
  if (answer.ok) return answer;
  const fault = await answer.json().catch(() => ({}));
  throw new Fault(answer.status, fault);
}

const json = async (answer) => (answer.status === 204 ? null : answer.json());

export const get = async (path, parameters, signal) => json(await request("GET", path, { parameters, signal }));
export const post = async (path, body = {}, signal) => json(await request("POST", path, { body, signal }));
export const remove = async (path, parameters) => json(await request("DELETE", path, { parameters }));

/** Yield [event, data] of a stream of server-sent events until it ends. */
export async function* events(path, parameters, signal) {
  const answer = await request("GET", path, { parameters, signal, accept: "text/event-stream" });
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  for (let rest = "", told = await next(reader); told !== null; told = await next(reader)) {
    const blocks = (rest + told).replaceAll("\r\n", "\n").split("\n\n");
    rest = blocks.pop();
    for (const block of blocks) {
      const lines = block.split("\n");
      const of = (name) => lines.filter((line) => line.startsWith(`${name}:`)).map((line) => line.slice(name.length + 1).trimStart());
      if (of("data").length) yield [of("event")[0] ?? "message", JSON.parse(of("data").join("\n"))];
    }
  }
}

async function next(reader) {
  try {
    const { done, value } = await reader.read();
    return done ? null : value;
  } catch (fault) {
    if (fault.name !== "AbortError") isAway(true);
    throw fault;
  }
}

export const encoded = encodeURIComponent;
export const pageImage = (id, page, width) => address(`/documents/${encoded(id)}/pages/${page}.png`, { width });
