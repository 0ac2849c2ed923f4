import { screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { beforeEach, expect, test, vi } from "vitest";
import { callAny } from "@/api/client";
import { renderPart } from "@/test-page";
import type { Trial } from "./api";
import { Tester } from "./tester";

vi.mock("@/api/client", async (original) => ({ ...(await original<object>()), callAny: vi.fn() }));
const server = vi.mocked(callAny);
beforeEach(() => {
  server.mockReset();
});

const NOTHING: Trial = {
  message: "the model is on holiday",
  type: null,
  code: null,
  matches: [],
  class: "PROVIDER_ERROR",
  reason: "overloaded",
  statusCode: null,
  replies: {},
};

test("an error without a matching rule is the provider's, and can become a rule", async () => {
  const user = userEvent.setup();
  const onMakeRule = vi.fn();
  server.mockResolvedValue(NOTHING);
  await renderPart(<Tester onClose={vi.fn()} onMakeRule={onMakeRule} />);
  await user.click(screen.getByRole("button", { name: "Test" }));
  expect(server).not.toHaveBeenCalled();
  await user.type(screen.getByLabelText("Error text"), "the model is on holiday");
  await user.clear(screen.getByLabelText("Upstream's status"));
  await user.type(screen.getByLabelText("Upstream's status"), "503");
  await user.click(screen.getByRole("button", { name: "Test" }));
  expect(server).toHaveBeenCalledExactlyOnceWith("ui/error-rules/test", {
    message: "the model is on holiday",
    statusCode: 503,
  });
  expect(
    await screen.findByText("Counts as the provider's error: the next provider is tried"),
  ).toBeTruthy();
  await user.click(screen.getByRole("button", { name: "Make a rule for it" }));
  expect(onMakeRule).toHaveBeenCalledExactlyOnceWith({
    pattern: "the model is on holiday",
    appliesTo: "all",
  });
});

test("the rule that decides and every format's reply are shown", async () => {
  const user = userEvent.setup();
  const rule = {
    id: 3,
    pattern: "holiday",
    matchType: "contains",
    category: "prompt_limit",
    priority: 5,
  };
  const replies = { "alt-cli": { error: { status: "A" } }, native: { type: "error" } };
  server.mockResolvedValue({
    ...NOTHING,
    matches: [rule, { ...rule, id: 4, pattern: "model" }],
    class: "NON_RETRYABLE_CLIENT_ERROR",
    reason: "prompt_limit",
    statusCode: 422,
    replies,
  });
  await renderPart(<Tester onClose={vi.fn()} onMakeRule={vi.fn()} />);
  await user.type(screen.getByLabelText("Error text"), "x");
  await user.click(screen.getByRole("button", { name: "Test" }));
  expect(await screen.findByText("Goes back to the client at once, with status 422")).toBeTruthy();
  expect(screen.getByText("Rule 3 decides: Prompt too long.")).toBeTruthy();
  expect(screen.getAllByRole("tab").map((tab) => tab.textContent)).toEqual(["native", "alt-cli"]);
  expect(screen.queryByRole("button", { name: "Make a rule for it" })).toBeNull();
  await user.click(screen.getByRole("tab", { name: "alt-cli" }));
  expect(screen.getByText(/"status": "A"/)).toBeTruthy();
});
