import { screen } from "@testing-library/react";
import { expect, test, vi } from "vitest";
import { call } from "@/api/client";
import { renderPart } from "@/test-page";
import { CacheMisses } from "./cache-misses";

vi.mock("@/api/client", async (original) => ({ ...(await original<object>()), call: vi.fn() }));

const answer = (causes: object[]) =>
  vi.mocked(call).mockResolvedValue({
    totalCostUsd: 31,
    costUsd: 12.4,
    requests: 14,
    tokens: 2_000_000,
    causes,
  } as never);

test("causes have their share of what misses cost; first uses are none", async () => {
  answer([
    { cause: "first_use", requests: 90, tokens: 9, costUsd: 20 },
    { cause: "tools", requests: 10, tokens: 8, costUsd: 7.564 },
    { cause: "lifetime", requests: 4, tokens: 7, costUsd: 4.836 },
  ]);
  await renderPart(<CacheMisses />);
  expect(await screen.findByText(/\$12\.40 of \$31\.00/)).toBeTruthy();
  const shown = screen.getAllByRole("listitem").map((item) => item.textContent ?? "");
  expect(shown.length).toBe(2);
  expect(shown[0]).toMatch(/^Tools changed · 61%/);
  expect(shown[1]).toMatch(/^Lifetime over · 39%/);
});

test("a day without a loss says so", async () => {
  answer([{ cause: "first_use", requests: 90, tokens: 9, costUsd: 20 }]);
  await renderPart(<CacheMisses />);
  expect(await screen.findByText("No prompt cache was cold.")).toBeTruthy();
});
