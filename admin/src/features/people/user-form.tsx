/** Creating and editing a user. */
import { useQuery } from "@tanstack/react-query";
import { useTranslation } from "react-i18next";
import { call, type Schemas } from "@/api/client";
import * as queries from "@/api/queries";
import { DateField } from "@/parts/date-field";
import { useEditor } from "@/parts/editor";
import { FeatureFields } from "@/parts/feature-fields";
import { NumberField, SelectField, TextField } from "@/parts/fields";
import { FormDrawer } from "@/parts/form";
import { ListField } from "@/parts/list-field";
import { useIsAdmin, useSession } from "@/parts/session";
import { words } from "@/parts/values";
import { Section, Switch } from "@/ui/field";
import { LimitFields } from "./limit-fields";
import { CHANGED, LIMIT_RULES, type User, userBody, userValues } from "./values";

interface Props {
  /** `undefined` = a new one. */
  user?: User;
  onClose: () => void;
  onCreated?: (made: Schemas["NewUser"]) => void;
}

/**
 * The groups to choose from: those of the providers. Only administrators can list these; other
 * users choose among the groups of their own keys.
 */
export function useGroups(user?: User): string[] {
  const admin = useIsAdmin();
  const { data: providers } = useQuery({ ...queries.providers, enabled: admin });
  const groups = admin
    ? ["default", ...(providers ?? []).flatMap((provider) => words(provider.groupTag))]
    : (user?.keys ?? []).flatMap((key) => words(key.providerGroup || "default"));
  return [...new Set(groups)].sort();
}

export function UserForm({ user, onClose, onCreated }: Props) {
  const { t } = useTranslation();
  const { timeZone } = useSession();
  const groups = useGroups();
  const editor = useEditor({
    values: () => userValues(user, timeZone),
    body: userBody,
    update: user && ((changed) => call("actions/users/editUser", { userId: user.id, ...changed })),
    create: (body) => call("actions/users/addUser", body),
    rereads: CHANGED,
    onCreated,
    atOnce: true,
  });
  const { form } = editor;
  const { register } = form;
  const { errors } = form.formState;

  const list = (
    name: "providerGroup" | "tags" | "allowedModels" | "allowedClients",
    known?: string[],
    placeholder?: string,
  ) => (
    <ListField
      form={form}
      name={name}
      label={t(`people.${name}`)}
      help={t(`people.${name}Help`)}
      known={known}
      placeholder={placeholder}
      className="sm:col-span-2"
    />
  );

  return (
    <FormDrawer
      {...editor}
      title={user ? t("people.editUser", { name: user.name }) : t("people.newUser")}
      description={user ? undefined : t("people.newUserHelp")}
      onClose={onClose}
      names={{ dailyQuota: "limitDailyUsd", ...LIMIT_RULES }}
    >
      <Section title={t("people.who")}>
        <TextField
          form={form}
          name="name"
          label={t("people.name")}
          control={{ autoFocus: !user }}
        />
        <SelectField
          form={form}
          name="role"
          label={t("people.role")}
          help={t("people.roleHelp")}
          choices={[
            { value: "user", label: t("role.user") },
            { value: "admin", label: t("role.admin") },
          ]}
        />
        <TextField
          form={form}
          name="note"
          label={t("people.note")}
          optional
          className="sm:col-span-2"
        />
        <DateField
          form={form}
          name="expiresAt"
          label={t("people.expiresAt")}
          help={t("people.expiresHelp")}
          optional
        />
        <Switch
          label={t("people.isEnabled")}
          help={t("people.userEnabledHelp")}
          error={errors.isEnabled?.message}
          className="self-center"
          {...register("isEnabled")}
        />
      </Section>
      <LimitFields form={form}>
        <NumberField
          form={form}
          name="rpm"
          label={t("people.rpm")}
          help={t("people.rpmHelp")}
          unit={t("people.perMinute")}
          control={{ placeholder: t("people.noLimit") }}
        />
        <Switch
          label={t("people.lockKeyLimits")}
          help={t("people.lockKeyLimitsHelp")}
          error={errors.lockKeyLimits?.message}
          {...register("lockKeyLimits")}
        />
        <NumberField
          form={form}
          name="maxKeys"
          label={t("people.maxKeys")}
          help={t("people.maxKeysHelp")}
          control={{
            placeholder: t(form.watch("lockKeyLimits") ? "people.noKeys" : "people.noLimit"),
          }}
        />
      </LimitFields>
      <Section title={t("people.access")}>
        {list("providerGroup", groups, "default")}
        {list("allowedModels", undefined, t("people.everyModel"))}
        {list("allowedClients", undefined, t("people.everyClient"))}
        {list("tags")}
      </Section>
      <Section title={t("features.title")} help={t("features.ofUser")}>
        <FeatureFields form={form} allowed="allowedFeatures" denied="deniedFeatures" />
      </Section>
    </FormDrawer>
  );
}
