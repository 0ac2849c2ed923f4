/** Adds and edits where a provider's invoice is read from. The stored key is never shown. */
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useForm } from "react-hook-form";
import { useTranslation } from "react-i18next";
import * as queries from "@/api/queries";
import { DeleteButton } from "@/parts/delete";
import { FormDrawer } from "@/parts/form";
import { Field, Input, NumberInput, Select, Switch } from "@/ui/field";
import { useToast } from "@/ui/toast";
import { KINDS, type Source, useRemoveSource, useSaveSource } from "./api";

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

export function SourceForm({
  source,
  taken,
  onClose,
}: {
  source: Source | null;
  /** Providers that have one. */
  taken: number[];
  onClose: () => void;
}) {
  const { t } = useTranslation();
  const toast = useToast();
  const { data: providers = [] } = useQuery(queries.providers);
  const free = providers.filter(({ id }) => id === source?.providerId || !taken.includes(id));
  const save = useSaveSource();
  const remove = useRemoveSource();
  const [before] = useState(() => formOf(source, free[0]?.id));
  const form = useForm<Form>({ defaultValues: before });
  const { errors } = form.formState;
  const name = providers.find(({ id }) => id === source?.providerId)?.name ?? "";
  const submit = async (typed: Form) => {
    await save.mutateAsync({
      providerId: Number(typed.providerId),
      kind: typed.kind,
      url: typed.url.trim() || null,
      ...(typed.adminKey.trim() && { adminKey: typed.adminKey.trim() }),
      apiKeyIds: typed.apiKeyIds.split(/[\s,]+/).filter(Boolean),
      isDaily: typed.isDaily,
      alertAboveUsd: typed.alertAboveUsd.trim(),
    });
    return () => toast.good(t("invoices.saved"));
  };
  return (
    <FormDrawer
      width="sm:max-w-lg"
      title={source === null ? t("invoices.newSource") : t("invoices.editSource", { name })}
      description={t("invoices.sourceHelp")}
      form={form}
      onSubmit={submit}
      onClose={onClose}
      submit={source === null ? t("ui.create") : t("ui.save")}
      extra={(gone) =>
        source && (
          <DeleteButton
            question={{
              title: t("invoices.deleteTitle", { name }),
              body: t("invoices.deleteBody"),
              action: t("invoices.deleteAction"),
            }}
            remove={() => remove.mutateAsync({ providerId: source.providerId })}
            done={t("invoices.deleted")}
            onDone={gone}
          />
        )
      }
    >
      {source === null && (
        <Field label={t("invoices.provider")} error={errors.providerId?.message}>
          {(ids) => (
            <Select
              {...ids}
              choices={free.map(({ id, name }) => ({ value: String(id), label: name }))}
              {...form.register("providerId")}
            />
          )}
        </Field>
      )}
      <Field label={t("invoices.kind")} error={errors.kind?.message}>
        {(ids) => (
          <Select
            {...ids}
            choices={KINDS.map((kind) => ({ value: kind, label: t(`invoices.kinds.${kind}`) }))}
            {...form.register("kind")}
          />
        )}
      </Field>
      <Field
        label={t("invoices.adminKey")}
        help={t("invoices.adminKeyHelp")}
        error={errors.adminKey?.message}
      >
        {(ids) => (
          <Input
            {...ids}
            className="font-mono"
            autoComplete="off"
            spellCheck={false}
            placeholder={source ? t("invoices.adminKeyKept", { mask: source.adminKey }) : undefined}
            {...form.register("adminKey", {
              validate: (text) => source !== null || text.trim() !== "" || t("invoices.noKey"),
            })}
          />
        )}
      </Field>
      <Field
        label={t("invoices.url")}
        help={t("invoices.urlHelp")}
        optional={t("ui.optional")}
        error={errors.url?.message}
      >
        {(ids) => <Input {...ids} inputMode="url" spellCheck={false} {...form.register("url")} />}
      </Field>
      <Field
        label={t("invoices.apiKeyIds")}
        help={t("invoices.apiKeyIdsHelp")}
        optional={t("ui.optional")}
        error={errors.apiKeyIds?.message}
      >
        {(ids) => (
          <Input
            {...ids}
            className="font-mono"
            spellCheck={false}
            {...form.register("apiKeyIds")}
          />
        )}
      </Field>
      <Switch
        label={t("invoices.isDaily")}
        help={t("invoices.isDailyHelp")}
        {...form.register("isDaily")}
      />
      <Field label={t("invoices.alertAbove")} unit="USD" error={errors.alertAboveUsd?.message}>
        {(ids) => (
          <NumberInput
            {...ids}
            inputMode="decimal"
            {...form.register("alertAboveUsd", {
              validate: (text) =>
                /^\d+(\.\d{1,2})?$/.test(text.trim()) || t("invoices.noAmountTyped"),
            })}
          />
        )}
      </Field>
    </FormDrawer>
  );
}
