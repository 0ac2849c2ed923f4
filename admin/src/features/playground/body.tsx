/** The body of the request: a few fields, or the JSON text. */
import { useTranslation } from "react-i18next";
import { Field, Input, Textarea } from "@/ui/field";
import { Tabs } from "@/ui/tabs";
import type { Draft } from "./request";

interface Props {
  draft: Draft;
  fault: string | undefined;
  onChange: (changed: Partial<Pick<Draft, "system" | "prompt" | "maxTokens" | "body">>) => void;
  onRaw: (raw: boolean) => void;
}

export function Body({ draft, fault, onChange, onRaw }: Props) {
  const { t } = useTranslation();
  return (
    <Tabs
      label={t("playground.body")}
      value={draft.raw ? "raw" : "simple"}
      onChange={(id) => onRaw(id === "raw")}
      tabs={[
        {
          id: "simple",
          label: t("playground.simple"),
          content: <Simple {...{ draft, fault, onChange }} />,
        },
        { id: "raw", label: "JSON", content: <Raw {...{ draft, fault, onChange }} /> },
      ]}
    />
  );
}

type PartProps = Omit<Props, "onRaw">;

function Simple({ draft, fault, onChange }: PartProps) {
  const { t } = useTranslation();
  return (
    <div className="space-y-4">
      <Field label={t("playground.system")} optional={t("ui.optional")}>
        {(ids) => (
          <Textarea
            {...ids}
            rows={2}
            className="!min-h-14"
            value={draft.system}
            onChange={(event) => onChange({ system: event.target.value })}
          />
        )}
      </Field>
      <Field label={t("playground.prompt")} error={fault}>
        {(ids) => (
          <Textarea
            {...ids}
            rows={5}
            value={draft.prompt}
            placeholder={t("playground.promptExample")}
            onChange={(event) => onChange({ prompt: event.target.value })}
          />
        )}
      </Field>
      <Field
        label={t("playground.maxTokens")}
        optional={t("ui.optional")}
        help={draft.format === "native" ? t("playground.maxTokensHelp") : undefined}
      >
        {(ids) => (
          <Input
            {...ids}
            inputMode="numeric"
            autoComplete="off"
            value={draft.maxTokens}
            placeholder={draft.format === "native" ? "1024" : undefined}
            onChange={(event) =>
              onChange({ maxTokens: event.target.value.replace(/\D/g, "").slice(0, 7) })
            }
          />
        )}
      </Field>
    </div>
  );
}

function Raw({ draft, fault, onChange }: PartProps) {
  const { t } = useTranslation();
  return (
    <Field
      label={t("playground.json")}
      error={fault}
      help={draft.format === "alt-cli" ? t("playground.jsonHelpPath") : t("playground.jsonHelp")}
    >
      {(ids) => (
        <Textarea
          {...ids}
          rows={14}
          spellCheck={false}
          className="font-mono !text-xs"
          value={draft.body}
          onChange={(event) => onChange({ body: event.target.value })}
        />
      )}
    </Field>
  );
}
