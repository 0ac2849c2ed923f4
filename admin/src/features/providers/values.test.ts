import { expect, test } from "vitest";
import { body, redirects, values } from "./values";

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

test("redirects are read line by line, and half a line is left out", () => {
  expect(redirects("a = b\n\n c=d=e \nhalf =\n= other")).toEqual({ a: "b", c: "d=e" });
});
