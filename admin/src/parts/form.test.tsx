import { screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { useForm } from "react-hook-form";
import { expect, test, vi } from "vitest";
import { ApiError } from "@/api/client";
import { speak } from "@/i18n";
import { renderPart } from "@/test-page";
import { Field, Input } from "@/ui/field";
import { FormDialog } from "./form";

const then = vi.fn();
const save = vi.fn<(values: object) => Promise<() => void>>();
const onClose = vi.fn();

function Form() {
  const form = useForm({
    defaultValues: { name: "before", hidden: "", other: "", folded: "", dailyResetTime: "" },
  });
  const { errors } = form.formState;
  return (
    <FormDialog
      title="A form"
      form={form}
      onSubmit={save}
      onClose={onClose}
      submit="Save"
      names={{ DUPLICATE_NAME: "name" }}
      units={{ other: 60_000 }}
    >
      <Field label="Name" error={errors.name?.message}>
        {(ids) => <Input {...ids} {...form.register("name")} />}
      </Field>
      <Field label="Other" error={errors.other?.message}>
        {(ids) => <Input {...ids} {...form.register("other")} />}
      </Field>
      <details data-testid="more">
        <Field label="Folded" error={errors.folded?.message}>
          {(ids) => <Input {...ids} {...form.register("folded")} />}
        </Field>
      </details>
    </FormDialog>
  );
}

async function open() {
  save.mockReset().mockResolvedValue(then);
  then.mockReset();
  onClose.mockReset();
  const page = await renderPart(<Form />);
  return {
    user: userEvent.setup(),
    field: screen.getByLabelText<HTMLInputElement>("Name"),
    ...page,
  };
}
const answer = async (user: ReturnType<typeof userEvent.setup>, name: string) => {
  const question = await screen.findByRole("dialog", { name: "Discard your changes?" });
  await user.click(
    [...question.querySelectorAll("button")].find((one) => one.textContent === name) as HTMLElement,
  );
};

test("an unchanged form closes at once; a changed one asks, and keeps its input until then", async () => {
  const { user, field } = await open();
  await user.click(screen.getByRole("button", { name: "Cancel" }));
  expect(onClose).toHaveBeenCalledOnce();
  await user.type(field, " and after");
  await user.keyboard("{Escape}");
  await answer(user, "Cancel");
  expect(field.value).toBe("before and after");
  expect(onClose).toHaveBeenCalledOnce();
  await user.keyboard("{Escape}");
  await answer(user, "Discard");
  await waitFor(() => expect(onClose).toHaveBeenCalledTimes(2));
});

test("going to another page asks as well, until it is saved", async () => {
  const { user, field, router } = await open();
  await user.type(field, "!");
  void router.navigate({ href: "/elsewhere" });
  await answer(user, "Cancel");
  expect(router.history.location.pathname).toBe("/");
  save.mockImplementation(async () => {
    void router.navigate({ href: "/elsewhere" });
    return then;
  });
  await user.click(screen.getByRole("button", { name: "Save" }));
  await waitFor(() => expect(router.history.location.pathname).toBe("/elsewhere"));
  expect(onClose).toHaveBeenCalledOnce();
  expect(screen.queryByRole("dialog", { name: "Discard your changes?" })).toBeNull();
});

test("a form that is being saved neither closes nor asks; then it closes, and what follows comes", async () => {
  const { user, field } = await open();
  let saved: (after: () => void) => void = () => {};
  save.mockImplementation(() => new Promise((resolve) => (saved = resolve)));
  await user.type(field, "!");
  await user.click(screen.getByRole("button", { name: "Save" }));
  await user.keyboard("{Escape}");
  await user.click(screen.getByRole("button", { name: "Close" }));
  expect(screen.getByRole("button", { name: "Cancel" })).toHaveProperty("disabled", true);
  expect(screen.queryByRole("dialog", { name: "Discard your changes?" })).toBeNull();
  expect(onClose).not.toHaveBeenCalled();
  const closed = vi.fn();
  saved(() => closed(onClose.mock.calls.length));
  await waitFor(() => expect(closed).toHaveBeenCalledWith(1));
});

test("a refused form asks again before it closes", async () => {
  const { user, field } = await open();
  save.mockRejectedValueOnce(new ApiError(400, "CANNOT_DISABLE_LAST_KEY", "it is the last key"));
  await user.type(field, "!");
  await user.click(screen.getByRole("button", { name: "Save" }));
  await screen.findByText("it is the last key");
  await user.keyboard("{Escape}");
  await answer(user, "Discard");
  await waitFor(() => expect(onClose).toHaveBeenCalledOnce());
});

test("a refusal is shown at its field, by name or by code, else beside the buttons", async () => {
  const { user, field } = await open();
  const refusals = [
    [
      new ApiError(400, "MAX_LENGTH", "name: must be at most 3 characters", { field: "name" }),
      true,
    ],
    [new ApiError(400, "DUPLICATE_NAME", "there is a key of this name"), true],
    [new ApiError(400, "CANNOT_DISABLE_LAST_KEY", "it is the last key"), false],
    // A field that is not drawn just now.
    [new ApiError(400, "INVALID_FORMAT", "hidden: is odd", { field: "hidden" }), false],
  ] as const;
  for (const [refusal, atField] of refusals) {
    save.mockRejectedValueOnce(refusal);
    await user.type(field, "x");
    await user.click(screen.getByRole("button", { name: "Save" }));
    expect(await screen.findByText(refusal.message.replace("name: ", ""))).toBeTruthy();
    expect(field.getAttribute("aria-invalid")).toBe(atField ? "true" : null);
    expect(screen.getAllByRole("alert")).toHaveLength(1);
  }
  expect(field.value).toBe("beforexxxx");
  expect(onClose).not.toHaveBeenCalled();
});

test("a limit is shown in the field's unit", async () => {
  const { user, field } = await open();
  const cases = [
    [{ min: 1000 }, "must be at least 1000", "must be at least 0.0167"],
    [{ max: 86_400_000 }, "must be at most 86400000", "must be at most 1440"],
    [{}, "must be a number", "must be a number"],
  ] as const;
  for (const [limit, said, shown] of cases) {
    save.mockRejectedValueOnce(
      new ApiError(400, "MIN_VALUE", `other: ${said}`, { field: "other", ...limit }),
    );
    await user.type(field, "x");
    await user.click(screen.getByRole("button", { name: "Save" }));
    expect(await screen.findByText(shown)).toBeTruthy();
  }
});

test("all faults of a refusal are shown at once, each at its field", async () => {
  const { user, field } = await open();
  const faults = [
    { field: "name", errorCode: "REQUIRED_FIELD", error: "name: is required" },
    {
      field: "updates.other[2]",
      errorCode: "MIN_LENGTH",
      error: "updates.other[2]: must not be empty",
    },
  ];
  save.mockRejectedValueOnce(
    new ApiError(400, "REQUIRED_FIELD", "name: is required", { field: "name", faults }),
  );
  await user.type(field, "x");
  await user.click(screen.getByRole("button", { name: "Save" }));
  expect(await screen.findByText("is required")).toBeTruthy();
  expect(screen.getByText("must not be empty")).toBeTruthy();
  expect(screen.getAllByRole("alert")).toHaveLength(2);
  expect(field.getAttribute("aria-invalid")).toBe("true");
});

test("a fault of a field that is not rendered has the form's label, in both languages", async () => {
  const { user, field } = await open();
  // The form has the first, but does not draw it just now; the second it does not have at all.
  const faults = [
    { field: "dailyResetTime", errorCode: "ODD", error: "dailyResetTime: is odd" },
    {
      field: "updates.allowedModels[1]",
      errorCode: "ODD",
      error: "updates.allowedModels[1]: is odder",
    },
    { field: "name", errorCode: "REQUIRED_FIELD", error: "name: is required" },
  ];
  const refusal = () => new ApiError(400, "ODD", "dailyResetTime: is odd", { faults });
  try {
    for (const [language, expected] of [
      ["en", "Models: is odder · Day begins at: is odd"],
      ["zh", "模型：is odder · 每日起始时间：is odd"],
    ] as const) {
      await speak(language);
      save.mockRejectedValueOnce(refusal());
      await user.type(field, "x");
      await user.click(screen.getByRole("button", { name: "Save" }));
      expect(await screen.findByText(expected)).toBeTruthy();
      expect(field.getAttribute("aria-invalid")).toBe("true");
    }
  } finally {
    await speak("en");
  }
});

test("a fault in a folded part of the form opens it and puts the cursor there", async () => {
  const { user, field } = await open();
  save.mockRejectedValueOnce(
    new ApiError(400, "INVALID_FORMAT", "folded: is odd", { field: "folded" }),
  );
  await user.type(field, "x");
  await user.click(screen.getByRole("button", { name: "Save" }));
  expect(await screen.findByText("is odd")).toBeTruthy();
  expect(screen.getByTestId<HTMLDetailsElement>("more").open).toBe(true);
  await waitFor(() => expect(document.activeElement).toBe(screen.getByLabelText("Folded")));
  expect(screen.getAllByRole("alert")).toHaveLength(1);
});
