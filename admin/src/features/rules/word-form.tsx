/** A sensitive word: new, or one to be changed. A pattern that the gateway refuses is told at its field, in its words. */
import { Trash2 } from "lucide-react";
import { useForm } from "react-hook-form";
import { useTranslation } from "react-i18next";
import { ApiError } from "@/api/client";
import { changes, showFault } from "@/api/form";
import { Button } from "@/ui/button";
import { useConfirm } from "@/ui/confirm";
import { Drawer } from "@/ui/dialog";
import { useDiscard } from "@/ui/discard";
import { Field, Input, Select, Switch, Textarea } from "@/ui/field";
import { Notice } from "@/ui/status";
import { useToast } from "@/ui/toast";
import { MATCH_TYPES, useCreateWord, useDeleteWord, useUpdateWord, type Word, type WordFields } from "./api";
import { useMatchTypes } from "./cells";

const NEW: WordFields = { word: "", matchType: "contains", description: "", isEnabled: true };

const fieldsOf = ({ word, matchType, description, isEnabled }: Word): WordFields => ({
  word,
  matchType: MATCH_TYPES.find((known) => known === matchType) ?? "contains",
  description,
  isEnabled,
});

export function WordForm({ word, onClose }: { word: Word | null; onClose: () => void }) {
  const { t } = useTranslation();
  const toast = useToast();
  const create = useCreateWord();
  const update = useUpdateWord();
  const before = word === null ? NEW : fieldsOf(word);
  const form = useForm<WordFields>({ defaultValues: before });
  const { errors, isDirty } = form.formState;
  const close = useDiscard(isDirty, onClose);
  const matchType = form.watch("matchType");
  const matchTypes = useMatchTypes();
  const submit = form.handleSubmit(async (values) => {
    try {
      const changed = changes({ ...before }, { ...values });
      if (word === null) await create.mutateAsync(values);
      else if (Object.keys(changed).length > 0) await update.mutateAsync({ id: word.id, ...changed });
      toast.good(t("rules.words.saved"));
      onClose();
    } catch (error) {
      if (error instanceof ApiError && error.code === "DUPLICATE_WORD") {
        form.setError("word", { message: error.message }, { shouldFocus: true });
      } else showFault(error, form.setError, (name) => name in NEW);
    }
  });
  return (
    <Drawer
      open
      onClose={close}
      width="sm:max-w-lg"
      title={word === null ? t("rules.words.new") : t("rules.words.edit")}
      description={t("rules.words.formHelp")}
      footer={
        <>
          {word && <Delete word={word} onDone={onClose} />}
          <Button onClick={close}>{t("ui.cancel")}</Button>
          <Button variant="primary" busy={create.isPending || update.isPending} onClick={() => void submit()}>
            {word === null ? t("ui.create") : t("ui.save")}
          </Button>
        </>
      }
    >
      <form
        noValidate
        className="space-y-4"
        onSubmit={(event) => {
          event.preventDefault();
          void submit();
        }}
      >
        {errors.root && <Notice tone="bad">{errors.root.message}</Notice>}
        <Field
          label={matchType === "regex" ? t("rules.pattern") : t("rules.words.word")}
          help={matchType === "regex" ? t("rules.regexHelp") : t("rules.words.wordHelp")}
          error={errors.word?.message}
        >
          {(ids) => (
            <Input
              {...ids}
              className="font-mono"
              autoFocus={word === null}
              spellCheck={false}
              autoComplete="off"
              {...form.register("word", { validate: (text) => text.trim() !== "" || t("rules.words.noWord") })}
            />
          )}
        </Field>
        <Field label={t("rules.match")} error={errors.matchType?.message}>
          {(ids) => <Select {...ids} choices={matchTypes} {...form.register("matchType")} />}
        </Field>
        <Field label={t("rules.description")} optional={t("ui.optional")} error={errors.description?.message}>
          {(ids) => <Textarea {...ids} rows={2} maxLength={500} {...form.register("description")} />}
        </Field>
        <Switch label={t("rules.enabled")} help={t("rules.words.enabledHelp")} {...form.register("isEnabled")} />
        <button type="submit" hidden />
      </form>
    </Drawer>
  );
}

function Delete({ word, onDone }: { word: Word; onDone: () => void }) {
  const { t } = useTranslation();
  const confirm = useConfirm();
  const toast = useToast();
  const remove = useDeleteWord();
  const ask = async () => {
    const yes = await confirm({
      title: t("rules.words.deleteTitle", { word: word.word }),
      body: t("rules.words.deleteBody"),
      action: t("rules.words.deleteAction"),
    });
    if (!yes) return;
    remove.mutate(
      { id: word.id },
      {
        onSuccess: () => {
          toast.good(t("rules.words.deleted"));
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
