import { fireEvent, screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { beforeEach, expect, test, vi } from "vitest";
import { call } from "@/api/client";
import { type Session, SessionContext } from "@/parts/session";
import { renderPart } from "@/test-page";
import { Palette } from "./palette";

vi.mock("@/api/client", async (original) => ({ ...(await original<object>()), call: vi.fn() }));

/** Answers the pending request for the list of models. */
let sendModels: (names: string[]) => void;
/** The list of users, which a test may hold back. */
let users: Promise<object[]>;

beforeEach(() => {
  const models = new Promise<string[]>((resolve) => {
    sendModels = resolve;
  });
  users = Promise.resolve([{ id: 7, name: "王小明", keys: [] }]);
  vi.mocked(call).mockImplementation((async (operation: string) => {
    if (operation.endsWith("getModelList")) return models;
    if (operation.endsWith("getUsers")) return users;
    if (operation.endsWith("getProviders")) return [{ id: 3, name: "hello upstream" }];
    return [];
  }) as never);
});

async function openPalette() {
  const onClose = vi.fn();
  const { router } = await renderPart(
    <SessionContext value={{ role: "admin", readOnly: false, userId: 7 } as Session}>
      <Palette open onClose={onClose} />
    </SessionContext>,
  );
  await screen.findByRole("option", { name: /Overview/ });
  return {
    onClose,
    router,
    input: screen.getByRole<HTMLInputElement>("combobox", { name: "Go to" }),
  };
}

const options = () => screen.getAllByRole("option").map((option) => option.textContent);
/** The selected option, which Enter opens. The input's `aria-activedescendant` must be its id. */
function active() {
  const [one, ...more] = screen.getAllByRole("option", { selected: true });
  expect(more).toEqual([]);
  expect(screen.getByRole("combobox").getAttribute("aria-activedescendant")).toBe(one?.id);
  return one?.textContent;
}

test("arrow keys move through the list and wrap around; Enter opens the active option", async () => {
  const { onClose, router, input } = await openPalette();
  expect(document.activeElement).toBe(input);
  const all = options();
  expect(active()).toBe(all[0]);
  await userEvent.keyboard("{ArrowUp}");
  expect(active()).toBe(all.at(-1));
  await userEvent.keyboard("{ArrowDown}{ArrowDown}");
  expect(active()).toBe(all[1]);
  await userEvent.keyboard("{Enter}");
  expect(onClose).toHaveBeenCalledOnce();
  await waitFor(() => expect(router.latestLocation.pathname).toBe("/logs"));
});

test("typing activates the first match, also when better matches arrive later", async () => {
  const { input } = await openPalette();
  await userEvent.keyboard("{ArrowDown}{ArrowDown}");
  await userEvent.type(input, "up");
  expect(active()).toContain("hello upstream");
  sendModels(["upper-1", "upper-2"]);
  await screen.findByRole("option", { name: /upper-2/ });
  expect(active()).toContain("upper-1");
  await userEvent.keyboard("{ArrowDown}{ArrowDown}");
  expect(active()).toContain("hello upstream");
  await userEvent.clear(input);
  await userEvent.type(input, "nothing has this name");
  expect(screen.queryAllByRole("option")).toEqual([]);
  expect(screen.getByText("Nothing by that name")).toBeTruthy();
});

test("a request id opens the request", async () => {
  const { router, input } = await openPalette();
  await userEvent.type(input, "019aa51c7a0070008000000000000001");
  await userEvent.keyboard("{Enter}");
  const id = "019aa51c-7a00-7000-8000-000000000001";
  await waitFor(() => expect(router.latestLocation.search).toEqual({ id, request: id }));
});

test("Enter that confirms Chinese input opens nothing; the next Enter opens the option", async () => {
  const { onClose, router, input } = await openPalette();
  fireEvent.change(input, { target: { value: "小明" } });
  await waitFor(() => expect(active()).toContain("王小明"));
  fireEvent.keyDown(input, { key: "Enter", isComposing: true });
  expect(onClose).not.toHaveBeenCalled();
  fireEvent.keyDown(input, { key: "Enter" });
  await waitFor(() => expect(router.latestLocation.search).toEqual({ user: 7 }));
});

test("Enter that comes before the lists opens the entry as it arrives, unless a key follows", async () => {
  let sendUsers: (users: object[]) => void = () => {};
  users = new Promise((resolve) => {
    sendUsers = resolve;
  });
  const { onClose, router, input } = await openPalette();
  await userEvent.type(input, "bob");
  expect(screen.getByText("Loading")).toBeTruthy();
  await userEvent.keyboard("{Enter}{Backspace}");
  sendModels(["bo-1", "other"]);
  await screen.findByRole("option", { name: /bo-1/ });
  expect(onClose).not.toHaveBeenCalled();
  await userEvent.keyboard("b{Enter}");
  expect(onClose).not.toHaveBeenCalled();
  // Also if it is pasted with the mouse.
  await userEvent.clear(input);
  await userEvent.paste("overview");
  expect(active()).toContain("Overview");
  expect(onClose).not.toHaveBeenCalled();
  await userEvent.clear(input);
  await userEvent.type(input, "bob{Enter}");
  sendUsers([{ id: 8, name: "bob", keys: [] }]);
  await waitFor(() => expect(router.latestLocation.search).toEqual({ user: 8 }));
  expect(onClose).toHaveBeenCalledOnce();
});

test("Home, End and Ctrl with a letter act on the input, not on the list", async () => {
  const { input } = await openPalette();
  const first = options()[0];
  for (const key of ["Home", "End"]) expect(fireEvent.keyDown(input, { key })).toBe(true);
  for (const key of ["n", "p", "j"])
    expect(fireEvent.keyDown(input, { key, ctrlKey: true })).toBe(true);
  expect(active()).toBe(first);
});

test("the pointer makes an option active, and a click opens it", async () => {
  const { onClose, router, input } = await openPalette();
  await userEvent.type(input, "se");
  const [first, second] = screen.getAllByRole("option");
  expect(active()).toBe(first?.textContent);
  await userEvent.hover(second as HTMLElement);
  expect(active()).toBe(second?.textContent);
  await userEvent.hover(screen.getByRole("option", { name: /Settings/ }));
  await userEvent.click(screen.getByRole("option", { name: /Settings/ }));
  expect(onClose).toHaveBeenCalledOnce();
  await waitFor(() => expect(router.latestLocation.pathname).toBe("/settings"));
});
