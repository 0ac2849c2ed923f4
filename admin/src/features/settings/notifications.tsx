/** Which events are told where: one form for all, a card for each event. */
import { useQuery } from "@tanstack/react-query";
import { useEffect } from "react";
import { useForm } from "react-hook-form";
import { useTranslation } from "react-i18next";
import { showFault } from "@/api/form";
import { Failed, Loading } from "@/ui/empty";
import { Field, Input, NumberInput, Switch } from "@/ui/field";
import { Card } from "@/ui/page";
import { Notice } from "@/ui/status";
import { useToast } from "@/ui/toast";
import { type Notifications, notifications, settings, useSaveNotifications } from "./api";
import { changeOf, formOf, type NotifyForm } from "./notify-values";
import { SaveBar } from "./save-bar";
import { SecretCard } from "./secret";
import { Webhook } from "./webhook";

export function NotificationsView() {
  const { data, error, refetch } = useQuery(notifications);
  if (error) return <Failed error={error} retry={() => void refetch()} />;
  if (!data) return <Loading />;
  return <NotificationsForm saved={data} />;
}

/** The webhook that an event needs before it can be told. */
const NEEDS = {
  circuitBreakerEnabled: "circuitBreakerWebhook",
  dailyLeaderboardEnabled: "dailyLeaderboardWebhook",
  costAlertEnabled: "costAlertWebhook",
} as const;

function NotificationsForm({ saved }: { saved: Notifications }) {
  const { t } = useTranslation();
  const toast = useToast();
  const zone = useQuery(settings).data?.timezone ?? "";
  const save = useSaveNotifications();
  const form = useForm<NotifyForm>({ defaultValues: formOf(saved) });
  const { errors, isDirty } = form.formState;
  const values = form.watch();
  useEffect(() => form.reset(formOf(saved), { keepDirtyValues: true }), [form, saved]);
  const submit = form.handleSubmit(async (typed) => {
    try {
      const now = await save.mutateAsync(changeOf(formOf(saved), typed));
      form.reset(formOf(now));
      toast.good(t("ui.saved"));
    } catch (error) {
      showFault(error, form.setError, (name) => name in typed);
    }
  });
  const whole = (text: string) => /^\d+$/.test(text.trim()) || t("settings.noWhole");
  const webhook = (enabled: keyof typeof NEEDS) => {
    const name = NEEDS[enabled];
    const needed = (text: string, all: NotifyForm) =>
      !all[enabled] || text.trim() !== "" || t("settings.notify.needsWebhook");
    return (
      <Webhook address={values[name]} input={form.register(name, { validate: needed })} error={errors[name]?.message} />
    );
  };
  return (
    <form
      noValidate
      className="space-y-4"
      onSubmit={(event) => {
        event.preventDefault();
        void submit();
      }}
    >
      {errors.root && <Notice tone="bad">{errors.root.message}</Notice>}
      <Card>
        <Switch
          label={t("settings.notify.enabled")}
          help={t("settings.notify.enabledHelp")}
          {...form.register("enabled")}
        />
      </Card>
      {!values.enabled &&
        (values.circuitBreakerEnabled || values.dailyLeaderboardEnabled || values.costAlertEnabled) && (
          <Notice tone="warn">{t("settings.notify.off")}</Notice>
        )}
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
            <Field
              label={t("settings.notify.threshold")}
              help={t("settings.notify.thresholdHelp")}
              unit="%"
              error={errors.costAlertThreshold?.message}
            >
              {(ids) => (
                <NumberInput
                  {...ids}
                  inputMode="numeric"
                  {...form.register("costAlertThreshold", { validate: whole })}
                />
              )}
            </Field>
            <Field
              label={t("settings.notify.interval")}
              unit={t("settings.notify.minutes")}
              error={errors.costAlertCheckInterval?.message}
            >
              {(ids) => (
                <NumberInput
                  {...ids}
                  inputMode="numeric"
                  className="!pr-20"
                  {...form.register("costAlertCheckInterval", { validate: whole })}
                />
              )}
            </Field>
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
            <Field
              label={t("settings.notify.time")}
              help={t("settings.notify.timeHelp", { zone })}
              error={errors.dailyLeaderboardTime?.message}
            >
              {(ids) => (
                <Input
                  {...ids}
                  type="time"
                  {...form.register("dailyLeaderboardTime", {
                    validate: (text) => text !== "" || t("settings.noTime"),
                  })}
                />
              )}
            </Field>
            <Field
              label={t("settings.notify.top")}
              unit={t("settings.notify.users")}
              error={errors.dailyLeaderboardTopN?.message}
            >
              {(ids) => (
                <NumberInput
                  {...ids}
                  inputMode="numeric"
                  {...form.register("dailyLeaderboardTopN", { validate: whole })}
                />
              )}
            </Field>
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
      <SaveBar dirty={isDirty} busy={save.isPending} onReset={() => form.reset(formOf(saved))} />
    </form>
  );
}
