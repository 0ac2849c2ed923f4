import { screen, waitFor } from "@testing-library/react";
import { beforeEach, expect, test, vi } from "vitest";
import { call } from "@/api/client";
import { renderPart } from "@/test-page";
import { useFirstSteps, usePricesLooked } from "./first-steps";

vi.mock("@/api/client", async (original) => ({ ...(await original<object>()), call: vi.fn() }));

let source = "seed";
beforeEach(() => {
  source = "seed";
  localStorage.clear();
  vi.mocked(call).mockImplementation((async (operation: string) => {
    if (operation.endsWith("getUsageLogs")) return { logs: [] };
    if (operation.endsWith("getModelPrices")) return [{ modelName: "claude-sonnet-4-5", source }];
    return [];
  }) as never);
});

function Steps({ shown = false }: { shown?: boolean }) {
  usePricesLooked(shown);
  const { guide } = useFirstSteps();
  return <p>{guide?.steps.map(({ id, done }) => `${id} ${done ? "done" : "open"}`).join(", ")}</p>;
}

test("the built-in price table does not count as checked until its page was opened", async () => {
  const { unmount } = await renderPart(<Steps />);
  expect(await screen.findByText(/prices open/)).toBeTruthy();
  unmount();
  await renderPart(<Steps shown />);
  expect(await screen.findByText(/prices done/)).toBeTruthy();
  expect(localStorage.getItem("tollgate.prices-looked-at")).toBe("true");
});

test("a table that was synchronised or entered is checked", async () => {
  source = "sync";
  await renderPart(<Steps />);
  await waitFor(() => expect(screen.getByText(/prices done/)).toBeTruthy());
});
