/** Adds and edits where a provider's invoice is read from. The stored key is never shown. */
import { useQuery } from "@tanstack/react-query";
import { useTranslation } from "react-i18next";
import { call } from "@/api/client";
import * as queries from "@/api/queries";
import { useEditor } from "@/parts/editor";
import { NumberField, SelectField, TextField } from "@/parts/fields";
import { FormDrawer } from "@/parts/form";
import { Switch } from "@/ui/field";
import { KEYS, KINDS, type Source, useRemoveSource } from "./api";

interface Form {
  providerId: string;
  kind: (typeof KINDS)[number];
  url: string;
  adminKey: string;
  apiKeyIds: string;
  isDaily: boolean;
  alertAboveUsd: string;
}

const formOf = (source: Source | null, first: number | undefined): Form => ({
  providerId: String(source?.providerId ?? first ?? ""),
  kind: KINDS.find((kind) => kind === source?.kind) ?? "anthropic",
  url: source?.url ?? "",
  adminKey: "",
  apiKeyIds: source?.apiKeyIds.join(" ") ?? "",
  isDaily: source?.isDaily ?? false,
  alertAboveUsd: String(source?.alertAboveUsd ?? 1),
});

/** An empty key keeps the stored one. */
const bodyOf = (typed: Form) => ({
  providerId: Number(typed.providerId),
  kind: typed.kind,
  url: typed.url.trim() || null,
  ...(typed.adminKey.trim() && { adminKey: typed.adminKey.trim() }),
  apiKeyIds: typed.apiKeyIds.split(/[\s,]+/).filter(Boolean),
  isDaily: typed.isDaily,
  alertAboveUsd: typed.alertAboveUsd.trim(),
});

interface Props {
  source: Source | null;
  /** Providers that have one. */
  taken: number[];
  onClose: () => void;
}

export function SourceForm({ source, taken, onClose }: Props) {
  const { t } = useTranslation();
  const { data: providers = [] } = useQuery(queries.providers);
  const free = providers.filter(({ id }) => id === source?.providerId || !taken.includes(id));
  const remove = useRemoveSource();
  const name = providers.find(({ id }) => id === source?.providerId)?.name ?? "";
  const editor = useEditor({
    values: () => formOf(source, free[0]?.id),
    body: bodyOf,
    create: (body) => call("actions/reconciliation/saveInvoiceSource", body),
    rereads: [KEYS],
    saved: () => t("invoices.saved"),
  });
  const { form } = editor;
  return (
    <FormDrawer
      {...editor}
      width="sm:max-w-lg"
      title={source === null ? t("invoices.newSource") : t("invoices.editSource", { name })}
      description={t("invoices.sourceHelp")}
      onClose={onClose}
      submit={source === null ? t("ui.create") : t("ui.save")}
      deletion={
        source && {
          question: {
            title: t("invoices.deleteTitle", { name }),
            body: t("invoices.deleteBody"),
            action: t("invoices.deleteAction"),
          },
          remove: () => remove.mutateAsync(source.providerId),
          done: t("invoices.deleted"),
        }
      }
    >
      {source === null && (
        <SelectField
          form={form}
          name="providerId"
          label={t("invoices.provider")}
          choices={free.map(({ id, name }) => ({ value: String(id), label: name }))}
        />
      )}
      <SelectField
        form={form}
        name="kind"
        label={t("invoices.kind")}
        choices={KINDS.map((kind) => ({ value: kind, label: t(`invoices.kinds.${kind}`) }))}
      />
      <TextField
        form={form}
        name="adminKey"
        label={t("invoices.adminKey")}
        help={t("invoices.adminKeyHelp")}
        validate={(text) => source !== null || text.trim() !== "" || t("invoices.noKey")}
        mono
        control={{
          spellCheck: false,
          placeholder: source ? t("invoices.adminKeyKept", { mask: source.adminKey }) : undefined,
        }}
      />
      <TextField
        form={form}
        name="url"
        label={t("invoices.url")}
        help={t("invoices.urlHelp")}
        optional
        control={{ inputMode: "url", spellCheck: false }}
      />
      <TextField
        form={form}
        name="apiKeyIds"
        label={t("invoices.apiKeyIds")}
        help={t("invoices.apiKeyIdsHelp")}
        optional
        mono
        control={{ spellCheck: false }}
      />
      <Switch
        label={t("invoices.isDaily")}
        help={t("invoices.isDailyHelp")}
        {...form.register("isDaily")}
      />
      <NumberField
        form={form}
        name="alertAboveUsd"
        label={t("invoices.alertAbove")}
        unit="USD"
        validate={(text) => /^\d+(\.\d{1,2})?$/.test(text.trim()) || t("invoices.noAmountTyped")}
      />
    </FormDrawer>
  );
}
