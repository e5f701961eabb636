"""A Qdrant server for tests: its real engine, in this process, behind the part of its HTTP interface we use.

Faults are switched on from outside: `status` answers everything with that error, `gate` holds answers back
until it is set, `mangle` changes an answer before it is sent, `stop` and `start` take the port away and back.
"""

from __future__ import annotations

import json
import re
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import qdrant_edge as edge

from support.scratch import scratch


class QdrantShim:
    """One server with its collections, which outlive a stop."""

    def __init__(self) -> None:
        self._place = scratch()
        self.folder = Path(self._place.name)
        self.shards: dict[str, tuple[edge.EdgeShard, dict[str, Any]]] = {}
        self.lock = threading.Lock()
        self.gate = threading.Event()
        self.gate.set()
        self.status: int | None = None
        self.mangle: Callable[[str, Any], Any] = _as_it_is
        self.requests: list[str] = []
        self.keys: list[str | None] = []  # that came with them
        self.connections = 0
        self._port = 0
        self.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def start(self) -> None:
        self._server = ThreadingHTTPServer(("127.0.0.1", self._port), _handler(self))
        self._server.daemon_threads = True
        self._server.block_on_close = False
        self._port = self._server.server_address[1]
        self._sockets: list[Any] = []
        self.is_running = True
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def reset(self) -> None:
        """Forget all collections, what was asked for and what was to go wrong, for the next test."""
        self.gate.set()
        self.status, self.mangle = None, _as_it_is
        self.requests.clear()
        self.keys.clear()
        for name in list(self.shards):
            self.answer("DELETE", f"/collections/{name}", None)
        if not self.is_running:
            self.start()

    def stop(self) -> None:
        """Stop as a killed server does: open connections break too."""
        self.is_running = False
        self._server.shutdown()
        self._server.server_close()
        for connected in self._sockets:
            with suppress(OSError):  # its client has gone already
                connected.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self.gate.set()
        self.stop()
        for shard, _ in self.shards.values():
            shard.close()
        self._place.cleanup()

    def answer(self, method: str, path: str, body: Any) -> Any:
        for verb, pattern, act in ROUTES:
            if verb == method and (match := re.fullmatch(pattern, path)):
                with self.lock:  # the engine is asked by one thread at a time
                    return self.mangle(act.__name__, act(self, match[1], body))
        raise LookupError(f"{method} {path}")


def _as_it_is(route: str, result: Any) -> Any:
    return result


def exists(shim: QdrantShim, name: str, body: Any) -> Any:
    return {"exists": name in shim.shards}


def create(shim: QdrantShim, name: str, body: Any) -> Any:
    params = edge.EdgeVectorParams(
        body["vectors"]["size"], getattr(edge.Distance, body["vectors"]["distance"])
    )
    place = shim.folder / f"{name}-{len(list(shim.folder.iterdir()))}"
    place.mkdir()
    shim.shards[name] = edge.EdgeShard.create(str(place), edge.EdgeConfig(params)), body
    return True


def drop(shim: QdrantShim, name: str, body: Any) -> Any:
    shim.shards.pop(name)[0].close()
    return True


def describe(shim: QdrantShim, name: str, body: Any) -> Any:
    shard, made = shim.shards[name]
    params = {"vectors": made["vectors"], "shard_number": 1, "replication_factor": 1}
    hnsw = {"m": 16, "ef_construct": 100, "full_scan_threshold": 10000}
    optimizer = {
        "deleted_threshold": 0.2,
        "vacuum_min_vector_number": 1000,
        "default_segment_number": 0,
        "flush_interval_sec": 5,
    }
    config = {"params": params, "hnsw_config": hnsw, "optimizer_config": optimizer}
    known = {field: {"data_type": "keyword", "points": 0} for field in shard.info().payload_schema}
    fixed = {"status": "green", "optimizer_status": "ok", "segments_count": 1, "payload_schema": known}
    return {**fixed, "config": config}


def index(shim: QdrantShim, name: str, body: Any) -> Any:
    schema = body["field_schema"]
    if isinstance(schema, dict):
        schema = edge.KeywordIndexParams(is_tenant=schema.get("is_tenant"))
    else:
        schema = getattr(edge.PayloadSchemaType, schema.capitalize())
    shim.shards[name][0].update(edge.UpdateOperation.create_field_index(body["field_name"], schema))
    return DONE


def upsert(shim: QdrantShim, name: str, body: Any) -> Any:
    points = [edge.Point(point["id"], point["vector"], point["payload"]) for point in body["points"]]
    shim.shards[name][0].update(edge.UpdateOperation.upsert_points(points))
    return DONE


def delete(shim: QdrantShim, name: str, body: Any) -> Any:
    if "points" in body:
        operation = edge.UpdateOperation.delete_points(body["points"])
    else:
        operation = edge.UpdateOperation.delete_points_by_filter(filter_of(body["filter"]))
    shim.shards[name][0].update(operation)
    return DONE


