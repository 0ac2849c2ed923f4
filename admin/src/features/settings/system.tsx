/** The system settings as one form. */
import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { useForm } from "react-hook-form";
import { useTranslation } from "react-i18next";
import { changes } from "@/api/form";
import { NumberField, TextField } from "@/parts/fields";
import { Answer } from "@/ui/empty";
import { Switch } from "@/ui/field";
import { Card, Facts } from "@/ui/page";
import { type SentGroups, type Settings, type SystemForm, settings, useSaveSettings } from "./api";
import { CleanupState } from "./cleanup";
import { SettingsForm } from "./frame";
import { GroupFeatures } from "./groups";

export const formOf = ({ timezone: _, cleanupRetentionDays, ...rest }: Settings): SystemForm => ({
  ...rest,
  cleanupRetentionDays: String(cleanupRetentionDays),
});

/** Numbers are text while they are typed. */
const sentGroups = (groups: SystemForm["groupFeatures"]) =>
  groups.map((group) => ({
    ...group,
    hedgeAfterMs: group.hedgeAfterMs ? Number(group.hedgeAfterMs) : null,
    aliases: group.aliases.map((alias) => ({ ...alias, degradeAt: Number(alias.degradeAt) })),
  })) as SentGroups;

export function SystemView() {
  return <Answer of={useQuery(settings)}>{(saved) => <SystemSettings saved={saved} />}</Answer>;
}

function SystemSettings({ saved }: { saved: Settings }) {
  const { t } = useTranslation();
  const save = useSaveSettings();
  const values = useMemo(() => formOf(saved), [saved]);
  const form = useForm<SystemForm>({ defaultValues: values });
  const { isDirty } = form.formState;
  const submit = async (typed: SystemForm) => {
    const { cleanupRetentionDays, groupFeatures, ...rest } = changes({ ...values }, { ...typed });
    const days =
      cleanupRetentionDays === undefined
        ? {}
        : { cleanupRetentionDays: Number(cleanupRetentionDays) };
    // The gateway refuses a name that it does not know.
    const groups = groupFeatures && { groupFeatures: sentGroups(groupFeatures) };
    return formOf(await save.mutateAsync({ ...rest, ...groups, ...days }));
  };
  const needed = (text: string) => text.trim() !== "" || t("settings.system.needed");
  return (
    <SettingsForm form={form} saved={values} onSubmit={submit}>
      <Card title={t("settings.system.appearance")}>
        <div className="grid gap-4 sm:grid-cols-2">
          <TextField
            form={form}
            name="siteTitle"
            label={t("settings.system.siteTitle")}
            validate={needed}
            control={{ maxLength: 128 }}
          />
          <TextField
            form={form}
            name="currencyDisplay"
            label={t("settings.system.currency")}
            help={t("settings.system.currencyHelp")}
            validate={needed}
            control={{ maxLength: 16 }}
          />
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
          <NumberField
            form={form}
            name="cleanupRetentionDays"
            label={t("settings.cleanup.retention")}
            help={t("settings.cleanup.retentionHelp")}
            unit={t("settings.cleanup.days")}
            validate={(text) => /^\d+$/.test(text.trim()) || t("settings.noWhole")}
            control={{ inputMode: "numeric" }}
          />
          <TextField
            form={form}
            name="cleanupSchedule"
            label={t("settings.cleanup.schedule")}
            help={t("settings.cleanup.scheduleHelp", { zone: saved.timezone })}
            validate={needed}
            control={{ type: "time" }}
          />
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
