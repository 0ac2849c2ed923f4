import { screen } from "@testing-library/react";
import { expect, test } from "vitest";
import { renderPart } from "@/test-page";
import { Cost } from "./cost";
import type { Entry } from "./entry";

const entry = (more: Partial<Entry>) =>
  ({
    costUsd: 0,
    costMultiplier: 0,
    inputTokens: 1000,
    outputTokens: 500,
    parts: [],
    ...more,
  }) as Entry;

test("what the client's own account paid stands beside the cost of nothing", async () => {
  const { unmount } = await renderPart(
    <Cost entry={entry({ notionalCostUsd: 0.002 })} detail={undefined} />,
  );
  expect(screen.getByText(/own account paid\. At list price: \$0\.002\./)).toBeTruthy();
  unmount();
  await renderPart(<Cost entry={entry({ notionalCostUsd: null })} detail={undefined} />);
  expect(screen.queryByText(/own account paid/)).toBeNull();
});
