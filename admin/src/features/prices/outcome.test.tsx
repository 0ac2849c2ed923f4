import { screen } from "@testing-library/react";
import { expect, test } from "vitest";
import { translateFaults } from "@/api/client";
import { inWords } from "@/i18n/faults";
import zh from "@/i18n/faults.zh.json";
import { renderPart } from "@/test-page";
import { OutcomeView } from "./outcome";

const FAILURE = {
  modelName: "bad",
  reason: "input_cost_per_token must not be negative",
  code: "price_negative",
  params: { rate: "input_cost_per_token" },
};

test("every model is named under what became of it, failures with their reason", async () => {
  await renderPart(
    <OutcomeView
      outcome={{
        added: ["new-model"],
        updated: ["dearer", "cheaper"],
        unchanged: [],
        failed: ["bad"],
        failures: [FAILURE],
        total: 4,
      }}
    />,
  );
  expect(screen.getByText("1 added, 2 updated, 0 unchanged, 1 failed.")).toBeTruthy();
  for (const text of [
    "new-model",
    "dearer",
    "cheaper",
    "bad",
    "input_cost_per_token must not be negative",
  ]) {
    expect(screen.getByText(text)).toBeTruthy();
  }
  expect(screen.getByText("Updated: 2")).toBeTruthy();
  expect(screen.queryByText(/Unchanged, or/)).toBeNull();
});

test("why an entry failed is shown in the person's language", async () => {
  translateFaults((code, params, said) => inWords(zh, code, params, said));
  const outcome = {
    added: [],
    updated: [],
    unchanged: [],
    failed: ["bad"],
    failures: [FAILURE],
    total: 1,
  };
  await renderPart(<OutcomeView outcome={outcome} />);
  expect(screen.getByText("input_cost_per_token 不能为负数")).toBeTruthy();
  translateFaults((_code, _params, said) => said);
});
