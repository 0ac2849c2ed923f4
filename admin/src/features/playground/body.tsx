/** The body of the request: a few fields, or the JSON text. */
import type { TFunction } from "i18next";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { Field, Input, Textarea } from "@/ui/field";
import { Tabs } from "@/ui/tabs";
import { isBatch } from "./batch";
import { LARGEST_FILE, readFile, takesNoText } from "./endpoint";
import type { Draft, Refused } from "./request";

interface Props {
  draft: Draft;
  /** What is to be shown as wrong. */
  fault: Refused | undefined;
  onChange: (
    changed: Partial<Pick<Draft, "system" | "prompt" | "maxTokens" | "body" | "file">>,
  ) => void;
  onRaw: (raw: boolean) => void;
}

/** The reason why the request cannot be sent, as text. */
function said(t: TFunction, fault: Refused | undefined): string | undefined {
  if (fault === undefined) return undefined;
  if (fault.what === "json")
    return t("playground.badJson", { line: fault.at.line, column: fault.at.column });
  return t(`playground.refused.${fault.what}`);
}

export function Body({ draft, fault: wrong, onChange, onRaw }: Props) {
  const { t } = useTranslation();
  const fault = wrong?.what === "file" ? undefined : said(t, wrong);
  return (
    <>
      {draft.endpoint?.isForm && (
        <FileField
          fault={wrong?.what === "file" ? said(t, wrong) : undefined}
          {...{ draft, onChange }}
        />
      )}
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
    </>
  );
}

type PartProps = Pick<Props, "draft" | "onChange"> & { fault: string | undefined };

/** The file of a form. It is read at once, so that it can be sent again. */
function FileField({ draft, fault, onChange }: PartProps) {
  const { t } = useTranslation();
  const [tooLarge, setTooLarge] = useState(false);
  const choose = async (file: File | undefined) => {
    const isTooLarge = file !== undefined && file.size > LARGEST_FILE;
    setTooLarge(isTooLarge);
    onChange({ file: file && !isTooLarge ? await readFile(file) : undefined });
  };
  return (
    <Field
      label={t("playground.file")}
      help={draft.file?.name ?? t("playground.fileHelp")}
      error={tooLarge ? t("playground.fileTooLarge") : fault}
    >
      {(ids) => (
        <Input
          {...ids}
          type="file"
          className="py-1.5"
          onChange={(event) => void choose(event.target.files?.[0] ?? undefined)}
        />
      )}
    </Field>
  );
}

function Simple({ draft, fault, onChange }: PartProps) {
  const { t } = useTranslation();
  const { endpoint } = draft;
  if (endpoint) {
    return (
      <Field
        label={t("playground.text")}
        optional={takesNoText(endpoint) ? t("ui.optional") : undefined}
        help={helpOf(t, endpoint.name)}
        error={fault}
      >
        {(ids) => (
          <Textarea
            {...ids}
            rows={5}
            value={draft.prompt}
            onChange={(event) => onChange({ prompt: event.target.value })}
          />
        )}
      </Field>
    );
  }
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

function helpOf(t: TFunction, endpoint: string) {
  if (endpoint === "rerank") return t("playground.rerankHelp");
  return isBatch(endpoint) ? t("playground.linesHelp") : undefined;
}
