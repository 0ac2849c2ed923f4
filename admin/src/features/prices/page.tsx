/** The price table: search, sorting, and the actions that change it. */
import { useQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { CloudDownload, Plus, Tags, Upload } from "lucide-react";
import { useDeferredValue, useMemo, useState } from "react";
import { useTranslation } from "react-i18next";
import * as queries from "@/api/queries";
import { usePricesLooked } from "@/parts/first-steps";
import { usePanelHistory } from "@/parts/panel-history";
import { Button } from "@/ui/button";
import { Empty } from "@/ui/empty";
import { choiceFilter, Filters } from "@/ui/filters";
import { count, useFormat } from "@/ui/format";
import { List } from "@/ui/list";
import { Page } from "@/ui/page";
import type { Price } from "./api";
import { useColumns } from "./columns";
import { DailySync } from "./daily";
import { PriceEditor } from "./editor";
import { UnappliedHint, UnpricedHint } from "./hint";
import { PricePanel } from "./panel";
import { SyncDialog } from "./sync";
import { UploadDialog } from "./upload";

const SOURCES = ["manual", "sync", "seed"] as const;

export function PricesPage() {
  const { t } = useTranslation();
  const search = useSearch({ from: "/shell/prices" });
  const navigate = useNavigate({ from: "/prices" });
  const panel = usePanelHistory(search.model !== undefined);
  const set = (change: Partial<typeof search>, how: object = { replace: true }) =>
    void navigate({ search: (old) => ({ ...old, ...change }), ...how });
  const asked = useQuery(queries.prices);
  const { data } = asked;
  usePricesLooked(data !== undefined && data.length > 0);
  const prices = data as Price[] | undefined;
  const [dialog, setDialog] = useState<"upload" | "sync" | "edit">();
  const columns = useColumns();
  const words = useDeferredValue(search.q ?? "").toLowerCase();
  const rows = useMemo(() => {
    const parts = words.split(/\s+/).filter(Boolean);
    return (prices ?? []).filter(({ modelName, priceData, source }) => {
      const text =
        `${modelName} ${priceData.litellm_provider ?? ""} ${priceData.mode ?? ""}`.toLowerCase();
      return parts.every((part) => text.includes(part)) && (search.source ?? source) === source;
    });
  }, [prices, words, search.source]);
  const priced = useMemo(() => new Set(prices?.map((price) => price.modelName)), [prices]);
  const open = prices?.find((price) => price.modelName === search.model);
  const bySource = choiceFilter({
    id: "source",
    label: t("prices.source"),
    value: search.source,
    choices: SOURCES.map((value) => ({ value, label: t(`prices.sources.${value}`) })),
    any: t("prices.anySource"),
    onChange: (source) => set({ source }),
  });
  const filtered = search.q !== undefined || search.source !== undefined;

  return (
    <Page
      title={t("nav.prices")}
      help={t("prices.help")}
      full
      actions={
        <>
          <Button
            icon={<CloudDownload className="size-4" aria-hidden />}
            onClick={() => setDialog("sync")}
          >
            {t("prices.sync.action")}
          </Button>
          <Button
            icon={<Upload className="size-4" aria-hidden />}
            onClick={() => setDialog("upload")}
          >
            {t("prices.upload.action")}
          </Button>
          <Button
            variant="primary"
            icon={<Plus className="size-4" aria-hidden />}
            onClick={() => set({ model: undefined, add: "" })}
          >
            {t("prices.edit.add")}
          </Button>
        </>
      }
    >
      {prices !== undefined && <UnpricedHint onAdd={(model) => set({ add: model })} />}
      {prices !== undefined && <UnappliedHint prices={prices} />}
      <DailySync />
      <List
        asked={asked}
        id="prices"
        label={t("nav.prices")}
        rows={rows}
        rowId={(price) => price.modelName}
        columns={columns}
        sort={[{ id: "model", desc: false }]}
        onOpen={(price) => set({ model: price.modelName }, panel.opening())}
        openId={search.model ?? null}
        search={{ label: t("prices.search"), value: search.q, onChange: (q) => set({ q }) }}
        toolbar={
          <>
            <Filters filters={[bySource]} />
            {prices !== undefined && <Counted shown={rows.length} all={prices.length} />}
          </>
        }
        none={
          filtered
            ? {
                title: t("prices.none.filtered"),
                action: t("prices.none.clear"),
                clear: () => set({ q: undefined, source: undefined }),
              }
            : undefined
        }
        first={<First onSync={() => setDialog("sync")} onUpload={() => setDialog("upload")} />}
      />
      {open && (
        <PricePanel
          key={open.modelName}
          price={open}
          onClose={() => panel.close(() => set({ model: undefined }))}
          onEdit={() => setDialog("edit")}
        />
      )}
      {((open && dialog === "edit") || search.add !== undefined) && (
        <PriceEditor
          price={search.add === undefined ? (open ?? null) : null}
          model={search.add}
          taken={priced}
          onClose={(saved) => {
            setDialog(undefined);
            const shown = saved === undefined ? {} : { model: saved };
            set({ add: undefined, ...shown }, { replace: true, state: true });
          }}
        />
      )}
      {dialog === "upload" && <UploadDialog onClose={() => setDialog(undefined)} />}
      {dialog === "sync" && <SyncDialog onClose={() => setDialog(undefined)} />}
    </Page>
  );
}

/** The number of models, and of those that fit the filters. */
function Counted({ shown, all }: { shown: number; all: number }) {
  const { t } = useTranslation();
  const format = useFormat();
  const number = count(all, format);
  return (
    <span className="text-xs text-faint">
      {shown === all
        ? t("prices.all", { count: all, number })
        : t("prices.count", { shown: count(shown, format), all: number })}
    </span>
  );
}

function First({ onSync, onUpload }: { onSync: () => void; onUpload: () => void }) {
  const { t } = useTranslation();
  return (
    <Empty
      icon={<Tags className="size-6" aria-hidden />}
      title={t("prices.none.title")}
      action={
        <>
          <Button variant="primary" onClick={onSync}>
            {t("prices.sync.action")}
          </Button>
          <Button onClick={onUpload}>{t("prices.upload.action")}</Button>
        </>
      }
    >
      {t("prices.none.help")}
    </Empty>
  );
}
