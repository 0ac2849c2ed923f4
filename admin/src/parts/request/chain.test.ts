/** Reading of a decision chain, also with steps of later versions. */
import { expect, it } from "vitest";
import { decisionsOf, reasonOf } from "./chain";

const chain = (step: string, detail?: string) =>
  decisionsOf({
    decisionChain: [{ providerId: 1, providerName: "one", step, detail, atMs: 0 }],
  } as Parameters<typeof decisionsOf>[0]).passedOver[0];

it("reads the seconds of a cooldown", () => {
  const now = chain("cooldown", "in its cooldown for another 30 s");
  expect(reasonOf(now?.detail ?? "")).toEqual({ name: "cooldown", seconds: "30" });
});

it("lists a step of a later version under its own name", () => {
  expect(chain("something_new")?.step).toBe("something_new");
});
