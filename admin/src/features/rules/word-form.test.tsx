import { screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { beforeEach, expect, test, vi } from "vitest";
import { ApiError, call } from "@/api/client";
import { renderPart } from "@/test-page";
import type { Word } from "./api";
import { WordForm } from "./word-form";

vi.mock("@/api/client", async (original) => ({ ...(await original<object>()), call: vi.fn() }));
const server = vi.mocked(call);
beforeEach(() => {
  server.mockReset();
});

const WORD: Word = {
  id: 7,
  word: "bluebird",
  matchType: "contains",
  description: "a project",
  isEnabled: true,
  createdAt: "2026-01-01T00:00:00Z",
  updatedAt: "2026-01-01T00:00:00Z",
};

test("a refused pattern is shown at its field with the gateway's message; input is kept", async () => {
  const user = userEvent.setup();
  const onClose = vi.fn();
  const words = "word: a repeat without an upper bound stands within another one";
  server.mockRejectedValue(new ApiError(400, "INVALID_FORMAT", words, { field: "word" }));
  await renderPart(<WordForm word={null} onClose={onClose} />);
  await user.selectOptions(screen.getByLabelText("Compared by"), "regex");
  await user.type(screen.getByLabelText("Pattern"), "(a+)+");
  await user.click(screen.getByRole("button", { name: "Create" }));

  const field = screen.getByLabelText<HTMLInputElement>("Pattern");
  expect(
    await screen.findByText("a repeat without an upper bound stands within another one"),
  ).toBeTruthy();
  expect(field.getAttribute("aria-invalid")).toBe("true");
  expect(field.value).toBe("(a+)+");
  expect(onClose).not.toHaveBeenCalled();
});

test("an edit sends what was changed alone, and nothing when nothing was", async () => {
  const user = userEvent.setup();
  const onClose = vi.fn();
  server.mockResolvedValue(WORD);
  await renderPart(<WordForm word={WORD} onClose={onClose} />);
  await user.click(screen.getByRole("button", { name: "Save" }));
  expect(server).not.toHaveBeenCalled();
  expect(onClose).toHaveBeenCalledOnce();

  await user.clear(screen.getByLabelText(/Description/));
  await user.click(screen.getByRole("button", { name: "Save" }));
  expect(server).toHaveBeenCalledExactlyOnceWith(
    "actions/sensitive-words/updateSensitiveWordAction",
    {
      id: 7,
      description: "",
    },
  );
});

test("deleting asks once, names the word, and does nothing when refused", async () => {
  const user = userEvent.setup();
  server.mockResolvedValue(undefined);
  await renderPart(<WordForm word={WORD} onClose={vi.fn()} />);
  await user.click(screen.getByRole("button", { name: "Delete" }));
  const question = await screen.findByRole("dialog", { name: "Delete “bluebird”?" });
  await user.click(
    [...question.querySelectorAll("button")].find(
      (one) => one.textContent === "Cancel",
    ) as HTMLElement,
  );
  expect(server).not.toHaveBeenCalled();
  await user.click(screen.getByRole("button", { name: "Delete" }));
  await user.click(await screen.findByRole("button", { name: "Delete word" }));
  expect(server).toHaveBeenCalledExactlyOnceWith(
    "actions/sensitive-words/deleteSensitiveWordAction",
    { id: 7 },
  );
});
