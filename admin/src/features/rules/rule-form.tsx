/** An error rule: what it looks for, what that means, and what the client is told instead. */
import { Trash2 } from "lucide-react";
import { useForm } from "react-hook-form";
import { useTranslation } from "react-i18next";
import { ApiError } from "@/api/client";
import { changes, showFault } from "@/api/form";
import { Button } from "@/ui/button";
import { useConfirm } from "@/ui/confirm";
import { Drawer } from "@/ui/dialog";
import { useDiscard } from "@/ui/discard";
import { Field, Input, Section, Select, Switch, Textarea } from "@/ui/field";
import { Notice } from "@/ui/status";
import { useToast } from "@/ui/toast";
import { CATEGORIES, type Rule, type RuleFields, useCreateRule, useDeleteRule, useUpdateRule } from "./api";
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
  const form = useForm<Form>({ defaultValues: formOf(rule ?? { ...NEW_RULE, ...draft }) });
  const { errors, isDirty } = form.formState;
  const close = useDiscard(isDirty, onClose);
  const matchTypes = useMatchTypes();
  const submit = form.handleSubmit(async (values) => {
    const body = bodyOf(values);
    try {
      if (rule === null) await create.mutateAsync(body);
      else {
        const changed = changes({ ...bodyOf(formOf(rule)) }, { ...body });
        if (Object.keys(changed).length > 0) await update.mutateAsync({ id: rule.id, ...changed });
      }
      toast.good(t("rules.errors.saved"));
      onClose();
    } catch (error) {
      if (error instanceof ApiError && error.code === "DUPLICATE_RULE") {
        form.setError("pattern", { message: error.message }, { shouldFocus: true });
      } else showFault(error, form.setError, (name) => name in NEW_RULE);
    }
  });
  const whole = (typed: string) => typed.trim() === "" || /^-?\d+$/.test(typed.trim()) || t("rules.errors.noWhole");
  return (
    <Drawer
      open
      onClose={close}
      title={rule === null ? t("rules.errors.new") : t("rules.errors.edit")}
      description={t("rules.errors.formHelp")}
      footer={
        <>
          {rule && <Delete rule={rule} onDone={onClose} />}
          <Button onClick={close}>{t("ui.cancel")}</Button>
          <Button variant="primary" busy={create.isPending || update.isPending} onClick={() => void submit()}>
            {rule === null ? t("ui.create") : t("ui.save")}
          </Button>
        </>
      }
    >
      <form
        noValidate
        className="space-y-5"
        onSubmit={(event) => {
          event.preventDefault();
          void submit();
        }}
      >
        {errors.root && <Notice tone="bad">{errors.root.message}</Notice>}
        {rule?.isDefault && (
          <Notice tone="plain">{rule.isEdited ? t("rules.errors.editedHelp") : t("rules.errors.shippedHelp")}</Notice>
        )}
        <Section title={t("rules.errors.finds")}>
          <Field
            label={t("rules.pattern")}
            help={form.watch("matchType") === "regex" ? t("rules.regexHelp") : t("rules.errors.patternHelp")}
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
                {...form.register("pattern", { validate: (text) => text.trim() !== "" || t("rules.errors.noPattern") })}
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
                choices={CATEGORIES.map((value) => ({ value, label: t(`rules.categories.${value}`) }))}
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
            {(ids) => <Input {...ids} autoComplete="off" maxLength={500} {...form.register("description")} />}
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
        <button type="submit" hidden />
      </form>
    </Drawer>
  );
}

function Delete({ rule, onDone }: { rule: Rule; onDone: () => void }) {
  const { t } = useTranslation();
  const confirm = useConfirm();
  const toast = useToast();
  const remove = useDeleteRule();
  const ask = async () => {
    const yes = await confirm({
      title: t("rules.errors.deleteTitle", { pattern: rule.pattern }),
      body: rule.isDefault ? t("rules.errors.deleteShipped") : t("rules.errors.deleteBody"),
      action: t("rules.errors.deleteAction"),
    });
    if (!yes) return;
    remove.mutate(
      { id: rule.id },
      {
        onSuccess: () => {
          toast.good(t("rules.errors.deleted"));
          onDone();
        },
        onError: (error) => toast.bad(error.message || t("ui.noConnection")),
      },
    );
  };
  return (
    <Button
      variant="ghost"
      className="mr-auto !text-bad"
      icon={<Trash2 className="size-4" aria-hidden />}
      busy={remove.isPending}
      onClick={() => void ask()}
    >
      {t("ui.delete")}
    </Button>
  );
}
