import { screen } from "@testing-library/react";
import { expect, test } from "vitest";
import { renderPart } from "@/test-page";
import { OutcomeView } from "./outcome";

test("every model is named under what became of it, failures with their reason", async () => {
  await renderPart(
    <OutcomeView
      outcome={{
        added: ["new-model"],
        updated: ["dearer", "cheaper"],
        unchanged: [],
        failed: ["bad"],
        failures: [{ modelName: "bad", reason: "input_cost_per_token must not be negative" }],
        total: 4,
      }}
    />,
  );
  expect(screen.getByText("1 added, 2 updated, 0 unchanged, 1 failed.")).toBeTruthy();
  for (const text of ["new-model", "dearer", "cheaper", "bad", "input_cost_per_token must not be negative"]) {
    expect(screen.getByText(text)).toBeTruthy();
  }
  expect(screen.getByText("Updated: 2")).toBeTruthy();
  expect(screen.queryByText(/Unchanged, or/)).toBeNull();
});
