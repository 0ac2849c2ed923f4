/** Creates and edits a sensitive word. The gateway's refusal of a pattern is shown at its field. */
import { useState } from "react";
import { useForm } from "react-hook-form";
import { useTranslation } from "react-i18next";
import { changes } from "@/api/form";
import { DeleteButton } from "@/parts/delete";
import { FormDrawer } from "@/parts/form";
import { Field, Input, Select, Switch, Textarea } from "@/ui/field";
import { useToast } from "@/ui/toast";
import {
  MATCH_TYPES,
  useCreateWord,
  useDeleteWord,
  useUpdateWord,
  type Word,
  type WordFields,
} from "./api";
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
  const remove = useDeleteWord();
  // Only the edited fields are saved, so that changes of other users are kept.
  const [before] = useState(() => (word === null ? NEW : fieldsOf(word)));
  const form = useForm<WordFields>({ defaultValues: before });
  const { errors } = form.formState;
  const matchType = form.watch("matchType");
  const matchTypes = useMatchTypes();
  const save = async (values: WordFields) => {
    const changed = changes({ ...before }, { ...values });
    if (word === null) await create.mutateAsync(values);
    else if (Object.keys(changed).length > 0) await update.mutateAsync({ id: word.id, ...changed });
    return () => toast.good(t("rules.words.saved"));
  };
  return (
    <FormDrawer
      width="sm:max-w-lg"
      title={word === null ? t("rules.words.new") : t("rules.words.edit")}
      description={t("rules.words.formHelp")}
      form={form}
      onSubmit={save}
      onClose={onClose}
      submit={word === null ? t("ui.create") : t("ui.save")}
      names={{ DUPLICATE_WORD: "word" }}
      extra={(gone) =>
        word && (
          <DeleteButton
            question={{
              title: t("rules.words.deleteTitle", { word: word.word }),
              body: t("rules.words.deleteBody"),
              action: t("rules.words.deleteAction"),
            }}
            remove={() => remove.mutateAsync({ id: word.id })}
            done={t("rules.words.deleted")}
            onDone={gone}
          />
        )
      }
    >
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
            {...form.register("word", {
              validate: (text) => text.trim() !== "" || t("rules.words.noWord"),
            })}
          />
        )}
      </Field>
      <Field label={t("rules.match")} error={errors.matchType?.message}>
        {(ids) => <Select {...ids} choices={matchTypes} {...form.register("matchType")} />}
      </Field>
      <Field
        label={t("rules.description")}
        optional={t("ui.optional")}
        error={errors.description?.message}
      >
        {(ids) => <Textarea {...ids} rows={2} maxLength={500} {...form.register("description")} />}
      </Field>
      <Switch
        label={t("rules.enabled")}
        help={t("rules.words.enabledHelp")}
        {...form.register("isEnabled")}
      />
    </FormDrawer>
  );
}
