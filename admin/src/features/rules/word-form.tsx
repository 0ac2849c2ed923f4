/** Creates and edits a sensitive word. The gateway's refusal of a pattern is shown at its field. */
import { useTranslation } from "react-i18next";
import { call } from "@/api/client";
import { useEditor } from "@/parts/editor";
import { LinesField, SelectField, TextField } from "@/parts/fields";
import { FormDrawer } from "@/parts/form";
import { Switch } from "@/ui/field";
import { keys, MATCH_TYPES, useDeleteWord, type Word, type WordFields } from "./api";
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
  const remove = useDeleteWord();
  const matchTypes = useMatchTypes();
  const editor = useEditor({
    values: () => (word === null ? NEW : fieldsOf(word)),
    body: (values) => values,
    update:
      word &&
      ((changed) =>
        call("actions/sensitive-words/updateSensitiveWordAction", { id: word.id, ...changed })),
    create: (body) => call("actions/sensitive-words/createSensitiveWordAction", body),
    rereads: [keys.words],
    saved: () => t("rules.words.saved"),
  });
  const { form } = editor;
  const isRegex = form.watch("matchType") === "regex";
  return (
    <FormDrawer
      {...editor}
      width="sm:max-w-lg"
      title={word === null ? t("rules.words.new") : t("rules.words.edit")}
      description={t("rules.words.formHelp")}
      onClose={onClose}
      names={{ DUPLICATE_WORD: "word" }}
      deletion={
        word && {
          question: {
            title: t("rules.words.deleteTitle", { word: word.word }),
            body: t("rules.words.deleteBody"),
            action: t("rules.words.deleteAction"),
          },
          remove: () => remove.mutateAsync({ id: word.id }),
          done: t("rules.words.deleted"),
        }
      }
    >
      <TextField
        form={form}
        name="word"
        label={isRegex ? t("rules.pattern") : t("rules.words.word")}
        help={isRegex ? t("rules.regexHelp") : t("rules.words.wordHelp")}
        validate={(text) => text.trim() !== "" || t("rules.words.noWord")}
        mono
        control={{ autoFocus: word === null, spellCheck: false }}
      />
      <SelectField form={form} name="matchType" label={t("rules.match")} choices={matchTypes} />
      <LinesField
        form={form}
        name="description"
        label={t("rules.description")}
        optional
        control={{ rows: 2, maxLength: 500 }}
      />
      <Switch
        label={t("rules.enabled")}
        help={t("rules.words.enabledHelp")}
        {...form.register("isEnabled")}
      />
    </FormDrawer>
  );
}