def batch(shim: QdrantShim, name: str, body: Any) -> Any:
    for operation in body["operations"]:
        if "delete" in operation:
            delete(shim, name, operation["delete"])
        else:
            change = operation["set_payload"]
            shim.shards[name][0].update(
                edge.UpdateOperation.set_payload_by_filter(filter_of(change["filter"]), change["payload"])
            )
    return [DONE] * len(body["operations"])


def query(shim: QdrantShim, name: str, body: Any) -> Any:
    params = body.get("params") or {}
    found = shim.shards[name][0].query(
        edge.QueryRequest(
            limit=body["limit"],
            query=edge.Query.Nearest(body["query"]["nearest"]),
            filter=filter_of(body["filter"]),
            params=edge.SearchParams(hnsw_ef=params.get("hnsw_ef")),
            with_vector=body.get("with_vector"),
        )
    )
    return {
        "points": [
            {"id": str(each.id), "version": each.version, "score": each.score, "vector": each.vector}
            for each in found
        ]
    }


def retrieve(shim: QdrantShim, name: str, body: Any) -> Any:
    found = shim.shards[name][0].retrieve(body["ids"], body.get("with_payload"), body.get("with_vector"))
    return [{"id": str(each.id), "vector": each.vector, "payload": each.payload} for each in found]


def scroll(shim: QdrantShim, name: str, body: Any) -> Any:
    request = edge.ScrollRequest(
        limit=body["limit"],
        offset=body.get("offset"),
        filter=filter_of(body["filter"]),
        with_payload=body.get("with_payload"),
        with_vector=body.get("with_vector"),
    )
    found, further = shim.shards[name][0].scroll(request)
    return {
        "points": [{"id": str(each.id)} for each in found],
        "next_page_offset": None if further is None else str(further),
    }


def count(shim: QdrantShim, name: str, body: Any) -> Any:
    asked = filter_of(body["filter"]) if body.get("filter") else None
    return {"count": shim.shards[name][0].count(edge.CountRequest(exact=True, filter=asked))}


DONE = {"operation_id": 0, "status": "completed"}
ROUTES: list[tuple[str, str, Callable[[QdrantShim, str, Any], Any]]] = [
    ("GET", "/collections/([^/]+)/exists", exists),
    ("GET", "/collections/([^/]+)", describe),
    ("PUT", "/collections/([^/]+)", create),
    ("DELETE", "/collections/([^/]+)", drop),
    ("PUT", "/collections/([^/]+)/index", index),
    ("PUT", "/collections/([^/]+)/points", upsert),
    ("POST", "/collections/([^/]+)/points/delete", delete),
    ("POST", "/collections/([^/]+)/points/batch", batch),
    ("POST", "/collections/([^/]+)/points/query", query),
    ("POST", "/collections/([^/]+)/points", retrieve),
    ("POST", "/collections/([^/]+)/points/scroll", scroll),
    ("POST", "/collections/([^/]+)/points/count", count),
]


def filter_of(body: Any) -> edge.Filter:
    """Return a filter of the HTTP interface as the engine's."""
    return edge.Filter(must=[condition_of(each) for each in body["must"]])


def condition_of(body: Any) -> Any:
    if "has_id" in body:
        return edge.HasIdCondition(set(body["has_id"]))
    if body.get("range"):
        limits = {key: value for key, value in body["range"].items() if value is not None}
        return edge.FieldCondition(body["key"], range=edge.RangeFloat(**limits))
    match = body["match"]
    wanted = edge.MatchAny(match["any"]) if "any" in match else edge.MatchValue(match["value"])
    return edge.FieldCondition(body["key"], match=wanted)


def _handler(shim: QdrantShim) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"  # keeps connections open
        disable_nagle_algorithm = True

        def setup(self) -> None:
            super().setup()
            shim.connections += 1
            shim._sockets.append(self.request)

        def do(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            path = self.path.partition("?")[0]
            shim.requests.append(f"{self.command} {path}")
            shim.keys.append(self.headers.get("api-key"))
            shim.gate.wait()
            try:
                status, answer = self._answered(path, json.loads(body or b"null"))
            except LookupError as fault:
                said = f"Not found: Collection {fault} doesn't exist!"
                status, answer = 404, {"status": {"error": said}, "time": 0}
            except Exception as fault:  # what the engine refuses
                status, answer = 400, {"status": {"error": str(fault)}, "time": 0}
            self._send(status, json.dumps(answer).encode())

        def _answered(self, path: str, body: Any) -> tuple[int, Any]:
            if shim.status is not None:
                return shim.status, {"status": {"error": "as told"}, "time": 0}
            return 200, {"result": shim.answer(self.command, path, body), "status": "ok", "time": 0}

        def _send(self, status: int, data: bytes) -> None:
            try:
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)
            except OSError:  # whoever asked has gone
                self.close_connection = True

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing."""

        do_GET = do_PUT = do_POST = do_DELETE = do

    return Handler
