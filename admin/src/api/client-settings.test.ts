import { describe, expect, test } from "vitest";
import { CLIENT_IDS, clients, exampleModel, proxyBase } from "./client-settings";

const to = {
  base: "https://gate.example:8443",
  key: "sk-0123456789abcdef0123456789abcdef",
  model: "claude-sonnet-4-5",
};

describe("settings of clients", () => {
  test("every client's texts name the address, and the key where they need it", () => {
    for (const client of clients(to)) {
      const all = client.snippets.map(({ text }) => text).join("\n");
      expect(all, client.id).toContain(to.base);
      expect(all, client.id).toContain(to.key);
    }
    expect(clients(to).map(({ id }) => id)).toEqual([...CLIENT_IDS]);
  });

  test("JSON settings are JSON, and the shell takes a key with odd signs for one word", () => {
    const odd = { ...to, key: "sk-… it's" };
    const claude = clients(odd)[0];
    expect(JSON.parse(claude?.snippets[1]?.text ?? "")).toEqual({
      env: { ANTHROPIC_BASE_URL: to.base, ANTHROPIC_AUTH_TOKEN: "sk-… it's" },
    });
    expect(claude?.snippets[0]?.text).toContain(`ANTHROPIC_AUTH_TOKEN='sk-… it'\\''s'`);
  });

  test("a model's slash is escaped in a path", () => {
    const alt = clients({ ...to, model: "org/model" }).find(({ id }) => id === "curl")?.snippets[3];
    expect(alt?.text).toContain("/v1beta/models/org%2Fmodel:generateContent");
  });
});

describe("the model of the examples", () => {
  const provider = (providerType: string, allowedModels: string[] = [], isEnabled = true) => ({
    providerType,
    allowedModels,
    isEnabled,
  });
  test("is one that a provider answers to, of the client's own format where there is one", () => {
    expect(exampleModel("native", [])).toBe("claude-sonnet-4-5");
    expect(exampleModel("native", [provider("chat-compatible")])).toBe("gpt-5");
    expect(exampleModel("native", [provider("alt-cli"), provider("native-auth")])).toBe(
      "claude-sonnet-4-5",
    );
    expect(exampleModel("responses", [provider("chat-compatible", ["house-*", "house-7b"])])).toBe(
      "house-7b",
    );
    expect(
      exampleModel("native", [provider("chat-compatible", ["off"], false), provider("alt-cli")]),
    ).toBe("gemini-2.5-flash");
  });
  test("differs by format in the lines for curl", () => {
    const model = (format: string) => `model-of-${format}`;
    const curl = clients({ ...to, model }).find(({ id }) => id === "curl");
    expect(curl?.snippets.every(({ where, text }) => text.includes(`model-of-${where}`))).toBe(
      true,
    );
  });
});

describe("the proxy's address", () => {
  const page = (href: string) => new URL(href);
  test("is the page's host with the proxy's port", () => {
    expect(proxyBase(page("http://127.0.0.1:8081/connect"), { port: 8080, tls: false })).toBe(
      "http://127.0.0.1:8080",
    );
    expect(proxyBase(page("http://gate:8081/"), { port: 8443, tls: true })).toBe(
      "https://gate:8443",
    );
  });
  test("is the page's own origin where both are one", () => {
    expect(proxyBase(page("http://gate:8080/connect"), { port: 8080, tls: false })).toBe(
      "http://gate:8080",
    );
    expect(proxyBase(page("https://gate/connect"), { port: 443, tls: true })).toBe("https://gate");
  });
});
