/** Creating and editing a key. */
import { useTranslation } from "react-i18next";
import { call } from "@/api/client";
import { DateField } from "@/parts/date-field";
import { useEditor } from "@/parts/editor";
import { FeatureFields } from "@/parts/feature-fields";
import { SelectField, TextField } from "@/parts/fields";
import { FormDrawer } from "@/parts/form";
import { ListField } from "@/parts/list-field";
import { useIsAdmin, useSession } from "@/parts/session";
import { Section, Switch } from "@/ui/field";
import { exactMoney, useFormat } from "@/ui/format";
import { LimitFields } from "./limit-fields";
import { useGroups } from "./user-form";
import { CHANGED, KEY_RULES, type Key, keyBody, keyValues, MONEY, type User } from "./values";

interface Props {
  user: User;
  /** `undefined` = a new one. */
  value?: Key;
  onClose: () => void;
  onCreated: (text: string, name: string) => void;
}

export function KeyForm({ user, value, onClose, onCreated }: Props) {
  const { t } = useTranslation();
  const admin = useIsAdmin();
  const format = useFormat();
  const { timeZone } = useSession();
  const groups = useGroups(user);
  const editor = useEditor({
    values: () => keyValues(value, timeZone),
    body: keyBody,
    update: value && ((changed) => call("actions/keys/editKey", { keyId: value.id, ...changed })),
    create: (body) => call("actions/keys/addKey", { userId: user.id, ...body }),
    rereads: CHANGED,
    onCreated: (made) => onCreated(made.generatedKey, made.name),
    atOnce: true,
  });
  const { form } = editor;
  const { register } = form;
  const { errors } = form.formState;
  const most = Object.fromEntries(
    MONEY.flatMap((name) => (user[name] == null ? [] : [[name, exactMoney(user[name], format)]])),
  );

  const isLocked = user.lockKeyLimits && !admin;
  const locked = isLocked ? t(value ? "people.limitsLocked" : "people.limitsLockedNew") : undefined;

  return (
    <FormDrawer
      {...editor}
      title={value ? t("people.editKey", { name: value.name }) : t("people.newKey")}
      description={t("people.keyOf", { name: user.name })}
      onClose={onClose}
      names={KEY_RULES}
    >
      <Section title={t("people.key")}>
        <TextField
          form={form}
          name="name"
          label={t("people.name")}
          help={t("people.keyNameHelp")}
          control={{ autoFocus: !value }}
        />
        <DateField
          form={form}
          name="expiresAt"
          label={t("people.expiresAt")}
          help={t("people.expiresHelp")}
          optional
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
      <LimitFields form={form} most={most} locked={locked} />
      <Section title={t("people.access")}>
        <ListField
          form={form}
          name="providerGroup"
          label={t("people.providerGroup")}
          help={admin || !value ? t("people.providerGroupHelp") : t("people.groupAdminOnly")}
          known={groups}
          placeholder="default"
          disabled={!admin && value !== undefined}
        />
        <SelectField
          form={form}
          name="cacheTtlPreference"
          label={t("people.cacheTtlPreference")}
          help={t("people.cacheTtlHelp")}
          choices={[
            { value: "inherit", label: t("people.cacheTtl.inherit") },
            { value: "5m", label: t("people.cacheTtl.short") },
            { value: "1h", label: t("people.cacheTtl.long") },
          ]}
        />
        <ListField
          form={form}
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
          form={form}
          allowed="allowedFeatures"
          denied="deniedFeatures"
          disabled={!admin}
        />
      </Section>
    </FormDrawer>
  );
}
