/** Reading of a decision chain: steps of older and of later versions. */
import { expect, it } from "vitest";
import { decisionsOf, reasonOf } from "./chain";

const chain = (step: string, detail?: string) =>
  decisionsOf({
    decisionChain: [{ providerId: 1, providerName: "one", step, detail, atMs: 0 }],
  } as Parameters<typeof decisionsOf>[0]).passedOver[0];

it("reads the former name of a cooldown", () => {
  const old = chain("resting", "asked for a rest of another 30 s");
  const now = chain("cooldown", "in its cooldown for another 30 s");
  expect(old?.step).toBe("cooldown");
  expect(reasonOf(old?.detail ?? "")).toEqual({ name: "cooldown", seconds: "30" });
  expect(reasonOf(now?.detail ?? "")).toEqual(reasonOf(old?.detail ?? ""));
});

it("lists a step of a later version under its own name", () => {
  expect(chain("something_new")?.step).toBe("something_new");
});
