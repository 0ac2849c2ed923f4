"""Starts a mock upstream and a gateway in front of it for the official clients.

Run `pytest tests/sdk`. TOLLGATE_BIN selects the program (by default target/debug/tollgate). The processes listen on
free loopback ports, keep their data in a temporary folder, and are stopped by process id.

To test running services instead, set TOLLGATE_TEST_PROXY, TOLLGATE_TEST_KEY and TOLLGATE_TEST_MOCK, and also
TOLLGATE_TEST_ADMIN and TOLLGATE_TEST_ADMIN_TOKEN for the tests that read the usage log. With the same address as
proxy and as mock, the clients connect to the mock directly; this shows that the mock behaves like the real services.

The gateway has one provider of each type, which serves one model, `via-<type>`. Each client uses all four; with
TOLLGATE_TEST_PAIRS=own, and without a gateway, only the provider of its own format.
"""

import hashlib
import json
import os
import pathlib
import random
import socket
import subprocess
import time
import urllib.error
import urllib.request
from dataclasses import dataclass

import pytest
from account import Account
from received import images

ROOT = pathlib.Path(__file__).resolve().parents[2]
TYPES = ("native", "responses", "chat-compatible", "alt-cli")
ADMIN_TOKEN = "sdk-tests-admin-token"
START_SECONDS = 60
# USD per token, in the fields of the public list.
PRICE = {"mode": "chat", "input_cost_per_token": 0.000003, "output_cost_per_token": 0.000015,
         "cache_read_input_token_cost": 0.0000003}


@dataclass
class Services:
    """The addresses of the running services. `admin` is None if the usage log cannot be read."""

    proxy: str
    key: str
    mock: str
    admin: str | None
    admin_token: str

    @property
    def direct(self):
        """Whether the clients connect to the mock directly."""
        return self.proxy == self.mock

    @property
    def bad_key(self):
        return "invalid" if self.direct else "sk-" + "0" * 32

    def action(self, name, body):
        """Calls the administration API; returns the data."""
        headers = {"authorization": f"Bearer {self.admin_token}"}
        status, reply = call(f"{self.admin}/api/actions/{name}", body, headers)
        assert status == 200 and reply["ok"], f"{name}: {status} {reply}"
        return reply.get("data")

    def received(self, count):
        """The newest `count` requests that the providers received, oldest first."""
        return call(f"{self.mock}/mock/requests?last={count}")[1]

    def images(self, model):
        """The images in the newest request that the provider behind `model` received, each as (media type, bytes)."""
        return images(model.removeprefix("via-"), self.received(1)[0]["body"])

    def script(self, model, *directives, key=None):
        """What the provider behind `model`, or with this key, does with the next requests, one directive each."""
        key = key or f"upstream-{model.removeprefix('via-')}"
        assert call(f"{self.mock}/mock/script?key={key}", list(directives))[0] < 300


def call(url, body=None, headers=None, method=None):
    """Status and decoded JSON of one request."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"content-type": "application/json"} | (headers or {}), method=method)
    try:
        with urllib.request.urlopen(request, timeout=60) as reply:
            text = reply.read()
            return reply.status, json.loads(text) if text else None
    except urllib.error.HTTPError as error:
        text = error.read()
        return error.code, json.loads(text) if text.startswith(b"{") else text.decode()


def free_ports(count):
    """Different ports that were just free, below the range of outgoing connections."""
    held = {}
    while len(held) < count:
        port = random.randrange(12_000, 32_000)
        try:
            held[port] = held.get(port) or socket.create_server(("127.0.0.1", port))
        except OSError:
            continue
    for one in held.values():
        one.close()
    return list(held)


def start(arguments, environment, log, ready):
    """Starts the program and waits until `ready` answers 200."""
    process = subprocess.Popen(arguments, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=ROOT)
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end and process.poll() is None:
        try:
            if call(ready)[0] == 200:
                return process
        except (urllib.error.URLError, ConnectionError):
            pass
        time.sleep(0.05)
    stop(process)
    log.seek(0)
    pytest.exit(f"{' '.join(arguments)} did not start:\n{log.read()}", returncode=3)


def stop(process):
    process.terminate()
    try:
        process.wait(timeout=15)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def program():
    """The gateway's program."""
    found = pathlib.Path(os.environ.get("TOLLGATE_BIN", ROOT / "target/debug/tollgate"))
    if not found.exists():
        pytest.exit(f"{found} is not there: build it, or name it in TOLLGATE_BIN", returncode=3)
    return found.resolve()


