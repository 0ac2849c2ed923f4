import { screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { beforeEach, expect, test, vi } from "vitest";
import { ApiError, call } from "@/api/client";
import { SessionContext } from "@/parts/session";
import { renderPart } from "@/test-page";
import { UserForm } from "./user-form";
import type { User } from "./values";

vi.mock("@/api/client", async (original) => ({ ...(await original<object>()), call: vi.fn() }));
const server = vi.mocked(call);

const ADMIN = { role: "admin", readOnly: false, timeZone: "UTC" } as never;
const ANN = { id: 1, name: "ann", limitDailyUsd: 5, keys: [] } as unknown as User;

let refusal: ApiError;
beforeEach(() => {
  server.mockReset();
  server.mockImplementation((async (operation: string) => {
    if (operation.endsWith("getProviders")) return [];
    throw refusal;
  }) as never);
});

test("a limit below that of a key is refused at its field, and the key is named", async () => {
  const user = userEvent.setup();
  const onClose = vi.fn();
  await renderPart(
    <SessionContext value={ADMIN}>
      <UserForm user={ANN} onClose={onClose} />
    </SessionContext>,
  );
  const cases = [
    ["5H", "5-hour", "5 hours"],
    ["DAILY", "daily", "Daily"],
    ["WEEKLY", "weekly", "Weekly"],
    ["MONTHLY", "monthly", "Monthly"],
    ["TOTAL", "total", "In total"],
    ["CONCURRENT", "concurrent sessions", "Sessions at once"],
  ] as const;
  for (const [kind, which, label] of cases) {
    const field = screen.getByLabelText<HTMLInputElement>(label);
    await user.clear(field);
    await user.type(field, "2");
    const words = `the ${which} limit (3) of the key "cli" is above the user's (2)`;
    const params = { name: "cli", keyLimit: "3", userLimit: "2" };
    refusal = new ApiError(400, `KEY_LIMIT_${kind}_EXCEEDS_USER_LIMIT`, words, params);
    await user.click(screen.getByRole("button", { name: "Save" }));
    expect(await screen.findByText(words), kind).toBeTruthy();
    expect(field.getAttribute("aria-invalid"), kind).toBe("true");
    expect(field.value).toBe("2");
  }
  expect(onClose).not.toHaveBeenCalled();
});

test("a field that another administrator saved meanwhile is not sent again", async () => {
  const user = userEvent.setup();
  server.mockResolvedValue([] as never);
  const form = (record: User) => (
    <SessionContext value={ADMIN}>
      <UserForm user={record} onClose={vi.fn()} />
    </SessionContext>
  );
  const { show } = await renderPart(form(ANN));
  await user.type(screen.getByLabelText("Weekly"), "9");
  show(form({ ...ANN, limitDailyUsd: 7 } as User));
  await user.click(screen.getByRole("button", { name: "Save" }));
  expect(server).toHaveBeenCalledWith("actions/users/editUser", {
    userId: 1,
    limitWeeklyUsd: "9",
  });
});
