/** An error rule: its pattern, its category, and the error that the client gets instead. */
import { useTranslation } from "react-i18next";
import { callAny } from "@/api/client";
import { useEditor } from "@/parts/editor";
import { LinesField, SelectField, TextField } from "@/parts/fields";
import { FormDrawer } from "@/parts/form";
import { Section, Switch } from "@/ui/field";
import { Notice } from "@/ui/status";
import { CATEGORIES, keys, type Rule, type RuleFields, useDeleteRule } from "./api";
import { useMatchTypes } from "./cells";
import { bodyOf, formOf, NEW_RULE } from "./rule-values";

interface Props {
  rule: Rule | null;
  draft: Partial<RuleFields>;
  onClose: () => void;
}

export function RuleForm({ rule, draft, onClose }: Props) {
  const { t } = useTranslation();
  const remove = useDeleteRule();
  const matchTypes = useMatchTypes();
  const editor = useEditor({
    values: () => formOf(rule ?? { ...NEW_RULE, ...draft }),
    body: bodyOf,
    update: rule && ((changed) => callAny("ui/error-rules/update", { id: rule.id, ...changed })),
    create: (body) => callAny("ui/error-rules/create", body),
    rereads: [keys.errors],
    saved: () => t("rules.errors.saved"),
  });
  const { form } = editor;
  const whole = (typed: string) =>
    typed.trim() === "" || /^-?\d+$/.test(typed.trim()) || t("rules.errors.noWhole");
  return (
    <FormDrawer
      {...editor}
      title={rule === null ? t("rules.errors.new") : t("rules.errors.edit")}
      description={t("rules.errors.formHelp")}
      onClose={onClose}
      names={{ DUPLICATE_RULE: "pattern" }}
      deletion={
        rule && {
          question: {
            title: t("rules.errors.deleteTitle", { pattern: rule.pattern }),
            body: t(rule.isDefault ? "rules.errors.deleteShipped" : "rules.errors.deleteBody"),
            action: t("rules.errors.deleteAction"),
          },
          remove: () => remove.mutateAsync({ id: rule.id }),
          done: t("rules.errors.deleted"),
        }
      }
    >
      {rule?.isDefault && (
        <Notice tone="plain">
          {rule.isEdited ? t("rules.errors.editedHelp") : t("rules.errors.shippedHelp")}
        </Notice>
      )}
      <Section title={t("rules.errors.finds")}>
        <TextField
          form={form}
          name="pattern"
          label={t("rules.pattern")}
          help={t(
            form.watch("matchType") === "regex" ? "rules.regexHelp" : "rules.errors.patternHelp",
          )}
          validate={(text) => text.trim() !== "" || t("rules.errors.noPattern")}
          mono
          control={{ autoFocus: rule === null, spellCheck: false }}
          className="sm:col-span-2"
        />
        <SelectField form={form} name="matchType" label={t("rules.match")} choices={matchTypes} />
        <SelectField
          form={form}
          name="appliesTo"
          label={t("rules.errors.appliesTo")}
          choices={(["4xx", "all"] as const).map((value) => ({
            value,
            label: t(`rules.errors.applies.${value}`),
          }))}
        />
      </Section>
      <Section title={t("rules.errors.means")}>
        <SelectField
          form={form}
          name="category"
          label={t("rules.errors.category")}
          help={t("rules.errors.categoryHelp")}
          choices={CATEGORIES.map((value) => ({ value, label: t(`rules.categories.${value}`) }))}
        />
        <TextField
          form={form}
          name="priority"
          label={t("rules.errors.priority")}
          help={t("rules.errors.priorityHelp")}
          validate={whole}
          control={{ inputMode: "numeric" }}
        />
        <TextField
          form={form}
          name="description"
          label={t("rules.description")}
          optional
          control={{ maxLength: 500 }}
          className="sm:col-span-2"
        />
      </Section>
      <Section title={t("rules.errors.tells")} help={t("rules.errors.tellsHelp")}>
        <TextField
          form={form}
          name="overrideStatusCode"
          label={t("rules.errors.status")}
          help={t("rules.errors.statusHelp")}
          optional
          validate={whole}
          control={{ inputMode: "numeric", placeholder: t("rules.errors.asUpstream") }}
        />
        <LinesField
          form={form}
          name="overrideResponse"
          label={t("rules.errors.response")}
          help={t("rules.errors.responseHelp")}
          optional
          control={{ rows: 4, placeholder: t("rules.errors.responsePlaceholder") }}
          className="sm:col-span-2"
        />
      </Section>
      <Switch label={t("rules.enabled")} {...form.register("isEnabled")} />
    </FormDrawer>
  );
}
