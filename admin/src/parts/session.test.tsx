import { screen } from "@testing-library/react";
import { beforeEach, expect, test, vi } from "vitest";
import { call } from "@/api/client";
import { renderPart } from "@/test-page";
import { type Session, SessionContext, useUsers } from "./session";

vi.mock("@/api/client", async (original) => ({ ...(await original<object>()), call: vi.fn() }));

const asked: string[] = [];

beforeEach(() => {
  asked.length = 0;
  vi.mocked(call).mockImplementation((async (operation: string) => {
    asked.push(operation);
    if (operation.endsWith("getUsers")) return [{ name: "ada" }, { name: "bob" }];
    return { user: { name: "ada" } };
  }) as never);
});

function Names() {
  const { data } = useUsers();
  return <p>{data?.map((user) => user.name).join(", ")}</p>;
}

const shownTo = (session: Partial<Session>) =>
  renderPart(
    <SessionContext value={session as Session}>
      <Names />
    </SessionContext>,
  );

test("an administrator sees all users", async () => {
  await shownTo({ role: "admin", readOnly: false });
  expect(await screen.findByText("ada, bob")).toBeTruthy();
  expect(asked).toEqual(["actions/users/getUsers"]);
});

test("a user sees themselves, and the list of users is not asked for", async () => {
  await shownTo({ role: "user", readOnly: false });
  expect(await screen.findByText("ada")).toBeTruthy();
  expect(asked).toEqual(["auth/whoami"]);
});