def running(environment):
    """The services that the environment names, or None."""
    if "TOLLGATE_TEST_PROXY" not in environment:
        return None
    return Services(
        proxy=environment["TOLLGATE_TEST_PROXY"].rstrip("/"),
        key=environment.get("TOLLGATE_TEST_KEY", "test-key"),
        mock=environment["TOLLGATE_TEST_MOCK"].rstrip("/"),
        admin=environment.get("TOLLGATE_TEST_ADMIN"),
        admin_token=environment.get("TOLLGATE_TEST_ADMIN_TOKEN", ""),
    )


@pytest.fixture(scope="session")
def services(tmp_path_factory):
    found = running(os.environ)
    if found:
        yield found
        return
    folder = tmp_path_factory.mktemp("gateway")
    proxy, admin, metrics, mock = (f"127.0.0.1:{port}" for port in free_ports(4))
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "TOLLGATE_PROXY_ADDR": proxy,
        "TOLLGATE_ADMIN_ADDR": admin,
        "TOLLGATE_METRICS_ADDR": metrics,
        "TOLLGATE_DATA_DIR": str(folder / "data"),
        "TOLLGATE_SHUTDOWN_GRACE": "5s",
        "TOLLGATE_PRICES_SYNC": "off",
        # No provider serves it, but for the tests that add one.
        "TOLLGATE_PROXY_SAFEGUARDS": "checker",
        "TOLLGATE_PROXY_SAFEGUARDS_MODEL": "tool-judge",
        "ADMIN_TOKEN": ADMIN_TOKEN,
        "TZ": "UTC",
        # The mock is the metadata service of both clouds too.
        "GCE_METADATA_HOST": mock,
        "AZURE_POD_IDENTITY_AUTHORITY_HOST": f"http://{mock}",
    }
    started = []
    with open(folder / "log", "w+", encoding="utf-8") as log:
        try:
            started.append(start([str(program()), "mock", "--addr", mock], environment, log, f"http://{mock}/mock/stats"))
            started.append(start([str(program()), "serve"], environment, log, f"http://{metrics}/readyz"))
            here = Services(f"http://{proxy}", "", f"http://{mock}", f"http://{admin}", ADMIN_TOKEN)
            for kind in TYPES:
                provider = {"name": kind, "url": here.mock, "key": f"upstream-{kind}", "provider_type": kind}
                # The mock judges tool calls as Anthropic's own host does.
                own = {"anthropic_host": "yes"} if kind == "native" else {}
                here.action("providers/addProvider", provider | own | {"allowed_models": [f"via-{kind}"]})
            prices = {f"via-{kind}": PRICE for kind in TYPES}
            here.action("model-prices/uploadPriceTable", {"jsonContent": json.dumps(prices)})
            here.key = here.action("users/addUser", {"name": "sdk"})["defaultKey"]["key"]
            yield here
        finally:
            for process in reversed(started):
                stop(process)


@pytest.fixture
def account(services, request):
    """A separate key for the test, and its entries in the usage log."""
    name = hashlib.sha256(request.node.nodeid.encode()).hexdigest()[:20]
    return Account(services, f"{name}-{time.time_ns()}", request.module.FORMAT, PRICE)


def pairs(own):
    """The model names for the tests of a client of format `own`."""
    given = os.environ
    direct = "TOLLGATE_TEST_PROXY" in given and given["TOLLGATE_TEST_PROXY"] == given.get("TOLLGATE_TEST_MOCK")
    types = (own,) if direct or given.get("TOLLGATE_TEST_PAIRS") == "own" else TYPES
    return [f"via-{kind}" for kind in types]


def pytest_generate_tests(metafunc):
    """Parametrises `model` by the format that the test's module names in FORMAT."""
    if "model" in metafunc.fixturenames:
        metafunc.parametrize("model", pairs(metafunc.module.FORMAT))


def mock(**directive):
    """A directive for the mock, as part of the user's text."""
    return f"[[mock {json.dumps(directive, ensure_ascii=False)} ]]"
