import { act, screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { beforeEach, expect, test, vi } from "vitest";
import { ApiError, call, whenLoggedOut } from "@/api/client";
import { renderPart } from "@/test-page";
import { useDiscard } from "@/ui/discard";
import { type Session, SessionContext, SessionProvider, useLogout, useUsers } from "./session";

vi.mock("@/api/client", async (original) => ({
  ...(await original<object>()),
  call: vi.fn(),
  whenLoggedOut: vi.fn(),
}));

const asked: string[] = [];
const NONE = { current: 0, reserved: 0, limit: null, resetAt: null };
const NOTHING_SPENT = Object.fromEntries(
  ["cost5h", "costDaily", "costWeekly", "costMonthly", "costTotal"].map((window) => [window, NONE]),
);

beforeEach(() => {
  asked.length = 0;
  vi.mocked(call).mockImplementation((async (operation: string) => {
    asked.push(operation);
    if (operation.endsWith("getUsers"))
      return [
        { name: "ada", keys: [] },
        { name: "bob", keys: [] },
      ];
    if (operation.endsWith("getKeys")) return [];
    if (operation.endsWith("getUserLimitUsage")) return NOTHING_SPENT;
    return { user: { id: 1, name: "ada" } };
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
  expect(asked).toEqual(["auth/whoami", "actions/keys/getKeys", "actions/users/getUserLimitUsage"]);
});

/** A page with a button to log out, and unsaved input if it is `dirty`. */
function Page({ dirty }: { dirty: boolean }) {
  const logout = useLogout();
  useDiscard(dirty, () => {});
  return (
    <button type="button" onClick={() => void logout()}>
      Log out
    </button>
  );
}
const inSession = async (dirty = false) => ({
  user: userEvent.setup(),
  ...(await renderPart(
    <SessionProvider>
      <Page dirty={dirty} />
    </SessionProvider>,
  )),
});
/** What the client does when the gateway answers 401. */
const end = () => act(() => vi.mocked(whenLoggedOut).mock.lastCall?.[0]());
const question = (name: string) => screen.queryByRole("dialog", { name });

test("a logout leads to the login; one that fails stays and says why", async () => {
  const { user, router } = await inSession();
  const button = await screen.findByRole("button", { name: "Log out" });
  vi.mocked(call).mockRejectedValueOnce(new ApiError(503, "DATABASE", "the database is away"));
  await user.click(button);
  expect(await screen.findByText("You are still logged in: the database is away")).toBeTruthy();
  expect(router.history.location.pathname).toBe("/");
  await user.click(button);
  await waitFor(() => expect(router.history.location.pathname).toBe("/login"));
});

test("unsaved input is asked about before the logout", async () => {
  const { user, router } = await inSession(true);
  await user.click(await screen.findByRole("button", { name: "Log out" }));
  expect(await screen.findByText("Discard your changes?")).toBeTruthy();
  await user.click(screen.getByRole("button", { name: "Cancel" }));
  expect(asked).not.toContain("auth/logout");
  await user.click(screen.getByRole("button", { name: "Log out" }));
  await user.click(await screen.findByRole("button", { name: "Discard" }));
  await waitFor(() => expect(router.history.location.pathname).toBe("/login"));
  expect(asked).toContain("auth/logout");
});

test("the end of the session leads to the login", async () => {
  const { router } = await inSession();
  await screen.findByRole("button", { name: "Log out" });
  end();
  await waitFor(() => expect(router.history.location.pathname).toBe("/login"));
  expect(router.history.location.search).toContain("from=");
});

test("unsaved input stays when the session ends, and its user is told once", async () => {
  const { user, router, cache } = await inSession(true);
  await screen.findByRole("button", { name: "Log out" });
  end();
  await user.click(await screen.findByRole("button", { name: "Cancel" }));
  end();
  expect(question("Your session has ended")).toBeNull();
  expect(router.history.location.pathname).toBe("/");
  // They logged in again, and that session ends too.
  await cache.refetchQueries({ queryKey: ["whoami"] });
  await waitFor(() => {
    end();
    expect(question("Your session has ended")).toBeTruthy();
  });
});

test("everything is read again when another tab logged in as another user", async () => {
  const { cache, router } = await inSession();
  await screen.findByRole("button", { name: "Log out" });
  cache.setQueryData(["users"], ["ada's"]);
  const again = vi.spyOn(router, "invalidate");
  act(() => void cache.setQueryData(["whoami"], { userId: 2, role: "user" }));
  await waitFor(() => expect(again).toHaveBeenCalledOnce());
  expect(cache.getQueryData(["users"])).toBeUndefined();
  // The same caller again.
  cache.setQueryData(["users"], ["bob's"]);
  act(() => void cache.setQueryData(["whoami"], { userId: 2, role: "user", version: "2" }));
  expect(cache.getQueryData(["users"])).toEqual(["bob's"]);
});
