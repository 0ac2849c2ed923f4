/** Vendors' invoices beside the ledger, and the sources that they are read from. */
import { useQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { FileUp, Plus, ReceiptText, Scale } from "lucide-react";
import { type FormEvent, useMemo, useState } from "react";
import { useTranslation } from "react-i18next";
import * as queries from "@/api/queries";
import { download } from "@/parts/csv";
import { Button } from "@/ui/button";
import { Empty, Failed } from "@/ui/empty";
import { Checkbox, Field, Input, Select } from "@/ui/field";
import { money, useFormat } from "@/ui/format";
import { Page } from "@/ui/page";
import { Badge, Notice } from "@/ui/status";
import { DataTable } from "@/ui/table";
import { type Asked, type Reconciliation, reconciliation, type Source, sources } from "./api";
import { useColumns } from "./columns";
import { type BillingFile, FileForm } from "./file-form";
import { csvOf, type Row, rowsOf } from "./rows";
import type { InvoicesSearch } from "./search";
import { SourceForm } from "./source-form";

export function InvoicesPage() {
  const { t } = useTranslation();
  const search = useSearch({ from: "/shell/invoices" });
  const [file, setFile] = useState<BillingFile>();
  const [open, setOpen] = useState<"file" | "new" | Source>();
  const known = useQuery(sources);
  const compares = file !== undefined || (search.from !== undefined && search.to !== undefined);
  const { name, ...sent } = file ?? { name: undefined };
  const asked: Asked = {
    ...(search.from && { startDate: search.from }),
    ...(search.to && { endDate: search.to }),
    ...(search.provider !== undefined && { providerId: search.provider }),
    ...sent,
  };
  const result = useQuery({ ...reconciliation(asked, name), enabled: compares });
  const close = () => setOpen(undefined);
  return (
    <Page
      title={t("nav.invoices")}
      help={t("invoices.help")}
      full
      actions={
        <>
          <Button icon={<FileUp className="size-4" aria-hidden />} onClick={() => setOpen("file")}>
            {t("invoices.file")}
          </Button>
          <Button icon={<Plus className="size-4" aria-hidden />} onClick={() => setOpen("new")}>
            {t("invoices.addSource")}
          </Button>
        </>
      }
    >
      {known.error && <Failed error={known.error} retry={() => void known.refetch()} />}
      <Sources sources={known.data ?? []} onOpen={setOpen} />
      <Ask search={search} busy={result.isFetching} />
      {file && (
        <Notice
          tone="plain"
          title={t("invoices.fileShown", { name: file.name })}
          action={
            <Button size="sm" onClick={() => setFile(undefined)}>
              {t("invoices.closeFile")}
            </Button>
          }
        />
      )}
      {compares && result.error && (
        <Failed error={result.error} retry={() => void result.refetch()} />
      )}
      <Totals data={result.data} />
      {compares && !result.error && (
        <Lines data={result.data} search={search} loading={result.isPending} />
      )}
      {!compares && known.data?.length === 0 && (
        <Empty icon={<ReceiptText className="size-6" aria-hidden />} title={t("invoices.noSource")}>
          {t("invoices.noSourceHelp")}
        </Empty>
      )}
      {open === "file" && <FileForm onChosen={setFile} onClose={close} />}
      {open !== undefined && open !== "file" && (
        <SourceForm
          source={open === "new" ? null : open}
          taken={(known.data ?? []).map(({ providerId }) => providerId)}
          onClose={close}
        />
      )}
    </Page>
  );
}

function Sources({ sources, onOpen }: { sources: Source[]; onOpen: (source: Source) => void }) {
  const { t } = useTranslation();
  const { data: providers = [] } = useQuery(queries.providers);
  if (sources.length === 0) return null;
  const nameOf = (id: number) => providers.find((one) => one.id === id)?.name ?? String(id);
  return (
    <section aria-label={t("invoices.sources")} className="mb-3 flex flex-wrap items-center gap-2">
      <span className="text-sm text-quiet">{t("invoices.sources")}</span>
      {sources.map((source) => (
        <Button key={source.providerId} size="sm" onClick={() => onOpen(source)}>
          {nameOf(source.providerId)}
          {source.isDaily && <Badge tone="plain">{t("invoices.daily")}</Badge>}
        </Button>
      ))}
    </section>
  );
}

const DAY = 86_400_000;
const dayBefore = (days: number) => new Date(Date.now() - days * DAY).toISOString().slice(0, 10);

/** The days and the provider; they are asked for when the button is pressed. */
function Ask({ search, busy }: { search: InvoicesSearch; busy: boolean }) {
  const { t } = useTranslation();
  const navigate = useNavigate({ from: "/invoices" });
  const { data: known = [] } = useQuery(sources);
  const { data: providers = [] } = useQuery(queries.providers);
  const [from, setFrom] = useState(search.from ?? dayBefore(8));
  const [to, setTo] = useState(search.to ?? dayBefore(2));
  const [provider, setProvider] = useState(String(search.provider ?? ""));
  const submit = (event: FormEvent) => {
    event.preventDefault();
    const asked = { from, to, provider: provider === "" ? undefined : Number(provider) };
    void navigate({ search: (old) => ({ ...old, ...asked }), replace: true });
  };
  const withSource = providers.filter(({ id }) => known.some((one) => one.providerId === id));
  const choices = [
    { value: "", label: t("invoices.everyProvider") },
    ...withSource.map(({ id, name }) => ({ value: String(id), label: name })),
  ];
  const date = (label: string, value: string, set: (text: string) => void) => (
    <Field label={label} className="w-36 grow sm:grow-0">
      {(ids) => (
        <Input
          {...ids}
          type="date"
          required
          value={value}
          onChange={(event) => set(event.target.value)}
        />
      )}
    </Field>
  );
  return (
    <form onSubmit={submit} className="mb-3 flex flex-wrap items-end gap-2">
      {date(t("invoices.from"), from, setFrom)}
      {date(t("invoices.to"), to, setTo)}
      <Field label={t("invoices.provider")} className="w-60 grow sm:grow-0">
        {(ids) => (
          <Select
            {...ids}
            choices={choices}
            value={provider}
            onChange={(event) => setProvider(event.target.value)}
          />
        )}
      </Field>
      <Button
        type="submit"
        variant="primary"
        busy={busy}
        icon={<Scale className="size-4" aria-hidden />}
      >
        {t("invoices.compare")}
      </Button>
    </form>
  );
}

function Totals({ data }: { data: Reconciliation | undefined }) {
  const { t } = useTranslation();
  const format = useFormat();
  return (
    <div className="mb-2 space-y-2">
      {data?.providers.map((one) =>
        one.error === null ? (
          <p key={one.providerId} className="text-sm">
            <span className="font-medium">{one.providerName}</span>{" "}
            <span className="text-quiet">
              {t("invoices.totals", {
                vendor: money(one.vendorCostUsd, format),
                ledger: money(one.ledgerCostUsd, format),
                differing: one.differing,
                lines: one.lines.length,
              })}
            </span>
          </p>
        ) : (
          <Notice
            key={one.providerId}
            tone="bad"
            title={t("invoices.notCompared", { name: one.providerName })}
          >
            {one.error}
          </Notice>
        ),
      )}
    </div>
  );
}

const rowId = (row: Row) => [row.providerId, row.day, row.part, row.model].join(" ");

function Lines({
  data,
  search,
  loading,
}: {
  data: Reconciliation | undefined;
  search: InvoicesSearch;
  loading: boolean;
}) {
  const { t } = useTranslation();
  const navigate = useNavigate({ from: "/invoices" });
  const columns = useColumns();
  const all = useMemo(() => rowsOf(data), [data]);
  const rows = useMemo(
    () => (search.all ? all : all.filter(({ cause }) => cause !== null)),
    [all, search.all],
  );
  const show = (every: boolean) =>
    void navigate({ search: (old) => ({ ...old, all: every || undefined }), replace: true });
  const name = `tollgate-invoices-${data?.startDate}-${data?.endDate}`;
  return (
    <DataTable
      id="invoices"
      label={t("nav.invoices")}
      full
      loading={loading}
      rows={rows}
      rowId={rowId}
      columns={columns}
      toolbar={
        <>
          <Checkbox
            label={t("invoices.onlyDifferences")}
            checked={!search.all}
            onChange={(event) => show(!event.target.checked)}
          />
          <Button
            size="sm"
            disabled={all.length === 0}
            onClick={() => download(csvOf(all), `${name}.csv`)}
          >
            CSV
          </Button>
          <Button
            size="sm"
            disabled={all.length === 0}
            onClick={() =>
              download(JSON.stringify(data, null, 2), `${name}.json`, "application/json")
            }
          >
            JSON
          </Button>
        </>
      }
      empty={
        all.length > 0 ? (
          <Empty
            title={t("invoices.noneDiffer")}
            action={<Button onClick={() => show(true)}>{t("invoices.showAll")}</Button>}
          />
        ) : (
          <Empty title={t("invoices.none")} />
        )
      }
    />
  );
}
