import { screen } from "@testing-library/react";
import { expect, test } from "vitest";
import { renderPart } from "@/test-page";
import { Meters, type Usage } from "./limits";

test("the reserved cost of in-flight requests is shown beside the amount spent", async () => {
  const none = { current: 0, reserved: 0, limit: null, resetAt: null };
  const usage = {
    cost5h: none,
    costDaily: { current: 8, reserved: 0.5, limit: 10, resetAt: null },
    costWeekly: { ...none, current: 8, reserved: 0.5 },
    costMonthly: { ...none, current: 8, limit: 100 },
    costTotal: none,
    concurrentSessions: { current: 1, limit: 0 },
  } as Usage;
  const { container } = await renderPart(<Meters usage={usage} />);
  expect(screen.getAllByText("$0.50 reserved")).toHaveLength(2);
  expect(screen.getByText("80%")).toBeTruthy();
  // A paler piece follows the bar where there is a limit to compare with.
  expect(container.querySelectorAll(".opacity-40")).toHaveLength(1);
});
