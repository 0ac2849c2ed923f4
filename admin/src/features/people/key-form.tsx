/** Creating and editing a key. */
import { useQueryClient } from "@tanstack/react-query";
import { useForm } from "react-hook-form";
import { useTranslation } from "react-i18next";
import { call } from "@/api/client";
import { changes } from "@/api/form";
import * as queries from "@/api/queries";
import { DateField } from "@/parts/date-field";
import { FeatureFields } from "@/parts/feature-fields";
import { FormDrawer } from "@/parts/form";
import { ListField } from "@/parts/list-field";
import { useIsAdmin, useSession } from "@/parts/session";
import { Field, Input, Section, Select, Switch } from "@/ui/field";
import { exactMoney, useFormat } from "@/ui/format";
import { useToast } from "@/ui/toast";
import { LimitFields } from "./limit-fields";
import { useGroups } from "./user-form";
import {
  KEY_RULES,
  type Key,
  type KeyValues,
  keyBody,
  keyValues,
  MONEY,
  type User,
} from "./values";

interface Props {
  user: User;
  /** `undefined` = a new one. */
  value?: Key;
  onClose: () => void;
  onCreated: (text: string, name: string) => void;
}

export function KeyForm({ user, value, onClose, onCreated }: Props) {
  const { t } = useTranslation();
  const cache = useQueryClient();
  const toast = useToast();
  const admin = useIsAdmin();
  const format = useFormat();
  const { timeZone } = useSession();
  const groups = useGroups(user);
  const initial = keyValues(value, timeZone);
  const form = useForm<KeyValues>({ defaultValues: initial });
  const { register, control, formState } = form;
  const { errors } = formState;
  const most = Object.fromEntries(
    MONEY.flatMap((name) => (user[name] == null ? [] : [[name, exactMoney(user[name], format)]])),
  );

  const isLocked = user.lockKeyLimits && !admin;
  const locked = isLocked ? t(value ? "people.limitsLocked" : "people.limitsLockedNew") : undefined;

  const reload = async () => {
    await cache.invalidateQueries({ queryKey: queries.keys.users });
    await cache.invalidateQueries({ queryKey: ["limits"] });
  };
  const save = async (values: KeyValues) => {
    const body = keyBody(values);
    if (value) {
      const changed = changes(keyBody(initial), body);
      if (Object.keys(changed).length > 0)
        await call("actions/keys/editKey", { keyId: value.id, ...changed });
      await reload();
      return () => toast.good(t("ui.saved"));
    }
    // The key is shown before the list is read again.
    const made = await call("actions/keys/addKey", { userId: user.id, ...body });
    void reload();
    return () => onCreated(made.generatedKey, made.name);
  };

  return (
    <FormDrawer
      title={value ? t("people.editKey", { name: value.name }) : t("people.newKey")}
      description={t("people.keyOf", { name: user.name })}
      form={form}
      onSubmit={save}
      onClose={onClose}
      submit={value ? t("ui.save") : t("ui.create")}
      names={KEY_RULES}
    >
      <Section title={t("people.key")}>
        <Field label={t("people.name")} error={errors.name?.message} help={t("people.keyNameHelp")}>
          {(ids) => <Input {...ids} autoFocus={!value} autoComplete="off" {...register("name")} />}
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
          label={t("people.canLoginWebUi")}
          help={t("people.canLoginHelp")}
          {...register("canLoginWebUi")}
        />
        <Switch
          label={t("people.isEnabled")}
          help={t("people.keyEnabledHelp")}
          error={errors.isEnabled?.message}
          {...register("isEnabled")}
        />
      </Section>
      <LimitFields
        register={register}
        control={control}
        errors={errors}
        most={most}
        locked={locked}
      />
      <Section title={t("people.access")}>
        <ListField
          control={control}
          name="providerGroup"
          label={t("people.providerGroup")}
          help={admin || !value ? t("people.providerGroupHelp") : t("people.groupAdminOnly")}
          known={groups}
          placeholder="default"
          disabled={!admin && value !== undefined}
        />
        <Field
          label={t("people.cacheTtlPreference")}
          help={t("people.cacheTtlHelp")}
          error={errors.cacheTtlPreference?.message}
        >
          {(ids) => (
            <Select
              {...ids}
              choices={[
                { value: "inherit", label: t("people.cacheTtl.inherit") },
                { value: "5m", label: t("people.cacheTtl.short") },
                { value: "1h", label: t("people.cacheTtl.long") },
              ]}
              {...register("cacheTtlPreference")}
            />
          )}
        </Field>
        <ListField
          control={control}
          name="allowedModels"
          label={t("people.allowedModels")}
          help={t(admin ? "people.keyModelsHelp" : "people.listAdminOnly")}
          placeholder={t("people.everyModel")}
          disabled={!admin}
          className="sm:col-span-2"
        />
      </Section>
      <Section
        title={t("features.title")}
        help={t(admin ? "features.ofKey" : "people.listAdminOnly")}
      >
        <FeatureFields
          control={control}
          allowed="allowedFeatures"
          denied="deniedFeatures"
          disabled={!admin}
        />
      </Section>
    </FormDrawer>
  );
}
