import { screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { beforeEach, expect, test, vi } from "vitest";
import { ApiError, call } from "@/api/client";
import { SessionContext } from "@/parts/session";
import { renderPart } from "@/test-page";
import { KeyForm } from "./key-form";
import type { Key, User } from "./values";

vi.mock("@/api/client", async (original) => ({ ...(await original<object>()), call: vi.fn() }));
const server = vi.mocked(call);

const ADMIN = { role: "admin", readOnly: false, timeZone: "UTC" } as never;
const ANN = { id: 1, name: "ann", limitDailyUsd: 5 } as unknown as User;
const KEY = { id: 3, name: "cli", isEnabled: true, canLoginWebUi: true } as unknown as Key;

let refusal: ApiError;
beforeEach(() => {
  server.mockReset();
  server.mockImplementation((async (operation: string) => {
    if (operation.endsWith("getProviders")) return [];
    throw refusal;
  }) as never);
});

test("each of the gateway's rules about keys is shown at its field, and the form stays open", async () => {
  const user = userEvent.setup();
  const onClose = vi.fn();
  await renderPart(
    <SessionContext value={ADMIN}>
      <KeyForm user={ANN} value={KEY} onClose={onClose} onCreated={vi.fn()} />
    </SessionContext>,
  );
  const cases = [
    ["DUPLICATE_NAME", 'this user already has a key named "cli"', "Name"],
    [
      "KEY_LIMIT_DAILY_EXCEEDS_USER_LIMIT",
      "the key's daily limit (9) is above the user's (5)",
      "Daily",
    ],
    ["CANNOT_DISABLE_LAST_KEY", "a user's last usable key cannot be disabled", /^Enabled/],
    ["NO_GROUP_PERMISSION", "you hold no key of these provider groups: lab", "Provider groups"],
  ] as const;
  await user.type(screen.getByLabelText("Daily"), "9");
  for (const [code, words, label] of cases) {
    refusal = new ApiError(400, code, words);
    await user.click(screen.getByRole("button", { name: "Save" }));
    expect(await screen.findByText(words), code).toBeTruthy();
    expect(screen.getByLabelText(label).getAttribute("aria-invalid"), code).toBe("true");
  }
  expect(screen.getByLabelText<HTMLInputElement>("Daily").value).toBe("9");
  expect(onClose).not.toHaveBeenCalled();
});

test("a user sees why locked limits cannot be changed; an administrator changes them", async () => {
  const ada = { ...ANN, lockKeyLimits: true } as User;
  const self = { role: "user", readOnly: false, timeZone: "UTC" } as never;
  const shown = async (session: never, value?: Key) => {
    const { unmount } = await renderPart(
      <SessionContext value={session}>
        <KeyForm user={ada} value={value} onClose={vi.fn()} onCreated={vi.fn()} />
      </SessionContext>,
    );
    const limits = ["5 hours", "Daily", "Weekly", "Monthly", "In total"].map((name) =>
      screen.getByLabelText(name),
    );
    const text = document.body.textContent ?? "";
    const result = {
      locked: limits.map((field) => field.matches(":disabled")),
      name: screen.getByLabelText("Name"),
      text,
    };
    const free = !result.name.matches(":disabled");
    unmount();
    return { ...result, free };
  };
  const edit = await shown(self, KEY);
  expect(edit.locked).toEqual([true, true, true, true, true]);
  expect(edit.text).toContain("Only an administrator can change the limits of your keys.");
  expect(edit.free).toBe(true);
  const added = await shown(self);
  expect(added.locked).toEqual([true, true, true, true, true]);
  expect(added.text).toContain("tightest limits of your other keys");
  expect((await shown(ADMIN, KEY)).locked).toEqual([false, false, false, false, false]);
});
