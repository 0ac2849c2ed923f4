import { expect, test } from "vitest";
import type { Provider } from "./selection";
import { badRedirect, body, copied, redirects, values } from "./values";

test("durations go in milliseconds and come back as they were", () => {
  const form = {
    ...values(undefined),
    circuit_breaker_open_duration: "0.5",
    first_byte_timeout_streaming_ms: "12.5",
    streaming_idle_timeout_ms: "",
  };
  expect(body(form)).toMatchObject({
    circuit_breaker_open_duration: 30_000,
    first_byte_timeout_streaming_ms: 12_500,
    streaming_idle_timeout_ms: null,
  });
  expect(
    body({ ...form, circuit_breaker_open_duration: "soon" }).circuit_breaker_open_duration,
  ).toBe("soon");
});

test("an untouched credential is not sent", () => {
  expect("key" in body(values(undefined))).toBe(false);
  expect(body({ ...values(undefined), key: "k" }).key).toBe("k");
});

test("a further key that was not typed keeps its text, and a copy has none", () => {
  const provider = {
    credentials: [{ id: 7, name: "b", key: "sk-b…wxyz", isEnabled: false, refused: null }],
    keyIsEnabled: false,
    quotaGuard: 95,
  } as unknown as Provider;
  const form = values(provider);
  expect(body(form)).toMatchObject({
    credentials: [{ name: "b" }],
    key_is_enabled: false,
    quota_guard: "95",
  });
  expect("key_is_enabled" in body({ ...form, credentials: [] })).toBe(false);
  const [first] = form.credentials;
  const typed = { name: " c ", key: "sk-c", is_enabled: true, stored: "", was: null };
  expect(body({ ...form, credentials: [first as typeof typed, typed] }).credentials).toEqual([
    { name: "b" },
    { name: "c", key: "sk-c", is_enabled: true },
  ]);
  expect(copied(provider, "copy")).toMatchObject({ credentials: [], key_is_enabled: true });
});

test("the secret of an application is sent with its tenant and its client", () => {
  const form = {
    ...values(undefined),
    auth: "azure-entra",
    entra_tenant: " t ",
    entra_client: "c",
  };
  expect(JSON.parse(body(form).key ?? "")).toMatchObject({ client_secret: "" });
  expect("key" in body({ ...form, entra_tenant: "", entra_client: " " })).toBe(false);
  expect(JSON.parse(body({ ...form, key: "s" }).key ?? "")).toEqual({
    tenant_id: "t",
    client_id: "c",
    client_secret: "s",
  });
  expect(body({ ...form, key: '{"tenant":"t"}' }).key).toBe('{"tenant":"t"}');
  for (const auth of ["none", "client"]) {
    expect("key" in body({ ...form, key: "s", auth })).toBe(false);
  }
});

test("headers and parameters are lines, and an empty template is none", () => {
  const form = {
    ...values(undefined),
    custom_headers: `x-a = b \${c = d}`,
    query: "api-version = 1",
  };
  expect(body(form)).toMatchObject({
    custom_headers: { "x-a": `b \${c = d}` },
    query: { "api-version": "1" },
    path_template: null,
  });
});

test("redirects are read line by line", () => {
  expect(redirects("a = b\n\n c=d=e ")).toEqual({ a: "b", c: "d=e" });
});

test.each([
  ["", undefined],
  ["a = b\n\n c=d=e ", undefined],
  ["a = b\nhalf =", 2],
  ["= other", 1],
  ["a = b\n\na -> b", 3],
])("the first line of %j that is not a redirect is named", (lines, bad) => {
  expect(badRedirect(lines)).toBe(bad);
});
