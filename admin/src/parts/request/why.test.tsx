import { screen } from "@testing-library/react";
import { expect, test } from "vitest";
import { renderPart } from "@/test-page";
import type { Entry } from "./entry";
import { Why } from "./why";

const entry = {
  model: "m-20250929",
  priceModel: "m",
  serviceTier: "flex",
  costUsd: 0.5,
  costMultiplier: 1.5,
  inputTokens: 1000,
  cacheReadTokens: 200,
  cacheCreation5mTokens: 0,
  cacheCreation1hTokens: 0,
  outputTokens: 30,
  webSearches: 2,
  estimated: true,
} as Entry;
type Detail = NonNullable<Parameters<typeof Why>[0]["detail"]>;

test("one sentence names the entry, the tier, the tokens, the multiplier and the source", async () => {
  await renderPart(<Why entry={entry} detail={{ inputAbove: 200_000 } as Detail} />);
  expect(
    screen.getByText(
      "Priced by the entry m (the request asked for m-20250929) at flex-tier rates for input above 200,000 tokens, for 1,200 input and 30 output tokens and 2 web searches, × 1.5 (the provider’s multiplier); the usage is an estimate.",
    ),
  ).toBeTruthy();
});

test("a plain request has a plain sentence, and one that cost nothing says so", async () => {
  const plain = {
    ...entry,
    model: "m",
    serviceTier: "standard",
    costMultiplier: 1,
    webSearches: 0,
    estimated: false,
  };
  const { unmount } = await renderPart(<Why entry={plain} detail={undefined} />);
  expect(
    screen.getByText(
      "Priced by the entry m at standard rates, for 1,200 input and 30 output tokens; the usage is what the provider reported.",
    ),
  ).toBeTruthy();
  unmount();
  await renderPart(<Why entry={{ ...plain, priceModel: null }} detail={undefined} />);
  expect(screen.getByText("Nothing was charged for this request.")).toBeTruthy();
});
