/** The notifications and their receivers: one form, with a card for each event. */
import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { useForm } from "react-hook-form";
import { useTranslation } from "react-i18next";
import { NumberField, TextField } from "@/parts/fields";
import { Answer } from "@/ui/empty";
import { Switch } from "@/ui/field";
import { Card } from "@/ui/page";
import { Notice } from "@/ui/status";
import { type Notifications, notifications, settings, useSaveNotifications } from "./api";
import { SettingsForm } from "./frame";
import { changeOf, formOf, type NotifyForm, UNITS } from "./notify-values";

import { SecretCard } from "./secret";
import { Webhook } from "./webhook";

export function NotificationsView() {
  return (
    <Answer of={useQuery(notifications)}>{(saved) => <NotificationsForm saved={saved} />}</Answer>
  );
}

/** The webhook that an event requires. */
const NEEDS = {
  circuitBreakerEnabled: "circuitBreakerWebhook",
  dailyLeaderboardEnabled: "dailyLeaderboardWebhook",
  costAlertEnabled: "costAlertWebhook",
} as const;

function NotificationsForm({ saved }: { saved: Notifications }) {
  const { t } = useTranslation();
  const zone = useQuery(settings).data?.timezone ?? "";
  const save = useSaveNotifications();
  const before = useMemo(() => formOf(saved), [saved]);
  const form = useForm<NotifyForm>({ defaultValues: before });
  const { errors } = form.formState;
  const values = form.watch();
  const submit = async (typed: NotifyForm) =>
    formOf(await save.mutateAsync(changeOf(before, typed)));
  const whole = (text: string) => /^\d+$/.test(text.trim()) || t("settings.noWhole");
  const webhook = (enabled: keyof typeof NEEDS) => {
    const name = NEEDS[enabled];
    const needed = (text: string, all: NotifyForm) =>
      !all[enabled] || text.trim() !== "" || t("settings.notify.needsWebhook");
    return (
      <Webhook
        address={values[name]}
        input={form.register(name, { validate: needed })}
        error={errors[name]?.message}
      />
    );
  };
  return (
    <SettingsForm form={form} saved={before} onSubmit={submit} units={UNITS}>
      <Card>
        <Switch
          label={t("settings.notify.enabled")}
          help={t("settings.notify.enabledHelp")}
          {...form.register("enabled")}
        />
      </Card>
      {!values.enabled &&
        (values.circuitBreakerEnabled ||
          values.dailyLeaderboardEnabled ||
          values.costAlertEnabled) && <Notice tone="warn">{t("settings.notify.off")}</Notice>}
      <Card title={t("settings.notify.circuit")}>
        <div className="space-y-4">
          <Switch
            label={t("settings.notify.send")}
            help={t("settings.notify.circuitHelp")}
            {...form.register("circuitBreakerEnabled")}
          />
          {webhook("circuitBreakerEnabled")}
        </div>
      </Card>
      <Card title={t("settings.notify.cost")}>
        <div className="space-y-4">
          <Switch
            label={t("settings.notify.send")}
            help={t("settings.notify.costHelp")}
            {...form.register("costAlertEnabled")}
          />
          {webhook("costAlertEnabled")}
          <div className="grid gap-4 sm:grid-cols-2">
            <NumberField
              form={form}
              name="costAlertThreshold"
              label={t("settings.notify.threshold")}
              help={t("settings.notify.thresholdHelp")}
              unit="%"
              validate={whole}
              control={{ inputMode: "numeric" }}
            />
            <NumberField
              form={form}
              name="costAlertCheckInterval"
              label={t("settings.notify.interval")}
              unit={t("settings.notify.minutes")}
              validate={whole}
              control={{ inputMode: "numeric", className: "!pr-20" }}
            />
          </div>
        </div>
      </Card>
      <Card title={t("settings.notify.daily")}>
        <div className="space-y-4">
          <Switch
            label={t("settings.notify.send")}
            help={t("settings.notify.dailyHelp")}
            {...form.register("dailyLeaderboardEnabled")}
          />
          {webhook("dailyLeaderboardEnabled")}
          <div className="grid gap-4 sm:grid-cols-2">
            <TextField
              form={form}
              name="dailyLeaderboardTime"
              label={t("settings.notify.time")}
              help={t("settings.notify.timeHelp", { zone })}
              validate={(text) => text !== "" || t("settings.noTime")}
              control={{ type: "time" }}
            />
            <NumberField
              form={form}
              name="dailyLeaderboardTopN"
              label={t("settings.notify.top")}
              unit={t("settings.notify.users")}
              validate={whole}
              control={{ inputMode: "numeric" }}
            />
          </div>
        </div>
      </Card>
      <SecretCard
        isSet={saved.hasWebhookSecret}
        typed={values.webhookSecret}
        input={form.register("webhookSecret")}
        error={errors.webhookSecret?.message}
        onGenerate={(secret) => form.setValue("webhookSecret", secret, { shouldDirty: true })}
      />
    </SettingsForm>
  );
}
