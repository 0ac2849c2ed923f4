import { screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { beforeEach, expect, test, vi } from "vitest";
import { ApiError, call } from "@/api/client";
import { renderPart } from "@/test-page";
import type { Price } from "./api";
import { PriceEditor } from "./editor";

vi.mock("@/api/client", async (original) => ({ ...(await original<object>()), call: vi.fn() }));
const server = vi.mocked(call);
beforeEach(() => {
  server.mockReset();
});

const PRICE: Price = {
  modelName: "m",
  priceData: { mode: "chat", input_cost_per_token: 3e-6, supports_vision: true },
  unapplied: [],
  webSearchUsd: null,
  fastFactor: null,
  usFactor: null,
  source: "sync",
  updatedAt: "2026-01-01T00:00:00Z",
};
const editor = (price: Price | null, onClose = vi.fn()) => (
  <PriceEditor price={price} taken={new Set(["m"])} onClose={onClose} />
);
const open = (price: Price | null, onClose = vi.fn()) => renderPart(editor(price, onClose));

test("rates are entered per million and saved per token; other fields stay", async () => {
  const user = userEvent.setup();
  const onClose = vi.fn();
  server.mockResolvedValue(PRICE);
  await open(PRICE, onClose);
  expect(screen.getByLabelText<HTMLInputElement>("Input").value).toBe("3");
  await user.type(screen.getByLabelText("Output"), "0.075");
  await user.click(screen.getByRole("button", { name: "Save" }));
  expect(server).toHaveBeenCalledExactlyOnceWith("actions/model-prices/upsertModelPrice", {
    modelName: "m",
    priceData: { ...PRICE.priceData, output_cost_per_token: 7.5e-8 },
    force: false,
  });
  expect(onClose).toHaveBeenCalledWith("m");
});

test("a rate that another administrator saved meanwhile stays", async () => {
  const user = userEvent.setup();
  server.mockResolvedValue(PRICE);
  const { show } = await open(PRICE);
  await user.type(screen.getByLabelText("Output"), "5");
  const theirs = { ...PRICE.priceData, input_cost_per_token: 9e-6 } as Price["priceData"];
  show(editor({ ...PRICE, priceData: theirs }));
  await user.click(screen.getByRole("button", { name: "Save" }));
  expect(server).toHaveBeenCalledExactlyOnceWith("actions/model-prices/upsertModelPrice", {
    modelName: "m",
    priceData: { ...theirs, output_cost_per_token: 5e-6 },
    force: false,
  });
});

test("input that is not a price is refused before it is sent, each fault at its field", async () => {
  const user = userEvent.setup();
  await open(null);
  await user.type(screen.getByLabelText("Model"), "m");
  await user.type(screen.getByLabelText("Input"), "3 USD");
  await user.type(screen.getByLabelText("Output"), "-1");
  await user.click(screen.getByRole("button", { name: "Save" }));
  expect(
    await screen.findByText("There is a price for this model already; edit it instead"),
  ).toBeTruthy();
  expect(screen.getByText("Enter a number, such as 2.50")).toBeTruthy();
  expect(screen.getByText("A price cannot be negative")).toBeTruthy();
  expect(server).not.toHaveBeenCalled();
});

test("the server's refusal of one rate stands at that rate", async () => {
  const user = userEvent.setup();
  const message = "priceData: input_cost_per_token_above_200k_tokens must not be above 1 USD";
  const rate = "input_cost_per_token_above_200k_tokens";
  const params = { field: "priceData", reason: "price_too_large", rate, max: "1" };
  server.mockRejectedValue(new ApiError(400, "INVALID_FORMAT", message, params));
  await open(PRICE);
  await user.type(screen.getByLabelText("Input above 200k"), "2000000");
  await user.click(screen.getByRole("button", { name: "Save" }));
  expect(
    await screen.findByText("input_cost_per_token_above_200k_tokens must not be above 1 USD"),
  ).toBeTruthy();
  expect(screen.getByLabelText("Input above 200k").getAttribute("aria-invalid")).toBe("true");
  expect(screen.getByLabelText("Input").getAttribute("aria-invalid")).toBeNull();
});
