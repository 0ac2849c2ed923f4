import { expect, test } from "vitest";
import { changes } from "@/api/form";
import { dayOf } from "@/ui/format";
import { keyBody, keyValues, userValues } from "./values";

test("an empty limit means no limit, and a typed one is sent as it was typed", () => {
  const values = {
    ...keyValues(undefined, "UTC"),
    name: " cli ",
    limitDailyUsd: "0.10",
    limit5hUsd: " ",
  };
  expect(keyBody(values)).toMatchObject({
    name: "cli",
    limitDailyUsd: "0.10",
    limit5hUsd: null,
    providerGroup: null,
    expiresAt: null,
  });
});

test("only what was changed is sent", () => {
  const before = { ...keyValues(undefined, "UTC"), name: "a", providerGroup: ["x"] };
  expect(changes(keyBody(before), keyBody({ ...before, providerGroup: ["x", "y"] }))).toEqual({
    providerGroup: "x,y",
  });
  expect(changes(keyBody(before), keyBody({ ...before }))).toEqual({});
});

test("a day is the gateway's, not the browser's", () => {
  expect(dayOf("2026-03-01T22:59:59Z", "Asia/Shanghai")).toBe("2026-03-02");
  expect(dayOf("2026-03-01T22:59:59Z", "America/New_York")).toBe("2026-03-01");
  expect(dayOf(null, "UTC")).toBe("");
});

test("a new user is not an administrator", () => {
  expect(userValues(undefined, "UTC").role).toBe("user");
});
