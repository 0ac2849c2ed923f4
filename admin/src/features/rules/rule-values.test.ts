import { expect, test } from "vitest";
import { bodyOf, formOf, NEW_RULE } from "./rule-values";

test("a rule comes back from its form as it was, with empty fields as none", () => {
  const rule = {
    ...NEW_RULE,
    pattern: "x",
    overrideStatusCode: 422,
    overrideResponse: "No.",
    priority: -3,
  };
  expect(bodyOf(formOf(rule))).toEqual(rule);
  expect(bodyOf(formOf(NEW_RULE))).toEqual(NEW_RULE);
  const emptied = {
    ...formOf(rule),
    overrideStatusCode: " ",
    overrideResponse: "\n",
    priority: "",
  };
  expect(bodyOf(emptied)).toEqual({
    ...rule,
    overrideStatusCode: null,
    overrideResponse: null,
    priority: 0,
  });
});
