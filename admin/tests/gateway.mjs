/** A gateway with a mock provider, on separate ports and data, and its API. */
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

export const TOKEN = "the-administrators-token";
const program =
  process.env.TOLLGATE_BIN ?? new URL("../../target/debug/tollgate", import.meta.url).pathname;
/** How many ports each worker of Playwright picks from. */
const PORTS = 5_000;

/**
 * Distinct free ports, below the range of outgoing connections. Each worker has a separate range,
 * so that no other worker takes a port before the gateway starts.
 */
async function freePorts(many) {
  const first = 12_000 + PORTS * (Number(process.env.TEST_PARALLEL_INDEX ?? 0) % 4);
  const held = [];
  while (held.length < many) {
    const server = createServer();
    const found = await new Promise((done) => {
      server.once("error", () => done(false));
      server.listen(first + Math.floor(Math.random() * PORTS), "127.0.0.1", () => done(true));
    });
    if (found) held.push(server);
  }
  const ports = held.map((server) => server.address().port);
  await Promise.all(held.map((server) => new Promise((done) => server.close(done))));
  return ports;
}

/** Starts a program and waits until `url` answers. */
async function start(args, env, url) {
  // A setting that is undefined here is removed from the environment.
  const child = spawn(program, args, {
    env: { ...process.env, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let said = "";
  child.stdout.on("data", (piece) => (said += piece));
  child.stderr.on("data", (piece) => (said += piece));
  // The program ends with this process, in any case.
  const kill = () => child.kill("SIGKILL");
  process.once("exit", kill);
  let ended = false;
  child.on("exit", () => {
    ended = true;
    process.off("exit", kill);
  });
  for (let tries = 0; tries < 600; tries++) {
    if (ended) throw new Error(`${args[0]} ended:\n${said}`);
    const up = await fetch(url)
      .then((answer) => answer.ok)
      .catch(() => false);
    if (up) return { child, said: () => said };
    await new Promise((done) => setTimeout(done, 100));
  }
  child.kill("SIGKILL");
  throw new Error(`${args[0]} does not answer at ${url}:\n${said}`);
}

/** Waits until the proxy answers, and checks that it is the proxy and not the mock. */
async function listening(proxy, said) {
  for (let tries = 0; tries < 600; tries++) {
    const status = await fetch(`${proxy}/mock/stats`).then(
      (answer) => answer.status,
      () => undefined,
    );
    if (status === 200) throw new Error(`the mock has the proxy's port:\n${said()}`);
    if (status !== undefined) return;
    await new Promise((done) => setTimeout(done, 100));
  }
  throw new Error(`the proxy does not listen:\n${said()}`);
}

/** Sends a signal to these programs and waits until they have ended. */
function ended(children, signal) {
  const running = children.filter((child) => child.exitCode === null && child.signalCode === null);
  const ends = Promise.all(running.map((child) => new Promise((done) => child.once("exit", done))));
  for (const child of running) child.kill(signal);
  return ends;
}

/** Starts a gateway and a mock. `env` changes settings; `undefined` removes one. */
export async function startGateway(env = {}) {
  const [proxyPort, adminPort, metricsPort, mockPort] = await freePorts(4);
  const data = mkdtempSync(join(tmpdir(), "tollgate-ui-"));
  const at = (port) => `127.0.0.1:${port}`;
  const mock = await start(
    ["mock", "--addr", at(mockPort)],
    {},
    `http://${at(mockPort)}/mock/stats`,
  );
  const settings = {
    ADMIN_TOKEN: TOKEN,
    TOLLGATE_DATA_DIR: data,
    TOLLGATE_PROXY_ADDR: at(proxyPort),
    TOLLGATE_ADMIN_ADDR: at(adminPort),
    TOLLGATE_METRICS_ADDR: at(metricsPort),
    TOLLGATE_SHUTDOWN_GRACE: "1s",
    TOLLGATE_PRICES_SYNC: "off",
    // One root certificate: reading the system's is a sixth of a start's instructions.
    SSL_CERT_FILE: new URL("../../tests/nodes/tls/ca.pem", import.meta.url).pathname,
    TZ: "Europe/Berlin",
    LOG_FORMAT: "text",
    DATABASE_URL: undefined,
    REDIS_URL: undefined,
    ...env,
  };
  let gate = await start(["serve"], settings, `http://${at(metricsPort)}/readyz`);
  await listening(`http://${at(proxyPort)}`, gate.said);
  const url = `http://${at(adminPort)}`;
  const proxy = `http://${at(proxyPort)}`;
  const mockUrl = `http://${at(mockPort)}`;

  const answer = async (operation, body = {}, credential = TOKEN) => {
    const reply = await fetch(`${url}/api/actions/${operation}`, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${credential}` },
      body: JSON.stringify(body),
    });
    return reply.json();
  };
  const action = async (operation, body, credential) => {
    const result = await answer(operation, body, credential);
    if (!result.ok) throw new Error(`${operation}: ${JSON.stringify(result)}`);
    return result.data;
  };
  return {
    url,
    proxy,
    mockUrl,
    answer,
    action,
    log: () => gate.said(),
    /** Creates a provider, by default the mock. */
    addProvider: (fields = {}) =>
      action("providers/addProvider", {
        name: "main",
        url: mockUrl,
        key: "mock-key-0123456789",
        ...fields,
      }),
    /** Creates a user with a default key. */
    addUser: (name, fields = {}) => action("users/addUser", { name, ...fields }),
    /** Waits until the database has this many requests. */
    logged: async (total) => {
      for (let tries = 0; (await action("usage-logs/getUsageLogs")).total < total; tries++) {
        if (tries === 300) throw new Error(`the log has fewer than ${total} requests`);
        await new Promise((done) => setTimeout(done, 100));
      }
    },
    /** Stops the gateway as an operator does. */
    halt: () => ended([gate.child], "SIGTERM"),
    /** Starts it again on the same data and ports, with these settings changed. */
    again: async (changed = {}) => {
      gate = await start(
        ["serve"],
        { ...settings, ...changed },
        `http://${at(metricsPort)}/readyz`,
      );
    },
    /** Sets the mock's answers: see `tollgate mock`. */
    direct: (path, body, method = "POST") =>
      fetch(`${mockUrl}/mock/${path}`, {
        method,
        headers: { "content-type": "application/json" },
        body: JSON.stringify(body),
      }),
    /** One request of a client. */
    ask: (
      key,
      model = "claude-sonnet-4-5",
      text = "Say hello in five words.",
      extra = {},
      headers = {},
      signal,
    ) =>
      fetch(`${proxy}/v1/messages`, {
        signal,
        method: "POST",
        headers: {
          "content-type": "application/json",
          "x-api-key": key,
          "anthropic-version": "2023-06-01",
          ...headers,
        },
        body: JSON.stringify({
          model,
          max_tokens: 100,
          messages: [{ role: "user", content: text }],
          ...extra,
        }),
      }).then(async (reply) => ({ status: reply.status, body: await reply.text() })),
    /** Kills both programs and removes their data. */
    stop: async () => {
      await ended([gate.child, mock.child], "SIGKILL");
      rmSync(data, { recursive: true, force: true });
    },
  };
}
