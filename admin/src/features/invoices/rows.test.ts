import { expect, test } from "vitest";
import type { Reconciliation } from "./api";
import { csvOf, rowsOf } from "./rows";

const side = (outputTokens: number, costUsd: number | null) => ({
  inputTokens: 0,
  cacheReadTokens: 0,
  cacheWrite5mTokens: 0,
  cacheWrite1hTokens: 0,
  outputTokens,
  costUsd,
});

const DATA: Reconciliation = {
  startDate: "2026-11-18",
  endDate: "2026-11-18",
  completeUntil: "2026-11-20T22:00:00.000Z",
  providers: [
    {
      providerId: 3,
      providerName: "up, main",
      error: null,
      vendorCostUsd: 0.04,
      ledgerCostUsd: 0.01,
      differing: 1,
      lines: [
        {
          day: "2026-11-18",
          model: "=m",
          part: "provider",
          requestedModels: ["=m"],
          apiKeyIds: ["apikey_1", "apikey_2"],
          vendor: side(9, null),
          ledger: side(5, 0.01),
          difference: side(4, null),
          requests: 2,
          failedRequests: 1,
          unpricedRequests: 0,
          cause: "failed_after_sent",
          explanation: "",
          requestsFilter: { providerId: 3, model: "=m", startDate: "", endDate: "" },
        },
      ],
    },
    {
      providerId: 4,
      providerName: "down",
      error: "the vendor refused the administration key",
      vendorCostUsd: 0,
      ledgerCostUsd: 0,
      differing: 0,
      lines: [],
    },
  ],
};

test("a file has a line for each day and model, and no formulas", () => {
  const [head, line, end] = csvOf(rowsOf(DATA)).slice(1).split("\r\n");
  const cells = line?.split(",") ?? [];
  expect(line?.startsWith('2026-11-18,"up, main",\'=m,provider,failed_after_sent,2,1,0,')).toBe(
    true,
  );
  // The provider's name contains a comma.
  expect(cells.length).toBe((head?.split(",").length ?? 0) + 1);
  expect(cells.at(-1)).toBe("apikey_1 apikey_2");
  expect(end).toBe("");
});
