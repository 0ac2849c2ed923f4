/** A key's renewal, and the change of many keys at once. */
import { type ReactNode, useState } from "react";
import { useTranslation } from "react-i18next";
import { type BodyOf, call } from "@/api/client";
import { DateField } from "@/parts/date-field";
import { useEditor } from "@/parts/editor";
import { FormDialog } from "@/parts/form";
import { useSession } from "@/parts/session";
import { orNull } from "@/parts/values";
import { Checkbox, Field, Input, NumberInput, Select } from "@/ui/field";
import { dayOf, useFormat } from "@/ui/format";
import { useToast } from "@/ui/toast";
import { CHANGED, KEY_RULES, type Key } from "./values";

/** A new expiry, and enabling the key with it. */
export function RenewKey({ value, onClose }: { value: Key; onClose: () => void }) {
  const { t } = useTranslation();
  const { timeZone } = useSession();
  const editor = useEditor({
    values: () => ({ expiresAt: dayOf(value.expiresAt, timeZone), enableKey: !value.isEnabled }),
    body: ({ expiresAt, enableKey }) => ({ expiresAt: orNull(expiresAt), enableKey }),
    create: (body) => call("actions/keys/renewKeyExpiresAt", { keyId: value.id, ...body }),
    rereads: CHANGED,
  });
  const { form } = editor;
  return (
    <FormDialog
      {...editor}
      title={t("people.renewKey", { name: value.name })}
      onClose={onClose}
      submit={t("ui.save")}
      width="max-w-md"
    >
      <DateField
        form={form}
        name="expiresAt"
        label={t("people.expiresAt")}
        help={t("people.expiresHelp")}
      />
      {!value.isEnabled && (
        <Checkbox label={t("people.enableToo")} {...form.register("enableKey")} />
      )}
    </FormDialog>
  );
}

const LIMITS = ["limit5hUsd", "limitDailyUsd", "limitWeeklyUsd", "limitMonthlyUsd"] as const;
type BatchField = (typeof LIMITS)[number] | "providerGroup" | "canLoginWebUi" | "isEnabled";
type Updates = BodyOf<"actions/keys/batchUpdateKeys">["updates"];

const NOTHING = {
  limit5hUsd: "",
  limitDailyUsd: "",
  limitWeeklyUsd: "",
  limitMonthlyUsd: "",
  providerGroup: "",
  canLoginWebUi: "true",
  isEnabled: "true",
};

interface BatchProps {
  keyIds: number[];
  onClose: () => void;
  /** All were changed. */
  onDone: () => void;
}

/** The ticked fields as the gateway takes them. */
function updatesOf(values: typeof NOTHING, ticked: ReadonlySet<string>): Updates {
  const updates: Updates = {};
  for (const name of LIMITS) if (ticked.has(name)) updates[name] = orNull(values[name]);
  if (ticked.has("providerGroup")) updates.providerGroup = orNull(values.providerGroup);
  if (ticked.has("canLoginWebUi")) updates.canLoginWebUi = values.canLoginWebUi === "true";
  if (ticked.has("isEnabled")) updates.isEnabled = values.isEnabled === "true";
  return updates;
}

/** Changes many keys at once: only the ticked fields, on all keys or none. */
export function BatchEdit({ keyIds, onClose, onDone }: BatchProps) {
  const { t } = useTranslation();
  const toast = useToast();
  const { currency } = useFormat();
  const [ticked, setTicked] = useState<ReadonlySet<string>>(new Set());
  const editor = useEditor({
    values: () => NOTHING,
    body: (values) => ({ keyIds, updates: updatesOf(values, ticked) }),
    create: (body) => call("actions/keys/batchUpdateKeys", body),
    rereads: CHANGED,
    // The message is last: a selection that is made after it stays.
    onCreated: ({ updatedCount }) => {
      onDone();
      toast.good(t("people.batchDone", { count: updatedCount }));
    },
  });
  const { form } = editor;
  const { errors } = form.formState;
  const tick = (name: string, on: boolean) => {
    const next = new Set(ticked);
    if (on) next.add(name);
    else next.delete(name);
    setTicked(next);
  };
  const choices = [
    { value: "true", label: t("ui.yes") },
    { value: "false", label: t("ui.no") },
  ];
  const row = (name: BatchField, control: (ids: object) => ReactNode, unit?: string) => (
    <div key={name} className="flex items-start gap-3">
      <input
        type="checkbox"
        aria-label={t("people.change", { name: t(`people.${name}`) })}
        className="mt-8 size-4 accent-accent"
        checked={ticked.has(name)}
        onChange={(event) => tick(name, event.target.checked)}
      />
      <Field
        className="flex-1"
        label={t(`people.${name}`)}
        unit={unit}
        error={errors[name]?.message}
      >
        {control}
      </Field>
    </div>
  );
  return (
    <FormDialog
      {...editor}
      title={t("people.batchTitle", { count: keyIds.length })}
      description={t("people.batchHelp")}
      onClose={onClose}
      submit={t("people.batchSave", { count: keyIds.length })}
      disabled={ticked.size === 0}
      names={KEY_RULES}
    >
      {LIMITS.map((name) =>
        row(
          name,
          (ids) => (
            <NumberInput
              {...ids}
              placeholder={t("people.noLimit")}
              {...form.register(name, { onChange: () => tick(name, true) })}
            />
          ),
          currency,
        ),
      )}
      {row("providerGroup", (ids) => (
        <Input
          {...ids}
          placeholder="default"
          {...form.register("providerGroup", { onChange: () => tick("providerGroup", true) })}
        />
      ))}
      {(["canLoginWebUi", "isEnabled"] as const).map((name) =>
        row(name, (ids) => (
          <Select
            {...ids}
            choices={choices}
            {...form.register(name, { onChange: () => tick(name, true) })}
          />
        )),
      )}
    </FormDialog>
  );
}
