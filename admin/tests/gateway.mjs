/** A gateway of a test's own, with a mock provider behind it, and a way to its API and to a browser. */
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium } from "playwright-core";

export const TOKEN = "the-administrators-token";
const program = process.env.TOLLGATE_BIN ?? new URL("../../target/debug/tollgate", import.meta.url).pathname;
const browserPath = process.env.CHROMIUM ?? "/usr/bin/chromium";

/** Ports that are free now, each another one, and below those that outgoing connections are given: all are held until the last is found. */
async function freePorts(many) {
  const held = [];
  while (held.length < many) {
    const server = createServer();
    const found = await new Promise((done) => {
      server.once("error", () => done(false));
      server.listen(12_000 + Math.floor(Math.random() * 20_000), "127.0.0.1", () => done(true));
    });
    if (found) held.push(server);
  }
  const ports = held.map((server) => server.address().port);
  await Promise.all(held.map((server) => new Promise((done) => server.close(done))));
  return ports;
}

/** Starts a program and waits until `url` answers. */
async function start(args, env, url) {
  // What is undefined here is taken out of the environment.
  const child = spawn(program, args, { env: { ...process.env, ...env }, stdio: ["ignore", "pipe", "pipe"] });
  let said = "";
  child.stdout.on("data", (piece) => (said += piece));
  child.stderr.on("data", (piece) => (said += piece));
  // Whatever happens to the test, nothing is left running.
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

/** The proxy answers, and it is the proxy: whoever else has that port must not answer in its place. */
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

/** Stops these and waits for their end. */
function ended(children) {
  const running = children.filter((child) => child.exitCode === null && child.signalCode === null);
  const ends = Promise.all(running.map((child) => new Promise((done) => child.once("exit", done))));
  for (const child of running) child.kill("SIGTERM");
  return ends;
}

export async function startGateway(env = {}) {
  const [proxyPort, adminPort, metricsPort, mockPort] = await freePorts(4);
  const data = mkdtempSync(join(tmpdir(), "tollgate-ui-"));
  const at = (port) => `127.0.0.1:${port}`;
  const mock = await start(["mock", "--addr", at(mockPort)], {}, `http://${at(mockPort)}/mock/stats`);
  const settings = {
    ADMIN_TOKEN: TOKEN,
    TOLLGATE_DATA_DIR: data,
    TOLLGATE_PROXY_ADDR: at(proxyPort),
    TOLLGATE_ADMIN_ADDR: at(adminPort),
    TOLLGATE_METRICS_ADDR: at(metricsPort),
    TOLLGATE_SHUTDOWN_GRACE: "1s",
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
    /** Stops the gateway, and starts it again on the same data and ports: with these settings changed. */
    halt: () => ended([gate.child]),
    again: async (changed = {}) => {
      gate = await start(["serve"], { ...settings, ...changed }, `http://${at(metricsPort)}/readyz`);
    },
    /** Tells the mock what to answer: see `tollgate mock`. */
    direct: (path, body, method = "POST") =>
      fetch(`${mockUrl}/mock/${path}`, {
        method,
        headers: { "content-type": "application/json" },
        body: JSON.stringify(body),
      }),
    /** One request of a client. */
    ask: (key, model = "claude-sonnet-4-5", text = "Say hello in five words.", extra = {}, headers = {}, signal) =>
      fetch(`${proxy}/v1/messages`, {
        signal,
        method: "POST",
        headers: {
          "content-type": "application/json",
          "x-api-key": key,
          "anthropic-version": "2023-06-01",
          ...headers,
        },
        body: JSON.stringify({ model, max_tokens: 100, messages: [{ role: "user", content: text }], ...extra }),
      }).then(async (reply) => ({ status: reply.status, body: await reply.text() })),
    stop: async () => {
      await ended([gate.child, mock.child]);
      rmSync(data, { recursive: true, force: true });
    },
  };
}

/** A browser that speaks to this machine only. */
export const startBrowser = () =>
  chromium.launch({
    executablePath: browserPath,
    args: [
      "--no-sandbox",
      "--disable-gpu",
      "--disable-quic",
      "--no-first-run",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
    ],
  });

/** A page that notes what must not be: errors on the console, what the policy refused, and requests to elsewhere. */
export async function openPage(browser, gateway, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, locale: "en-GB", ...options });
  const page = await context.newPage();
  const faults = [];
  await page.exposeBinding("refused", (_, what) => faults.push(`refused by the policy: ${what}`));
  await page.addInitScript(() =>
    document.addEventListener("securitypolicyviolation", (event) =>
      window.refused(`${event.violatedDirective} ${event.blockedURI} ${event.sourceFile}:${event.lineNumber}`),
    ),
  );
  // A refused request is told on the console too; what it means is shown in the page.
  page.on("console", (message) => {
    const expected = /Failed to load resource: the server responded with a status of 4\d\d/.test(message.text());
    if (["error", "warning"].includes(message.type()) && !expected) faults.push(`${message.type()}: ${message.text()}`);
  });
  page.on("pageerror", (error) => faults.push(`page: ${error.message}`));
  page.on("request", (request) => {
    if (
      !request.url().startsWith(gateway.url) &&
      !request.url().startsWith("data:") &&
      !request.url().startsWith("blob:")
    ) {
      faults.push(`request to elsewhere: ${request.url()}`);
    }
  });
  page.setDefaultTimeout(60_000);
  return { context, page, faults };
}

export async function logIn(page, gateway, key = TOKEN) {
  await page.goto(`${gateway.url}/login`);
  await page.locator("input[name=key]").fill(key);
  await page.keyboard.press("Enter");
  await page.waitForURL((url) => url.pathname !== "/login");
}
