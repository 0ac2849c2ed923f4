/** A request is explained once the log has it. */
import { fireEvent, screen } from "@testing-library/react";
import { expect, test, vi } from "vitest";
import { ApiError } from "@/api/client";
import { renderPart } from "@/test-page";
import { Today } from "./today";

const asked = vi.hoisted(() => vi.fn());
vi.mock("@/api/client", async (original) => ({ ...(await original<object>()), call: asked }));

test("what the log does not have yet is asked for again", async () => {
  asked
    .mockRejectedValueOnce(new ApiError(404, "NOT_FOUND", "there is no such request in the log"))
    .mockResolvedValue({ statusCode: 404, errorMessage: "no provider", decisionChain: [] });
  await renderPart(<Today requestId="1" />);
  fireEvent.click(screen.getByRole("button", { name: "By today's configuration" }));
  await screen.findByText(/It would be refused with 404/, {}, { timeout: 3000 });
  expect(asked).toHaveBeenCalledTimes(2);
});

test("another error is said at once", async () => {
  asked.mockReset();
  asked.mockRejectedValue(new ApiError(409, "OPERATION_FAILED", "its body was not stored"));
  await renderPart(<Today requestId="1" />);
  fireEvent.click(screen.getByRole("button", { name: "By today's configuration" }));
  await screen.findByRole("alert");
  expect(asked).toHaveBeenCalledTimes(1);
});
