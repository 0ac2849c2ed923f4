/** Chooses a billing file to compare. Nothing is stored. */
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useForm } from "react-hook-form";
import { useTranslation } from "react-i18next";
import * as queries from "@/api/queries";
import { SelectField } from "@/parts/fields";
import { FormDialog } from "@/parts/form";
import { Field, Input } from "@/ui/field";
import { FILE_KINDS } from "./api";

export interface BillingFile {
  providerId: number;
  fileKind: (typeof FILE_KINDS)[number];
  csv: string;
  name: string;
}

interface Form {
  providerId: string;
  fileKind: (typeof FILE_KINDS)[number];
}

export function FileForm({
  onChosen,
  onClose,
}: {
  onChosen: (file: BillingFile) => void;
  onClose: () => void;
}) {
  const { t } = useTranslation();
  const { data: providers = [] } = useQuery(queries.providers);
  const form = useForm<Form>({
    defaultValues: { providerId: String(providers[0]?.id ?? ""), fileKind: "google" },
  });
  const [chosen, setChosen] = useState<File>();
  const [missing, setMissing] = useState(false);
  const submit = async (typed: Form) => {
    if (!chosen) {
      setMissing(true);
      throw new Error(t("invoices.noFile"));
    }
    const { fileKind, providerId } = typed;
    const csv = await chosen.text();
    return () => onChosen({ providerId: Number(providerId), fileKind, csv, name: chosen.name });
  };
  return (
    <FormDialog
      title={t("invoices.fileTitle")}
      description={t("invoices.fileHelp")}
      form={form}
      onSubmit={submit}
      onClose={onClose}
      submit={t("invoices.compare")}
    >
      <SelectField
        form={form}
        name="providerId"
        label={t("invoices.provider")}
        choices={providers.map(({ id, name }) => ({ value: String(id), label: name }))}
      />
      <SelectField
        form={form}
        name="fileKind"
        label={t("invoices.fileKind")}
        choices={FILE_KINDS.map((kind) => ({ value: kind, label: t(`invoices.kinds.${kind}`) }))}
      />
      <Field
        label={t("invoices.choose")}
        error={missing && !chosen ? t("invoices.noFile") : undefined}
      >
        {(ids) => (
          <Input
            {...ids}
            type="file"
            className="py-1.5"
            accept=".csv,text/csv"
            onChange={(event) => setChosen(event.target.files?.[0])}
          />
        )}
      </Field>
    </FormDialog>
  );
}
