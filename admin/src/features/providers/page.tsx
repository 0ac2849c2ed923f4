/** The providers in the order of their priority, their health, and the order of selection. */
import { useQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { Plus, Server, Zap } from "lucide-react";
import { useMemo, useState } from "react";
import { useTranslation } from "react-i18next";
import * as queries from "@/api/queries";
import { usePanelHistory } from "@/parts/panel-history";
import { Button } from "@/ui/button";
import { Empty, Failed } from "@/ui/empty";
import { percent, useFormat } from "@/ui/format";
import { Page } from "@/ui/page";
import { Tag } from "@/ui/status";
import { type Column, DataTable } from "@/ui/table";
import { Tabs } from "@/ui/tabs";
import { Count, Money } from "@/ui/text";
import { Flow } from "./flow";
import { ProviderForm } from "./form";
import { HealthBadge } from "./health";
import { ProviderPanel } from "./panel";
import type { Health, Provider } from "./selection";
import { TestAll } from "./test-all";

export function ProvidersPage() {
  const { t } = useTranslation();
  const search = useSearch({ from: "/shell/providers" });
  const navigate = useNavigate({ from: "/providers" });
  const panel = usePanelHistory(search.id !== undefined);
  const { data, error, isPending, refetch } = useQuery(queries.providers);
  const { data: health = [] } = useQuery(queries.health);
  const [form, setForm] = useState<{ provider?: Provider; like?: Provider } | null>(null);
  const [testing, setTesting] = useState(false);
  const rows = useMemo(
    () =>
      [...(data ?? [])].sort(
        (a, b) => a.priority - b.priority || b.weight - a.weight || a.id - b.id,
      ),
    [data],
  );
  const chosen = rows.find((provider) => provider.id === search.id);
  const columns = useColumns(health);
  const add = (
    <Button
      variant="primary"
      icon={<Plus className="size-4" aria-hidden />}
      onClick={() => setForm({})}
    >
      {t("providers.add")}
    </Button>
  );
  const empty = (
    <Empty
      icon={<Server className="size-6" aria-hidden />}
      title={t("providers.noneYet")}
      action={add}
    >
      {t("providers.noneHelp")}
    </Empty>
  );
  const list = (
    <DataTable
      id="providers"
      label={t("nav.providers")}
      loading={isPending}
      rows={rows}
      rowId={(provider) => String(provider.id)}
      columns={columns}
      openId={chosen ? String(chosen.id) : null}
      onOpen={(provider) =>
        void navigate({ search: (old) => ({ ...old, id: provider.id }), ...panel.opening() })
      }
      dim={(provider) => !provider.isEnabled}
      empty={empty}
    />
  );
  return (
    <Page
      title={t("nav.providers")}
      actions={
        rows.length > 0 && (
          <>
            <Button icon={<Zap className="size-4" aria-hidden />} onClick={() => setTesting(true)}>
              {t("providers.testAll")}
            </Button>
            {add}
          </>
        )
      }
    >
      {error && data === undefined ? (
        <Failed error={error} retry={() => void refetch()} />
      ) : rows.length === 0 ? (
        list
      ) : (
        <Tabs
          label={t("nav.providers")}
          value={search.view ?? "list"}
          onChange={(view) =>
            void navigate({
              search: (old) => ({ ...old, view: view === "flow" ? "flow" : undefined }),
              replace: true,
            })
          }
          tabs={[
            { id: "list", label: t("providers.list"), content: list },
            {
              id: "flow",
              label: t("providers.flow.title"),
              content: <Flow providers={rows} health={health} />,
            },
          ]}
        />
      )}
      {chosen && (
        <ProviderPanel
          key={chosen.id}
          provider={chosen}
          health={health.find((one) => one.providerId === chosen.id)}
          onClose={() =>
            panel.close(
              () => void navigate({ search: (old) => ({ ...old, id: undefined }), replace: true }),
            )
          }
          onEdit={() => setForm({ provider: chosen })}
          onCopy={() => setForm({ like: chosen })}
        />
      )}
      {form && <ProviderForm {...form} onClose={() => setForm(null)} />}
      {testing && <TestAll providers={rows} onClose={() => setTesting(false)} />}
    </Page>
  );
}

/** Today's requests and cost by provider, summed from the day's points. */
function useToday(): Map<number, { calls: number; cost: number }> {
  const { data } = useQuery(queries.statistics({ timeRange: "today", groupBy: "provider" }));
  return useMemo(() => {
    const sums = new Map<number, { calls: number; cost: number }>();
    for (const line of data?.users ?? []) {
      const of = (what: string) =>
        (data?.chartData ?? []).reduce(
          (sum, point) =>
            sum + Number((point as Record<string, unknown>)[`${line.dataKey}_${what}`] ?? 0),
          0,
        );
      sums.set(line.id, { calls: of("calls"), cost: of("cost") });
    }
    return sums;
  }, [data]);
}

/** The failed share of the attempts of the past five minutes. */
function Recent({ health }: { health: Health | undefined }) {
  const format = useFormat();
  const { t } = useTranslation();
  if (!health || health.recentAttempts === 0) return <span className="text-faint">—</span>;
  const { recentFailures: failures, recentAttempts: attempts, recentFailureRate } = health;
  const share = percent(recentFailureRate / 100, format);
  return (
    <span className="tabular" title={t("providers.recentRate", { failures, attempts, share })}>
      {share}
    </span>
  );
}

function useColumns(health: Health[]): Column<Provider>[] {
  const { t } = useTranslation();
  const today = useToday();
  return useMemo(
    () => [
      {
        id: "name",
        header: t("providers.fields.name"),
        className: "max-w-72 truncate max-sm:max-w-40",
        value: (one) => one.name.toLowerCase(),
        cell: (one) => (
          <span className="font-medium" title={one.name}>
            {one.name}
          </span>
        ),
      },
      {
        id: "health",
        header: t("providers.health"),
        cell: (one) => (
          <HealthBadge
            provider={one}
            health={health.find((state) => state.providerId === one.id)}
            cause
          />
        ),
      },
      {
        id: "recent",
        header: t("providers.recentShort"),
        align: "right",
        value: (one) => health.find((state) => state.providerId === one.id)?.recentFailureRate ?? 0,
        cell: (one) => <Recent health={health.find((state) => state.providerId === one.id)} />,
      },
      {
        id: "priority",
        header: t("providers.fields.priority"),
        align: "right",
        value: (one) => one.priority,
        cell: (one) => one.priority,
      },
      {
        id: "weight",
        header: t("providers.fields.weight"),
        align: "right",
        value: (one) => one.weight,
        cell: (one) => one.weight,
      },
      {
        id: "type",
        header: t("providers.fields.provider_type"),
        value: (one) => one.providerType,
        cell: (one) => t(`providers.types.${one.providerType as "native"}`),
      },
      {
        id: "groups",
        header: t("providers.fields.group_tag"),
        cell: (one) => (
          <span className="flex gap-1">
            {(one.groupTag ?? "default").split(",").map((tag) => (
              <Tag key={tag}>{tag.trim()}</Tag>
            ))}
          </span>
        ),
      },
      {
        id: "calls",
        header: t("providers.callsToday"),
        align: "right",
        value: (one) => today.get(one.id)?.calls ?? 0,
        cell: (one) => <Count value={today.get(one.id)?.calls ?? 0} />,
      },
      {
        id: "cost",
        header: t("providers.costToday"),
        align: "right",
        value: (one) => today.get(one.id)?.cost ?? 0,
        cell: (one) => <Money amount={today.get(one.id)?.cost ?? 0} />,
      },
      {
        id: "multiplier",
        header: t("providers.fields.cost_multiplier"),
        align: "right",
        hidden: true,
        value: (one) => one.costMultiplier,
        cell: (one) => `× ${one.costMultiplier}`,
      },
      {
        id: "daily",
        header: t("providers.fields.limit_daily_usd"),
        align: "right",
        hidden: true,
        value: (one) => one.limitDailyUsd,
        cell: (one) => <Money amount={one.limitDailyUsd} />,
      },
      {
        id: "url",
        header: t("providers.fields.url"),
        cell: (one) => <span className="block max-w-72 truncate text-quiet">{one.url}</span>,
      },
      {
        id: "note",
        header: t("providers.fields.note"),
        hidden: true,
        cell: (one) => <span className="block max-w-72 truncate text-quiet">{one.note}</span>,
      },
    ],
    [t, health, today],
  );
}
