#!/usr/bin/env python3
"""Uses a gateway as its users do, so that a profile shows which of its code runs.

    scripts/workload.py <gateway's program> <mock's program> [<share>]

Clients of all four formats, before a provider of each type: short and long prompts, replies at once
and as streams, embeddings, refused keys, exceeded limits, failing providers. Beside them the web
UI's queries, and metrics. Fails if a request has another status than expected. `share`: of the usual
number of requests, above 0. `scripts/layout.sh` calls it.
"""

import contextlib
import http.client
import json
import math
import os
import pathlib
import random
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

TOKEN = "workload-admin-token"
TYPES = ("native", "responses", "chat-compatible", "alt-cli")
WORDS = 'She said "wait", and the naïve reader waited.\n\tfn main() { println!("{}", 1 + 1); } // 東京\n'
CLIENTS = 4
NO_KEY = "sk-" + "0" * 32
PRICE = {"mode": "chat", "input_cost_per_token": 1e-7, "output_cost_per_token": 4e-7}
QUERIES = (
    "overview/getOverviewData", "usage-logs/getUsageLogs", "users/getUsers", "providers/getProviders",
    "active-sessions/getActiveSessions", "statistics/getUserStatistics", "audit/getAuditLog",
)


def text(number, size):
    """A prompt, which another number makes a new one."""
    return f"#{number} " + WORDS * (size // len(WORDS))


def native(number, size, stream):
    turns = [text(number if at == 0 else -at, min(size, 4000)) for at in range(max(1, size // 4000))]
    turns = [{"role": "user", "content": [{"type": "text", "text": turn}]} for turn in turns]
    return "/v1/messages", {"max_tokens": 1024, "stream": stream, "messages": turns}


def responses(number, size, stream):
    turn = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text(number, size)}]}
    return "/v1/responses", {"max_output_tokens": 1024, "stream": stream, "input": [turn]}


def chat(number, size, stream):
    turn = {"role": "user", "content": text(number, size)}
    return "/v1/chat/completions", {"max_tokens": 1024, "stream": stream, "messages": [turn]}


def alt_cli(number, size, stream):
    verb = "streamGenerateContent?alt=sse" if stream else "generateContent"
    turn = {"role": "user", "parts": [{"text": text(number, size)}]}
    return f"/v1beta/models/{model(stream)}:{verb}", {"contents": [turn]}


def embedding(number, size, _):
    return "/v1/embeddings", {"input": text(number, size)}


def told(number, size, stream):
    """For another model, with which the mock does as a header says."""
    path, body = native(number, size, stream)
    return path, body | {"model": "claude-sonnet-4-5"}


def model(stream):
    return "bench-stream" if stream else "bench-json"


def work(keys, limited):
    """Each kind of request: how many, the key, further headers, the status, and how it is made."""
    # First: the user's only request is in the same minute.
    yield 100, limited, {}, 429, native, 2_000, False
    yield 40, keys["failover"], {}, 200, native, 2_000, False
    for kind in TYPES:
        for make in (native, responses, chat, alt_cli):
            yield 60, keys[kind], {}, 200, make, 2_000, False
            yield 40, keys[kind], {}, 200, make, 2_000, True
    yield 2_000, keys["native"], {}, 200, native, 2_000, False
    yield 1_000, keys["chat-compatible"], {}, 200, chat, 2_000, False
    yield 600, keys["native"], {}, 200, native, 2_000, True
    yield 300, keys["native"], {}, 200, native, 200_000, False
    yield 300, keys["chat-compatible"], {}, 200, embedding, 1_000, False
    yield 100, NO_KEY, {}, 401, native, 2_000, False
    yield 20, keys["native"], {"x-mock": '{"status": 400}'}, 400, told, 2_000, False


def free(count):
    """Ports without a listener, below those of outgoing connections and of the tests."""
    ports = random.sample(range(10_000, 12_000), 100)
    return [port for port in ports if not listens(port)][:count]


def listens(port):
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0


def call(port, method, path, headers, body=None):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request(method, path, body, headers)
    reply = connection.getresponse()
    return reply.status, reply.read()


def action(port, name, body):
    headers = {"authorization": f"Bearer {TOKEN}", "content-type": "application/json"}
    status, reply = call(port, "POST", f"/api/actions/{name}", headers, json.dumps(body))
    if status != 200:
        sys.exit(f"workload: {name}: {status} {reply.decode()}")
    return json.loads(reply).get("data")


def furnish(port, mock):
    """A provider of each type in a group of its own, and a user of each group with every limit set."""
    keys = {}
    for kind in TYPES:
        provider = {"name": kind, "url": f"http://127.0.0.1:{mock}", "key": "upstream", "provider_type": kind}
        action(port, "providers/addProvider", provider | {"group_tag": kind})
        keys[kind] = user(port, kind, kind, 1_000_000)
    closed = {"name": "closed", "url": f"http://127.0.0.1:{free(1)[0]}", "key": "upstream", "provider_type": "native"}
    action(port, "providers/addProvider", closed | {"group_tag": "failover", "priority": 0})
    open_one = closed | {"name": "open", "url": f"http://127.0.0.1:{mock}", "group_tag": "failover", "priority": 1}
    action(port, "providers/addProvider", open_one)
    keys["failover"] = user(port, "failover", "failover", 1_000_000)
    action(port, "model-prices/uploadPriceTable", {"jsonContent": json.dumps({model(s): PRICE for s in (False, True)})})
    for word in ("confidential", "project titan", "ransomware"):
        action(port, "sensitive-words/createSensitiveWordAction", {"word": word, "matchType": "contains"})
    return keys, user(port, "limited", "native", 1)


def user(port, name, group, rpm):
    limits = {"limit5hUsd": 10_000, "limitWeeklyUsd": 50_000, "limitMonthlyUsd": 200_000, "limitTotalUsd": 10_000_000}
    limits["limitConcurrentSessions"] = 1000
    of_user = {"name": name, "providerGroup": group, "rpm": rpm, "dailyQuota": 10_000}
    key = action(port, "users/addUser", of_user | limits)["defaultKey"]
    action(port, "keys/editKey", {"keyId": key["id"], "providerGroup": group, "limitDailyUsd": 10_000} | limits)
    return key["key"]


def client(port, kinds, number, share, faults):
    """Sends a fair part of each kind of request over one connection, one after the other."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        for at, kind in enumerate(kinds):
            for one in range(math.ceil(share * kind[0] / CLIENTS)):
                send(connection, kind, number, (number * 100 + at) * 10_000 + one)
    except (OSError, http.client.HTTPException, Unexpected) as fault:
        faults.append(fault)


class Unexpected(Exception):
    """A reply that no request of this kind should get."""


def send(connection, kind, session, number):
    _, key, more, expected, make, size, stream = kind
    path, body = make(number, size, stream)
    if make is not alt_cli:
        body.setdefault("model", model(stream))
    headers = {"x-api-key": key, "content-type": "application/json", "x-session-id": f"session {session}"} | more
    connection.request("POST", path, json.dumps(body), headers)
    reply = connection.getresponse()
    said = reply.read()
    if reply.status != expected:
        raise Unexpected(f"{path} with {more}: {reply.status}, not {expected}: {said[:300]}")


def ready(port, path, process, log):
    for _ in range(600):
        try:
            if call(port, "GET", path, {})[0] == 200:
                return
        except OSError:
            pass
        if process.poll() is not None:
            break
        time.sleep(0.1)
    sys.exit(f"workload: {process.args[0]} does not get ready: {log.read_text(encoding='utf-8')}")


def use(proxy, control, metrics, mock, share):
    keys, limited = furnish(control, mock)
    one = {"x-api-key": limited, "content-type": "application/json"}
    call(proxy, "POST", "/v1/messages", one, json.dumps(native(0, 100, False)[1] | {"model": model(False)}))
    kinds, faults = list(work(keys, limited)), []
    clients = [threading.Thread(target=client, args=(proxy, kinds, number, share, faults)) for number in range(CLIENTS)]
    for one in clients:
        one.start()
    while any(one.is_alive() for one in clients):
        for query in QUERIES:
            action(control, query, {})
        call(metrics, "GET", "/metrics", {})
        call(control, "GET", "/", {"accept-encoding": "br"})
        time.sleep(0.5)
    if faults:
        sys.exit(f"workload: {faults[0]!r}")


def main():
    gateway, mock_program, *share = sys.argv[1:]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as started:
        log = pathlib.Path(folder, "log")
        out = started.enter_context(log.open("wb"))
        proxy, control, metrics, mock = free(4)
        upstream = run(started, [mock_program, "mock", "--addr", f"127.0.0.1:{mock}"], os.environ, out)
        ready(mock, "/mock/stats", upstream, log)
        settings = {
            "TOLLGATE_PROXY_ADDR": f"127.0.0.1:{proxy}", "TOLLGATE_ADMIN_ADDR": f"127.0.0.1:{control}",
            "TOLLGATE_METRICS_ADDR": f"127.0.0.1:{metrics}", "TOLLGATE_DATA_DIR": f"{folder}/data",
            "ADMIN_TOKEN": TOKEN, "TOLLGATE_SHUTDOWN_GRACE": "2s", "TOLLGATE_PRICES_SYNC": "off",
            "TOLLGATE_HEADERS_PASS_REQUEST": "x-mock", "LOG_FORMAT": "json", "PATH": os.environ["PATH"],
        }
        process = run(started, [gateway, "serve"], settings, out)
        ready(metrics, "/readyz", process, log)
        use(proxy, control, metrics, mock, float(share[0]) if share else 1)
        time.sleep(3)  # The last records reach the database.
        process.send_signal(signal.SIGTERM)
        if status := process.wait(60):
            sys.exit(f"workload: the gateway ended with {status}")


def run(started, command, settings, out):
    """Starts a program, which ends with this one at the latest."""
    process = subprocess.Popen(command, env=settings, stdout=out, stderr=out)
    started.callback(process.wait)
    started.callback(process.kill)
    return process


if __name__ == "__main__":
    main()
