import { expect, test } from "vitest";
import { moved } from "./destination";
import type { Provider } from "./selection";

const stored = { url: "https://api.example/v1", proxyUrl: null } as Provider;

test("another origin or proxy needs the credential again, another path does not", () => {
  expect(moved(undefined, "https://anything.example", "")).toBeUndefined();
  for (const url of [
    "https://api.example/v1",
    "https://API.example:443",
    " https://api.example/other/v2 ",
  ])
    expect(moved(stored, url, "")).toBeUndefined();
  for (const url of [
    "http://api.example/v1",
    "https://api.example:8443/v1",
    "https://api.example.evil.test",
    "",
    "api",
  ])
    expect(moved(stored, url, "")).toBe("address");
  expect(moved(stored, stored.url, "http://proxy.example:3128")).toBe("proxy");
  const login = { ...stored, proxyUrl: "socks5://user:***@proxy.example:1080" };
  expect(moved(login, stored.url, "socks5://user:new@one@proxy.example:1080")).toBeUndefined();
  expect(moved(login, stored.url, "socks5://user:***@other.example:1080")).toBe("proxy");
  expect(moved({ ...stored, proxyUrl: "http://proxy.example:3128" }, stored.url, "")).toBe("proxy");
  expect(
    moved(
      { ...stored, proxyUrl: "http://proxy.example:3128" },
      stored.url,
      "http://proxy.example:3128",
    ),
  ).toBeUndefined();
});

test("other authorities need the credential again, those of the system do not", () => {
  const private_ = { ...stored, tlsCa: "A\r\nB" } as Provider;
  expect(moved(stored, stored.url, "", undefined, "A")).toBe("authorities");
  expect(moved(private_, stored.url, "", undefined, "A\nC")).toBe("authorities");
  expect(moved(private_, stored.url, "", undefined, " A\nB\n")).toBeUndefined();
  expect(moved(private_, stored.url, "", undefined, "")).toBeUndefined();
});

test("another kind of credential must be entered, another header needs none", () => {
  const provider = { ...stored, auth: "auto" } as Provider;
  expect(moved(provider, stored.url, "", "api-key")).toBeUndefined();
  expect(moved(provider, stored.url, "", "azure-entra")).toBe("auth");
  expect(moved({ ...provider, auth: "azure-entra" }, stored.url, "", "bearer")).toBe("auth");
  expect(moved(provider, stored.url, "", "aws-sigv4")).toBe("auth");
});
