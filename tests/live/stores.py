"""Stores of profiles that tests push to: servers that speak what the stores publish, strictly, and keep what came.

Pyroscope: api/push/v1/push.proto and types/v1/types.proto of github.com/grafana/pyroscope, by Connect's protocol for unary
calls; with the limits that it has by default (pkg/validation). OpenTelemetry: opentelemetry-proto 1.11.0,
collector/profiles/v1development. Read by code of our own, from those documents.

Store(kind).begin() listens; end() is a crash, after which begin() listens at the same port again. answers: what the next requests get
instead of an answer: a status with headers, "garbage", "never", "cut" (taken, but the answer is lost).
"""

import collections
import gzip
import re
import socket
import ssl
import struct
import subprocess
import threading
import time
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pprof_reader
from pprof_reader import message, numbers, one, signed

PATHS = {"pyroscope": "/push.v1.PusherService/Push", "otlp": "/v1development/profiles"}
TYPES = {"pyroscope": "application/proto", "otlp": "application/x-protobuf"}


class Wrong(Exception):
    """What no store would take."""


def need(holds, words):
    if not holds:
        raise Wrong(words)


# --- Pyroscope ------------------------------------------------------------------------------------

def only(m, *allowed):
    need(set(m) <= set(allowed), f"unknown fields {sorted(set(m) - set(allowed))}")
    return m


def pyroscope(body):
    """[(labels, id, {type: total}, samples' labels)] of a PushRequest."""
    out = []
    for series in only(message(body), 1)[1]:
        m = only(message(series), 1, 2)
        labels = {}
        for pair in m[1]:
            pair = only(message(pair), 1, 2)
            name, value = one(pair, 1, b"").decode(), one(pair, 2, b"").decode()
            need(re.fullmatch("[a-zA-Z_][a-zA-Z0-9_]*", name) and name not in labels, f"label {name!r}")
            need(len(name) <= 1024 and len(value) <= 2048, f"label {name!r} is too long")
            labels[name] = value
        need(len(labels) <= 30, f"{len(labels)} labels")
        need(re.fullmatch("[a-zA-Z_:][a-zA-Z0-9_:]*", labels.get("__name__", "")), "no __name__")
        need(labels.get("service_name"), "no service_name")
        for sample in m[2]:
            sample = only(message(sample), 1, 2)
            raw = gzip.decompress(one(sample, 1))
            need(len(raw) <= 4 << 20, f"a profile of {len(raw)} bytes")
            p = pprof_reader.Profile(raw)
            need(0 < len(p.samples) <= 16000, f"{len(p.samples)} samples")
            need(-3600 < time.time() - p.time_ns / 1e9 < 3600, "outside of the ingestion window")
            need(not any("-" in t for t in p.types), f"types {p.types}")
            out.append((labels, str(uuid.UUID(one(sample, 2).decode())), p.time_ns,
                        {t: p.sum(t) for t in p.types}, {tuple(sorted(s.labels)) for s in p.samples}, p.period_type))
    return out


# --- OpenTelemetry --------------------------------------------------------------------------------

MAPPINGS, LOCATIONS, FUNCTIONS, LINKS, STRINGS, ATTRIBUTES, STACKS = range(1, 8)


def any_value(b):
    m = message(b)
    need(len(m) == 1, "an attribute without one value")
    return one(m, 1).decode() if 1 in m else signed(one(m, 3))


def otlp(body):
    """As above, of an ExportProfilesServiceRequest."""
    top = only(message(gzip.decompress(body)), 1, 2)
    need(len(top.get(2, [])) == 1, "no dictionary")
    tables = message(top[2][0])
    need(set(tables) == set(range(1, 8)), f"tables {sorted(tables)}")
    for number, table in tables.items():
        zero = b"\n\x10" + bytes(16) + b"\x12\x08" + bytes(8) if number == LINKS else b""
        need(table[0] == zero, f"entry 0 of table {number}")

    def at(number, i):
        need(i < len(tables[number]), f"{i} of table {number}")
        return tables[number][i]

    def attributes(indices):
        out = {}
        for i in indices:
            a = message(at(ATTRIBUTES, i))
            key = at(STRINGS, one(a, 1)).decode()
            need(i and key not in out, f"attribute {key!r}")
            out[key] = any_value(one(a, 2))
        return out

    for stack in map(message, tables[STACKS]):
        for i in numbers(stack, 1):
            location = message(at(LOCATIONS, i))
            at(MAPPINGS, one(location, 1))
            for line in map(message, location.get(3, [])):
                at(STRINGS, one(message(at(FUNCTIONS, one(line, 1))), 1))
    out = []
    for resource in map(message, top[1]):
        pairs = [message(b) for b in message(resource[1][0])[1]]
        labels = {one(p, 1).decode(): any_value(one(p, 2)) for p in pairs}
        need(len(labels) == len(pairs) and labels.get("service.name"), f"resource {labels}")
        for scope in map(message, resource[2]):
            for p in map(message, scope[2]):
                kind = message(one(p, 1))
                name = "/".join(at(STRINGS, one(kind, k)).decode() for k in (1, 2))
                total, sets = 0, set()
                for s in map(message, p.get(2, [])):
                    only(s, 1, 2, 3, 4, 5)
                    at(STACKS, one(s, 1))
                    sets.add(tuple(sorted(attributes(numbers(s, 2)))))
                    values = [signed(v) for v in numbers(s, 4)]
                    need(len(values) == 1, "values without times are one")
                    total += values[0]
                need(p.get(2), "a profile without samples")
                ident = one(p, 7)
                need(len(ident) == 16 and any(ident), "no profile_id")
                period = message(one(p, 5)) if 5 in p else None
                out.append((labels, str(uuid.UUID(bytes=ident)), one(p, 3), {name: total}, sets,
                            period and at(STRINGS, one(period, 1)).decode()))
    return out


