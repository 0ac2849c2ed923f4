import { screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { useForm } from "react-hook-form";
import { expect, test, vi } from "vitest";
import { renderPart } from "@/test-page";
import { SettingsForm } from "./frame";

interface Values {
  title: string;
  zone: string;
}
const SAVED: Values = { title: "before", zone: "UTC" };
const save = vi.fn<(values: Values) => Promise<Values>>();

function Settings() {
  const form = useForm<Values>({ defaultValues: SAVED });
  return (
    <SettingsForm form={form} saved={SAVED} onSubmit={save}>
      <input aria-label="Title" {...form.register("title")} />
      <input aria-label="Zone" {...form.register("zone")} />
    </SettingsForm>
  );
}

test("what is typed while it is being saved stays, and is unsaved", async () => {
  const user = userEvent.setup();
  let answer: (saved: Values) => void = () => {};
  save.mockImplementation(() => new Promise((resolve) => (answer = resolve)));
  await renderPart(<Settings />);
  const [title, zone] = ["Title", "Zone"].map((name) =>
    screen.getByLabelText<HTMLInputElement>(name),
  );
  await user.type(title as HTMLElement, " ");
  await user.click(screen.getByRole("button", { name: "Save" }));
  await user.type(zone as HTMLElement, "+1");
  // The gateway saves the title without the space.
  answer({ title: "before", zone: "UTC" });
  await screen.findByText("Saved");
  expect([title?.value, zone?.value]).toEqual(["before", "UTC+1"]);
  save.mockResolvedValue({ title: "before", zone: "UTC+1" });
  await user.click(screen.getByRole("button", { name: "Save" }));
  expect(save).toHaveBeenLastCalledWith({ title: "before", zone: "UTC+1" });
  await waitFor(() => expect(screen.queryByRole("button", { name: "Save" })).toBeNull());
});
