/** Creating and editing a user. */
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useForm } from "react-hook-form";
import { useTranslation } from "react-i18next";
import { call, type Schemas } from "@/api/client";
import { changes } from "@/api/form";
import * as queries from "@/api/queries";
import { DateField } from "@/parts/date-field";
import { FeatureFields } from "@/parts/feature-fields";
import { FormDrawer } from "@/parts/form";
import { ListField } from "@/parts/list-field";
import { useIsAdmin, useSession } from "@/parts/session";
import { Field, Input, NumberInput, Section, Select, Switch } from "@/ui/field";
import { useToast } from "@/ui/toast";
import { LimitFields } from "./limit-fields";
import { LIMIT_RULES, type User, type UserValues, userBody, userValues, words } from "./values";

interface Props {
  /** `undefined` = a new one. */
  user?: User;
  onClose: () => void;
  onCreated?: (made: Schemas["NewUser"]) => void;
}

/**
 * The groups to choose from: those of the providers. Only administrators can list these; other users
 * choose among the groups of their own keys.
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
  const cache = useQueryClient();
  const toast = useToast();
  const { timeZone } = useSession();
  const groups = useGroups();
  const initial = userValues(user, timeZone);
  const form = useForm<UserValues>({ defaultValues: initial });
  const { register, control, formState } = form;
  const { errors } = formState;

  const reload = async () => {
    await cache.invalidateQueries({ queryKey: queries.keys.users });
    await cache.invalidateQueries({ queryKey: ["limits"] });
  };
  const save = async (values: UserValues) => {
    const body = userBody(values);
    if (user) {
      const changed = changes(userBody(initial), body);
      if (Object.keys(changed).length > 0)
        await call("actions/users/editUser", { userId: user.id, ...changed });
      await reload();
      return () => toast.good(t("ui.saved"));
    }
    // The key is shown before the list is read again.
    const made = await call("actions/users/addUser", body);
    void reload();
    return () => onCreated?.(made);
  };

  const list = (
    name: "providerGroup" | "tags" | "allowedModels" | "allowedClients",
    known?: string[],
    placeholder?: string,
  ) => (
    <ListField
      control={control}
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
      title={user ? t("people.editUser", { name: user.name }) : t("people.newUser")}
      description={user ? undefined : t("people.newUserHelp")}
      form={form}
      onSubmit={save}
      onClose={onClose}
      submit={user ? t("ui.save") : t("ui.create")}
      names={{ dailyQuota: "limitDailyUsd", ...LIMIT_RULES }}
    >
      <Section title={t("people.who")}>
        <Field label={t("people.name")} error={errors.name?.message}>
          {(ids) => <Input {...ids} autoFocus={!user} autoComplete="off" {...register("name")} />}
        </Field>
        <Field label={t("people.role")} error={errors.role?.message} help={t("people.roleHelp")}>
          {(ids) => (
            <Select
              {...ids}
              choices={[
                { value: "user", label: t("role.user") },
                { value: "admin", label: t("role.admin") },
              ]}
              {...register("role")}
            />
          )}
        </Field>
        <Field
          label={t("people.note")}
          optional={t("ui.optional")}
          error={errors.note?.message}
          className="sm:col-span-2"
        >
          {(ids) => <Input {...ids} {...register("note")} />}
        </Field>
        <DateField
          register={register}
          name="expiresAt"
          label={t("people.expiresAt")}
          help={t("people.expiresHelp")}
          optional
          error={errors.expiresAt?.message}
        />
        <Switch
          label={t("people.isEnabled")}
          help={t("people.userEnabledHelp")}
          error={errors.isEnabled?.message}
          className="self-center"
          {...register("isEnabled")}
        />
      </Section>
      <LimitFields register={register} control={control} errors={errors}>
        <Field
          label={t("people.rpm")}
          help={t("people.rpmHelp")}
          error={errors.rpm?.message}
          unit={t("people.perMinute")}
        >
          {(ids) => <NumberInput {...ids} placeholder={t("people.noLimit")} {...register("rpm")} />}
        </Field>
        <Switch
          label={t("people.lockKeyLimits")}
          help={t("people.lockKeyLimitsHelp")}
          error={errors.lockKeyLimits?.message}
          {...register("lockKeyLimits")}
        />
        <Field
          label={t("people.maxKeys")}
          help={t("people.maxKeysHelp")}
          error={errors.maxKeys?.message}
        >
          {(ids) => (
            <NumberInput
              {...ids}
              placeholder={t(form.watch("lockKeyLimits") ? "people.noKeys" : "people.noLimit")}
              {...register("maxKeys")}
            />
          )}
        </Field>
      </LimitFields>
      <Section title={t("people.access")}>
        {list("providerGroup", groups, "default")}
        {list("allowedModels", undefined, t("people.everyModel"))}
        {list("allowedClients", undefined, t("people.everyClient"))}
        {list("tags")}
      </Section>
      <Section title={t("features.title")} help={t("features.ofUser")}>
        <FeatureFields control={control} allowed="allowedFeatures" denied="deniedFeatures" />
      </Section>
    </FormDrawer>
  );
}