READ = {"pyroscope": pyroscope, "otlp": otlp}


# --- the server -----------------------------------------------------------------------------------

class Server(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 64

    def __init__(self, store, port):
        self.store, self.open = store, set()
        super().__init__(("127.0.0.1", port), Handler)

    def get_request(self):
        connection, address = super().get_request()
        if self.store.tls:
            connection = self.store.tls.wrap_socket(connection, server_side=True, do_handshake_on_connect=False)
        self.open.add(connection)
        return connection, address

    def handle_error(self, request, client_address):
        pass  # it was cut


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 60

    def log_message(self, *args):
        pass

    def answer(self, status, headers=(), body=b""):
        self.send_response(status)
        for name, value in dict({"Content-Type": TYPES[self.server.store.kind]}, **dict(headers)).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
        store = self.server.store
        length = self.headers.get("Content-Length")
        body = self.rfile.read(int(length or 0))
        if len(body) != int(length or 0):
            return
        with store.news:
            store.requests.append((time.monotonic(), dict(self.headers)))
            how = store.answers.popleft() if store.answers else store.always
            store.news.notify_all()
        if how == "never":
            time.sleep(60)
            return
        if how == "garbage":
            self.wfile.write(b"\x00\x01 this is no HTTP\r\n\r\n")
            self.close_connection = True
            return
        if isinstance(how, tuple):
            return self.answer(*how)
        wrong = store.take(self.path, self.headers, body)
        if wrong:
            return self.answer(400, {"Content-Type": "application/json"}, wrong.encode())
        if how == "cut":
            self.connection.close()
            self.close_connection = True
            return
        self.answer(200, {}, store.success)


def certificate(path):
    """A certificate of 127.0.0.1 by an authority of its own, which is itself; PEM with its key."""
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                    "-keyout", path + ".key", "-out", path, "-days", "2", "-subj", "/CN=a store",
                    "-addext", "subjectAltName=IP:127.0.0.1"], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path, path + ".key")
    return context


class Store:
    def __init__(self, kind, tls=None):
        self.kind, self.tls, self.port, self.server = kind, tls, 0, None
        self.answers, self.always, self.success = collections.deque(), None, b""
        self.requests, self.items, self.wrong, self.again = [], {}, [], 0
        self.news = threading.Condition()

    def begin(self):
        self.server = Server(self, self.port)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def end(self):
        self.server.shutdown()
        self.server.server_close()
        for connection in self.server.open:
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            connection.close()

    @property
    def url(self):
        return f"{'https' if self.tls else 'http'}://127.0.0.1:{self.port}"

    def take(self, path, headers, body):
        """What is wrong with it; "": it was taken."""
        try:
            need(path == PATHS[self.kind], f"path {path}")
            need(headers["Content-Type"] == TYPES[self.kind], f"type {headers['Content-Type']}")
            items = READ[self.kind](body)
        except (Wrong, ValueError, KeyError, IndexError, UnicodeDecodeError, OSError, struct.error) as e:
            with self.news:
                self.wrong.append(f"{type(e).__name__}: {e}")
            return str(e) or "wrong"
        with self.news:
            for item in items:
                self.again += item[1] in self.items
                self.items[item[1]] = item
            self.news.notify_all()
        return ""

    def sums(self, name=None, **labels):
        """{type: total} of what was taken, each once; of one __name__, with these labels."""
        out = collections.Counter()
        for have, _, _, totals, _, _ in self.items.values():
            if (name is None or have.get("__name__") == name) and all(have.get(k) == v for k, v in labels.items()):
                out.update(totals)
        return dict(out)

    def wait(self, holds, what, seconds=120):
        with self.news:
            if not self.news.wait_for(holds, seconds):
                raise AssertionError(f"{what}: {len(self.requests)} requests, {len(self.items)} profiles, {self.wrong[:2]}")
