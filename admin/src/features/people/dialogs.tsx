/** A key's renewal, and the change of many keys at once. */
import { useQueryClient } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { useForm } from "react-hook-form";
import { useTranslation } from "react-i18next";
import { type BodyOf, call } from "@/api/client";
import * as queries from "@/api/queries";
import { DateField } from "@/parts/date-field";
import { FormDialog } from "@/parts/form";
import { useSession } from "@/parts/session";
import { Checkbox, Field, Input, NumberInput, Select } from "@/ui/field";
import { dayOf, useFormat } from "@/ui/format";
import { useToast } from "@/ui/toast";
import { KEY_RULES, type Key } from "./values";

/** A new expiry, and enabling the key with it. */
export function RenewKey({ value, onClose }: { value: Key; onClose: () => void }) {
  const { t } = useTranslation();
  const cache = useQueryClient();
  const toast = useToast();
  const { timeZone } = useSession();
  const form = useForm({
    defaultValues: { expiresAt: dayOf(value.expiresAt, timeZone), enableKey: !value.isEnabled },
  });
  const { errors } = form.formState;
  const save = async ({ expiresAt, enableKey }: { expiresAt: string; enableKey: boolean }) => {
    await call("actions/keys/renewKeyExpiresAt", {
      keyId: value.id,
      expiresAt: expiresAt || null,
      enableKey,
    });
    await cache.invalidateQueries({ queryKey: queries.keys.users });
    return () => toast.good(t("ui.saved"));
  };
  return (
    <FormDialog
      title={t("people.renewKey", { name: value.name })}
      form={form}
      onSubmit={save}
      onClose={onClose}
      submit={t("ui.save")}
      width="max-w-md"
    >
      <DateField
        register={form.register}
        name="expiresAt"
        label={t("people.expiresAt")}
        help={t("people.expiresHelp")}
        error={errors.expiresAt?.message}
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

/** Changes many keys at once: only the ticked fields, on all keys or none. */
export function BatchEdit({ keyIds, onClose, onDone }: BatchProps) {
  const { t } = useTranslation();
  const cache = useQueryClient();
  const toast = useToast();
  const { currency } = useFormat();
  const [ticked, setTicked] = useState<ReadonlySet<string>>(new Set());
  const form = useForm({ defaultValues: NOTHING });
  const { errors } = form.formState;
  const tick = (name: string, on: boolean) => {
    const next = new Set(ticked);
    if (on) next.add(name);
    else next.delete(name);
    setTicked(next);
  };
  const save = async (values: typeof NOTHING) => {
    const orNull = (text: string) => (text.trim() === "" ? null : text.trim());
    const updates: Updates = {};
    for (const name of LIMITS) if (ticked.has(name)) updates[name] = orNull(values[name]);
    if (ticked.has("providerGroup")) updates.providerGroup = orNull(values.providerGroup);
    if (ticked.has("canLoginWebUi")) updates.canLoginWebUi = values.canLoginWebUi === "true";
    if (ticked.has("isEnabled")) updates.isEnabled = values.isEnabled === "true";
    const { updatedCount } = await call("actions/keys/batchUpdateKeys", { keyIds, updates });
    await cache.invalidateQueries({ queryKey: queries.keys.users });
    // The message is last: who reads it and selects again keeps that selection.
    return () => {
      onDone();
      toast.good(t("people.batchDone", { count: updatedCount }));
    };
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
      title={t("people.batchTitle", { count: keyIds.length })}
      description={t("people.batchHelp")}
      form={form}
      onSubmit={save}
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
