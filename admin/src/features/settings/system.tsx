/** The system settings as one form. */
import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { useForm } from "react-hook-form";
import { useTranslation } from "react-i18next";
import { changes } from "@/api/form";
import { Failed, Loading } from "@/ui/empty";
import { Field, Input, NumberInput, Switch } from "@/ui/field";
import { Card, Facts } from "@/ui/page";
import { type SentGroups, type Settings, type SystemForm, settings, useSaveSettings } from "./api";
import { CleanupState } from "./cleanup";
import { SettingsForm } from "./frame";
import { GroupFeatures } from "./groups";

export const formOf = ({ timezone: _, cleanupRetentionDays, ...rest }: Settings): SystemForm => ({
  ...rest,
  cleanupRetentionDays: String(cleanupRetentionDays),
});

export function SystemView() {
  const { data, error, refetch } = useQuery(settings);
  if (error && data === undefined) return <Failed error={error} retry={() => void refetch()} />;
  if (!data) return <Loading />;
  return <SystemSettings saved={data} />;
}

function SystemSettings({ saved }: { saved: Settings }) {
  const { t } = useTranslation();
  const save = useSaveSettings();
  const values = useMemo(() => formOf(saved), [saved]);
  const form = useForm<SystemForm>({ defaultValues: values });
  const { errors, isDirty } = form.formState;
  const submit = async (typed: SystemForm) => {
    const { cleanupRetentionDays, groupFeatures, ...rest } = changes({ ...values }, { ...typed });
    const days =
      cleanupRetentionDays === undefined
        ? {}
        : { cleanupRetentionDays: Number(cleanupRetentionDays) };
    // The gateway refuses a name that it does not know.
    const groups = groupFeatures && { groupFeatures: groupFeatures as SentGroups };
    return formOf(await save.mutateAsync({ ...rest, ...groups, ...days }));
  };
  const needed = (text: string) => text.trim() !== "" || t("settings.system.needed");
  return (
    <SettingsForm form={form} saved={values} onSubmit={submit}>
      <Card title={t("settings.system.appearance")}>
        <div className="grid gap-4 sm:grid-cols-2">
          <Field label={t("settings.system.siteTitle")} error={errors.siteTitle?.message}>
            {(ids) => (
              <Input
                {...ids}
                autoComplete="off"
                maxLength={128}
                {...form.register("siteTitle", { validate: needed })}
              />
            )}
          </Field>
          <Field
            label={t("settings.system.currency")}
            help={t("settings.system.currencyHelp")}
            error={errors.currencyDisplay?.message}
          >
            {(ids) => (
              <Input
                {...ids}
                autoComplete="off"
                maxLength={16}
                {...form.register("currencyDisplay", { validate: needed })}
              />
            )}
          </Field>
        </div>
      </Card>
      <Card title={t("settings.system.access")}>
        <div className="flex flex-col gap-4">
          <Switch
            label={t("settings.system.global")}
            help={t("settings.system.globalHelp")}
            {...form.register("allowGlobalUsageView")}
          />
          <Switch
            label={t("settings.system.clients")}
            help={t("settings.system.clientsHelp")}
            {...form.register("enableClientVersionCheck")}
          />
        </div>
      </Card>
      <GroupFeatures form={form} />
      <Card title={t("settings.cleanup.title")}>
        <p className="mb-4 text-sm text-quiet">{t("settings.cleanup.help")}</p>
        <div className="grid gap-4 sm:grid-cols-2">
          <Switch
            className="sm:col-span-2"
            label={t("settings.cleanup.auto")}
            {...form.register("enableAutoCleanup")}
          />
          <Field
            label={t("settings.cleanup.retention")}
            help={t("settings.cleanup.retentionHelp")}
            unit={t("settings.cleanup.days")}
            error={errors.cleanupRetentionDays?.message}
          >
            {(ids) => (
              <NumberInput
                {...ids}
                inputMode="numeric"
                {...form.register("cleanupRetentionDays", {
                  validate: (text) => /^\d+$/.test(text.trim()) || t("settings.noWhole"),
                })}
              />
            )}
          </Field>
          <Field
            label={t("settings.cleanup.schedule")}
            help={t("settings.cleanup.scheduleHelp", { zone: saved.timezone })}
            error={errors.cleanupSchedule?.message}
          >
            {(ids) => (
              <Input
                {...ids}
                type="time"
                {...form.register("cleanupSchedule", { validate: needed })}
              />
            )}
          </Field>
        </div>
        <CleanupState retention={saved.cleanupRetentionDays} dirty={isDirty} />
      </Card>
      <Card title={t("settings.system.fixed")}>
        <Facts
          facts={[
            [
              t("settings.system.zone"),
              <span key="zone" className="font-mono text-xs">
                {saved.timezone}
              </span>,
            ],
          ]}
        />
        <p className="mt-2 text-xs text-faint">{t("settings.system.zoneHelp")}</p>
      </Card>
    </SettingsForm>
  );
}
