/** Short dialogs: a new key shown this once, a key's renewal, and the change of many keys at once. */
import { useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { type ReactNode, useState } from "react";
import { useForm } from "react-hook-form";
import { useTranslation } from "react-i18next";
import { type BodyOf, call } from "@/api/client";
import { clients, proxyBase } from "@/api/clients";
import { showFault } from "@/api/form";
import * as queries from "@/api/queries";
import { useSession } from "@/app/session";
import { Button } from "@/ui/button";
import { Code, CopyButton } from "@/ui/code";
import { Dialog } from "@/ui/dialog";
import { Checkbox, Field, Input, NumberInput, Select } from "@/ui/field";
import { Notice } from "@/ui/status";
import { Tabs } from "@/ui/tabs";
import { useToast } from "@/ui/toast";
import { dayOf, type Key } from "./values";

/** In the examples. */
const MODEL = "claude-sonnet-4-5";

/** The one time that a key's text is shown. */
export function NewKey({ text, name, onClose }: { text: string; name: string; onClose: () => void }) {
  const { t } = useTranslation();
  const { proxyPort, proxyTls } = useSession();
  const base = proxyBase(window.location, { port: proxyPort, tls: proxyTls });
  const ready = clients({ base, key: text, model: MODEL });
  return (
    <Dialog
      open
      onClose={onClose}
      title={t("people.keyCreated", { name })}
      width="max-w-2xl"
      footer={
        <>
          <Link to="/connect" className="mr-auto text-sm text-accent hover:underline">
            {t("people.connectClient")}
          </Link>
          <Button variant="primary" onClick={onClose}>
            {t("people.keyKept")}
          </Button>
        </>
      }
    >
      <Notice tone="warn">{t("people.keyOnce")}</Notice>
      <div className="mt-4 flex items-center gap-2 rounded-lg border border-strong-line bg-sunken py-2 pr-2 pl-3">
        <code data-testid="new-key" className="min-w-0 flex-1 font-mono text-sm break-all select-all">
          {text}
        </code>
        <CopyButton text={text} full label={t("people.copyKey")} />
      </div>
      <h3 className="mt-6 mb-2">{t("people.withIt")}</h3>
      <Tabs
        label={t("people.withIt")}
        tabs={ready.map(({ id, name: client, snippets }) => ({
          id,
          label: client,
          content: (
            <div className="space-y-3">
              {snippets.map(({ where, text: lines }) => (
                <Code key={where} label={where} text={lines} />
              ))}
            </div>
          ),
        }))}
      />
    </Dialog>
  );
}

/** A new expiry, and enabling the key with it. */
export function RenewKey({ value, onClose }: { value: Key; onClose: () => void }) {
  const { t } = useTranslation();
  const cache = useQueryClient();
  const toast = useToast();
  const { timeZone } = useSession();
  const form = useForm({ defaultValues: { expiresAt: dayOf(value.expiresAt, timeZone), enableKey: !value.isEnabled } });
  const { errors, isSubmitting } = form.formState;
  const save = form.handleSubmit(async ({ expiresAt, enableKey }) => {
    try {
      await call("actions/keys/renewKeyExpiresAt", { keyId: value.id, expiresAt: expiresAt || null, enableKey });
      await cache.invalidateQueries({ queryKey: queries.keys.users });
      toast.good(t("ui.saved"));
      onClose();
    } catch (error) {
      showFault(error, form.setError, (name) => name === "expiresAt");
    }
  });
  return (
    <Dialog
      open
      onClose={onClose}
      title={t("people.renewKey", { name: value.name })}
      width="max-w-md"
      footer={
        <>
          <Button onClick={onClose}>{t("ui.cancel")}</Button>
          <Button variant="primary" busy={isSubmitting} onClick={() => void save()}>
            {t("ui.save")}
          </Button>
        </>
      }
    >
      <form className="space-y-4" onSubmit={(event) => void save(event)} noValidate>
        {errors.root && <Notice tone="bad">{errors.root.message}</Notice>}
        <Field label={t("people.expiresAt")} error={errors.expiresAt?.message} help={t("people.expiresHelp")}>
          {(ids) => <Input {...ids} type="date" {...form.register("expiresAt")} />}
        </Field>
        {!value.isEnabled && <Checkbox label={t("people.enableToo")} {...form.register("enableKey")} />}
      </form>
    </Dialog>
  );
}

const LIMITS = ["limit5hUsd", "limitDailyUsd", "limitWeeklyUsd", "limitMonthlyUsd"] as const;
type BatchField = (typeof LIMITS)[number] | "providerGroup" | "canLoginWebUi" | "isEnabled";
type Updates = BodyOf<"actions/keys/batchUpdateKeys">["updates"];

/** Many keys at once: only what is ticked changes, all keys or none. */
export function BatchEdit({ keyIds, onClose }: { keyIds: number[]; onClose: (done: boolean) => void }) {
  const { t } = useTranslation();
  const cache = useQueryClient();
  const toast = useToast();
  const [ticked, setTicked] = useState<ReadonlySet<string>>(new Set());
  const form = useForm({
    defaultValues: {
      limit5hUsd: "",
      limitDailyUsd: "",
      limitWeeklyUsd: "",
      limitMonthlyUsd: "",
      providerGroup: "",
      canLoginWebUi: "true",
      isEnabled: "true",
    },
  });
  const { errors, isSubmitting } = form.formState;
  const tick = (name: string, on: boolean) => {
    const next = new Set(ticked);
    if (on) next.add(name);
    else next.delete(name);
    setTicked(next);
  };
  const save = form.handleSubmit(async (values) => {
    const updates: Updates = {};
    for (const name of LIMITS)
      if (ticked.has(name)) updates[name] = values[name].trim() === "" ? null : values[name].trim();
    if (ticked.has("providerGroup"))
      updates.providerGroup = values.providerGroup.trim() === "" ? null : values.providerGroup.trim();
    if (ticked.has("canLoginWebUi")) updates.canLoginWebUi = values.canLoginWebUi === "true";
    if (ticked.has("isEnabled")) updates.isEnabled = values.isEnabled === "true";
    try {
      const { updatedCount } = await call("actions/keys/batchUpdateKeys", { keyIds, updates });
      toast.good(t("people.batchDone", { count: updatedCount }));
      await cache.invalidateQueries({ queryKey: queries.keys.users });
      onClose(true);
    } catch (error) {
      showFault(error, form.setError, (name) => name in values);
    }
  });
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
      <Field className="flex-1" label={t(`people.${name}`)} unit={unit} error={errors[name]?.message}>
        {control}
      </Field>
    </div>
  );
  return (
    <Dialog
      open
      onClose={() => onClose(false)}
      title={t("people.batchTitle", { count: keyIds.length })}
      description={t("people.batchHelp")}
      footer={
        <>
          <Button onClick={() => onClose(false)}>{t("ui.cancel")}</Button>
          <Button variant="primary" busy={isSubmitting} disabled={ticked.size === 0} onClick={() => void save()}>
            {t("people.batchSave", { count: keyIds.length })}
          </Button>
        </>
      }
    >
      <form className="space-y-3" onSubmit={(event) => void save(event)} noValidate>
        {errors.root && <Notice tone="bad">{errors.root.message}</Notice>}
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
            "USD",
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
            <Select {...ids} choices={choices} {...form.register(name, { onChange: () => tick(name, true) })} />
          )),
        )}
      </form>
    </Dialog>
  );
}
