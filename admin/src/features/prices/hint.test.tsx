import { screen } from "@testing-library/react";
import { expect, test } from "vitest";
import { renderPart } from "@/test-page";
import type { Price } from "./api";
import { UnappliedHint } from "./hint";

const price = (modelName: string, unapplied: string[]): Price => ({
  modelName,
  priceData: { input_cost_per_token: 3e-6 },
  unapplied,
  webSearchUsd: null,
  fastFactor: null,
  usFactor: null,
  source: "sync",
  updatedAt: "2026-01-01T00:00:00Z",
});

test("prices that are not applied are listed by field, with the number of models", async () => {
  await renderPart(
    <UnappliedHint
      prices={[
        price("a", ["output_cost_per_second"]),
        price("b", ["output_cost_per_second", "input_cost_per_token_ultrafast"]),
        price("c", []),
      ]}
    />,
  );
  expect(screen.getByText("2 models have prices that are not applied")).toBeTruthy();
  const rows = screen.getAllByRole("listitem").map((row) => row.textContent);
  expect(rows).toEqual([
    "output_cost_per_second 2 models",
    "input_cost_per_token_ultrafast 1 model",
  ]);
});

test("a table of which everything is applied has no hint", async () => {
  await renderPart(<UnappliedHint prices={[price("a", [])]} />);
  expect(screen.queryByText(/not applied/)).toBeNull();
});
