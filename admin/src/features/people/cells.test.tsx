import { screen } from "@testing-library/react";
import { expect, test } from "vitest";
import { renderPart } from "@/test-page";
import { Tightest } from "./cells";

test("what is spent of the tightest limit is shown with which one it is", async () => {
  const limit = { window: "daily", current: 1.7, limit: 2, percent: 85, resetAt: null };
  const { container } = await renderPart(<Tightest limit={limit} />);
  expect(screen.getByText("daily")).toBeTruthy();
  expect(container.textContent).toContain("$1.70 / $2.00");
  expect(screen.getByTitle("85% of the daily limit")).toBeTruthy();
  // Near: amber; the bar says as much.
  expect(container.querySelector(".bg-warn")?.getAttribute("style")).toContain("85%");
});

test("where there is no limit, it says so", async () => {
  await renderPart(<Tightest limit={null} />);
  expect(screen.getByText("no limit")).toBeTruthy();
});
