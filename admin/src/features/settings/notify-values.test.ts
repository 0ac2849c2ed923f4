import { expect, test } from "vitest";
import type { Notifications } from "./api";
import { changeOf, formOf, newSecret } from "./notify-values";

const saved: Notifications = {
  enabled: true,
  circuitBreakerEnabled: true,
  circuitBreakerWebhook: "https://hooks.example.com/a",
  dailyLeaderboardEnabled: false,
  dailyLeaderboardWebhook: null,
  dailyLeaderboardTime: "09:00",
  dailyLeaderboardTopN: 5,
  costAlertEnabled: false,
  costAlertWebhook: null,
  costAlertThreshold: 0.8,
  costAlertCheckInterval: 60,
  hasWebhookSecret: true,
};

test("an unchanged form sends nothing, and a stored secret stays", () => {
  expect(changeOf(formOf(saved), formOf(saved))).toEqual({});
});

test("a share is shown in percent and sent as a share, exactly", () => {
  const form = formOf(saved);
  expect(form.costAlertThreshold).toBe("80");
  for (const percent of ["7", "29", "57", "58", "100"]) {
    const change = changeOf(form, { ...form, costAlertThreshold: percent });
    expect(change).toEqual({ costAlertThreshold: Number(percent) / 100 });
    expect(
      formOf({ ...saved, costAlertThreshold: Number(change.costAlertThreshold) })
        .costAlertThreshold,
    ).toBe(percent);
  }
});

test("an address that was emptied is cleared; a secret that was typed is sent", () => {
  const form = formOf(saved);
  expect(
    changeOf(form, { ...form, circuitBreakerWebhook: " ", webhookSecret: "a-long-enough-secret" }),
  ).toEqual({
    circuitBreakerWebhook: null,
    webhookSecret: "a-long-enough-secret",
  });
});

test("a new secret is long and never the same", () => {
  expect(newSecret()).toMatch(/^[0-9a-f]{64}$/);
  expect(newSecret()).not.toBe(newSecret());
});
