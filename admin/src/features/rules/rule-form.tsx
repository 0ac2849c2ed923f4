/** An error rule: its pattern, its category, and the error that the client gets instead. */
import { useState } from "react";
import { useForm } from "react-hook-form";
import { useTranslation } from "react-i18next";
import { changes } from "@/api/form";
import { DeleteButton } from "@/parts/delete";
import { FormDrawer } from "@/parts/form";
import { Field, Input, Section, Select, Switch, Textarea } from "@/ui/field";
import { Notice } from "@/ui/status";
import { useToast } from "@/ui/toast";
import {
  CATEGORIES,
  type Rule,
  type RuleFields,
  useCreateRule,
  useDeleteRule,
  useUpdateRule,
} from "./api";
import { useMatchTypes } from "./cells";
import { bodyOf, type RuleForm as Form, formOf, NEW_RULE } from "./rule-values";

interface Props {
  rule: Rule | null;
  draft: Partial<RuleFields>;
  onClose: () => void;
}

export function RuleForm({ rule, draft, onClose }: Props) {
  const { t } = useTranslation();
  const toast = useToast();
  const create = useCreateRule();
  const update = useUpdateRule();
  const remove = useDeleteRule();
  // Only the edited fields are saved, so that changes of other users are kept.
  const [before] = useState(() => formOf(rule ?? { ...NEW_RULE, ...draft }));
  const form = useForm<Form>({ defaultValues: before });
  const { errors } = form.formState;
  const matchTypes = useMatchTypes();
  const save = async (values: Form) => {
    const body = bodyOf(values);
    if (rule === null) await create.mutateAsync(body);
    else {
      const changed = changes({ ...bodyOf(before) }, { ...body });
      if (Object.keys(changed).length > 0) await update.mutateAsync({ id: rule.id, ...changed });
    }
    return () => toast.good(t("rules.errors.saved"));
  };
  const whole = (typed: string) =>
    typed.trim() === "" || /^-?\d+$/.test(typed.trim()) || t("rules.errors.noWhole");
  return (
    <FormDrawer
      title={rule === null ? t("rules.errors.new") : t("rules.errors.edit")}
      description={t("rules.errors.formHelp")}
      form={form}
      onSubmit={save}
      onClose={onClose}
      submit={rule === null ? t("ui.create") : t("ui.save")}
      names={{ DUPLICATE_RULE: "pattern" }}
      extra={(gone) =>
        rule && (
          <DeleteButton
            question={{
              title: t("rules.errors.deleteTitle", { pattern: rule.pattern }),
              body: rule.isDefault ? t("rules.errors.deleteShipped") : t("rules.errors.deleteBody"),
              action: t("rules.errors.deleteAction"),
            }}
            remove={() => remove.mutateAsync({ id: rule.id })}
            done={t("rules.errors.deleted")}
            onDone={gone}
          />
        )
      }
    >
      {rule?.isDefault && (
        <Notice tone="plain">
          {rule.isEdited ? t("rules.errors.editedHelp") : t("rules.errors.shippedHelp")}
        </Notice>
      )}
      <Section title={t("rules.errors.finds")}>
        <Field
          label={t("rules.pattern")}
          help={
            form.watch("matchType") === "regex"
              ? t("rules.regexHelp")
              : t("rules.errors.patternHelp")
          }
          error={errors.pattern?.message}
          className="sm:col-span-2"
        >
          {(ids) => (
            <Input
              {...ids}
              className="font-mono"
              autoFocus={rule === null}
              spellCheck={false}
              autoComplete="off"
              {...form.register("pattern", {
                validate: (text) => text.trim() !== "" || t("rules.errors.noPattern"),
              })}
            />
          )}
        </Field>
        <Field label={t("rules.match")} error={errors.matchType?.message}>
          {(ids) => <Select {...ids} choices={matchTypes} {...form.register("matchType")} />}
        </Field>
        <Field label={t("rules.errors.appliesTo")} error={errors.appliesTo?.message}>
          {(ids) => (
            <Select
              {...ids}
              choices={(["4xx", "all"] as const).map((value) => ({
                value,
                label: t(`rules.errors.applies.${value}`),
              }))}
              {...form.register("appliesTo")}
            />
          )}
        </Field>
      </Section>
      <Section title={t("rules.errors.means")}>
        <Field
          label={t("rules.errors.category")}
          help={t("rules.errors.categoryHelp")}
          error={errors.category?.message}
        >
          {(ids) => (
            <Select
              {...ids}
              choices={CATEGORIES.map((value) => ({
                value,
                label: t(`rules.categories.${value}`),
              }))}
              {...form.register("category")}
            />
          )}
        </Field>
        <Field
          label={t("rules.errors.priority")}
          help={t("rules.errors.priorityHelp")}
          error={errors.priority?.message}
        >
          {(ids) => (
            <Input
              {...ids}
              inputMode="numeric"
              autoComplete="off"
              {...form.register("priority", { validate: whole })}
            />
          )}
        </Field>
        <Field
          label={t("rules.description")}
          optional={t("ui.optional")}
          error={errors.description?.message}
          className="sm:col-span-2"
        >
          {(ids) => (
            <Input {...ids} autoComplete="off" maxLength={500} {...form.register("description")} />
          )}
        </Field>
      </Section>
      <Section title={t("rules.errors.tells")} help={t("rules.errors.tellsHelp")}>
        <Field
          label={t("rules.errors.status")}
          help={t("rules.errors.statusHelp")}
          optional={t("ui.optional")}
          error={errors.overrideStatusCode?.message}
        >
          {(ids) => (
            <Input
              {...ids}
              inputMode="numeric"
              autoComplete="off"
              placeholder={t("rules.errors.asUpstream")}
              {...form.register("overrideStatusCode", { validate: whole })}
            />
          )}
        </Field>
        <Field
          label={t("rules.errors.response")}
          help={t("rules.errors.responseHelp")}
          optional={t("ui.optional")}
          error={errors.overrideResponse?.message}
          className="sm:col-span-2"
        >
          {(ids) => (
            <Textarea
              {...ids}
              rows={4}
              placeholder={t("rules.errors.responsePlaceholder")}
              {...form.register("overrideResponse")}
            />
          )}
        </Field>
      </Section>
      <Switch label={t("rules.enabled")} {...form.register("isEnabled")} />
    </FormDrawer>
  );
}
