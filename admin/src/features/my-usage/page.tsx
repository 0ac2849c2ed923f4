/** The user's own limits, usage, requests and models. Read-only keys reach only this page. */
import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { useTranslation } from "react-i18next";
import type { DataOf } from "@/api/client";
import { Meters } from "@/parts/limits";
import { CopyButton } from "@/ui/code";
import { Answer, Empty } from "@/ui/empty";
import { Card, Facts, Page } from "@/ui/page";
import { Segments } from "@/ui/segments";
import { Tag } from "@/ui/status";
import { Count, Money, Time } from "@/ui/text";
import { metadata, models, quota, summary, today } from "./api";
import { MyLogs } from "./logs";

const SPANS = [7, 30] as const;

export function MyUsagePage() {
  const { t } = useTranslation();
  return (
    <Page title={t("nav.my-usage")} help={t("myUsage.help")}>
      <div className="grid grid-cols-1 gap-4 xl:grid-cols-2">
        <Quotas />
        <div className="space-y-4">
          <Me />
          <Use />
          <Models />
        </div>
      </div>
      <section className="mt-6">
        <h2 className="mb-2">{t("myUsage.requests")}</h2>
        <MyLogs />
      </section>
    </Page>
  );
}

function Quotas() {
  const { t } = useTranslation();
  const asked = useQuery(quota);
  return (
    <Card title={t("myUsage.limits")}>
      <Answer of={asked} lines={3}>
        {(data) => (
          <div className="space-y-6">
            <div>
              <h3 className="mb-3">{t("myUsage.ofKey")}</h3>
              <Meters usage={data.key} />
            </div>
            <div>
              <h3 className="mb-1">{t("myUsage.ofUser")}</h3>
              <p className="mb-3 text-xs text-faint">{t("myUsage.ofUserHelp")}</p>
              <Meters usage={data.user} />
            </div>
          </div>
        )}
      </Answer>
    </Card>
  );
}

/** The earlier of two moments in ISO form. */
const firstOf = (...moments: (string | null | undefined)[]) =>
  moments.filter((one) => one != null).sort()[0];

function Me() {
  const { t } = useTranslation();
  const asked = useQuery(metadata);
  return (
    <Card title={t("myUsage.me")}>
      <Answer of={asked} lines={3}>
        {(me) => (
          <Facts
            facts={[
              [t("myUsage.key"), me.keyName],
              [t("myUsage.user"), me.userName],
              [
                t("myUsage.expires"),
                <Time
                  key="e"
                  at={firstOf(me.keyExpiresAt, me.userExpiresAt)}
                  none={t("myUsage.never")}
                />,
              ],
              [t("myUsage.groups"), me.keyProviderGroup || "default"],
              [
                t("myUsage.dailyReset"),
                me.dailyResetMode === "rolling"
                  ? t("myUsage.rolling")
                  : `${me.dailyResetTime} (${me.timeZone})`,
              ],
            ]}
          />
        )}
      </Answer>
    </Card>
  );
}

type Stats = DataOf<"actions/my-usage/getMyTodayStats">;

function Use() {
  const { t } = useTranslation();
  const [span, setSpan] = useState<0 | (typeof SPANS)[number]>(0);
  const now = useQuery(today);
  const past = useQuery({ ...summary(span), enabled: span !== 0 });
  const asked = span === 0 ? now : past;
  return (
    <Card
      title={t("myUsage.use")}
      actions={
        <Segments
          label={t("myUsage.span")}
          value={span}
          choices={([0, ...SPANS] as const).map((days) => ({
            value: days,
            label: days === 0 ? t("myUsage.today") : t("myUsage.days", { count: days }),
          }))}
          onChange={setSpan}
        />
      }
    >
      <Answer of={asked} lines={3}>
        {(stats) => <Figures stats={stats} />}
      </Answer>
    </Card>
  );
}

function Figures({ stats }: { stats: Stats }) {
  const { t } = useTranslation();
  const figures: [string, ReactNode][] = [
    [t("myUsage.calls"), <Count key="c" value={stats.calls} />],
    [t("myUsage.tokens"), <Count key="t" value={stats.totalTokens} short />],
    [t("myUsage.cost"), <Money key="m" amount={stats.costUsd} />],
  ];
  return (
    <>
      <dl className="mb-3 grid grid-cols-3 gap-4">
        {figures.map(([name, value]) => (
          <div key={name}>
            <dt className="text-xs text-faint">{name}</dt>
            <dd className="text-lg font-semibold">{value}</dd>
          </div>
        ))}
      </dl>
      {stats.modelStats.length > 0 && (
        <table className="w-full text-sm" aria-label={t("myUsage.byModel")}>
          <tbody>
            {stats.modelStats.map((one) => (
              <tr key={one.model} className="border-t border-line">
                <td className="max-w-0 truncate py-1.5 pr-3 w-full" title={one.model}>
                  {one.model || "—"}
                </td>
                <td className="tabular pr-4 text-right whitespace-nowrap text-quiet">
                  <Count value={one.callCount} />
                </td>
                <td className="text-right">
                  <Money amount={one.totalCost} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </>
  );
}

function Models() {
  const { t } = useTranslation();
  const asked = useQuery(models);
  return (
    <Card title={t("myUsage.models")}>
      <Answer of={asked} lines={3}>
        {(names) =>
          names.length === 0 ? (
            <Empty title={t("myUsage.noModels")}>{t("myUsage.noModelsHelp")}</Empty>
          ) : (
            <ul className="flex max-h-56 flex-wrap gap-1.5 overflow-y-auto">
              {names.map((name) => (
                <li key={name} className="flex items-center">
                  <Tag>{name}</Tag>
                  <CopyButton text={name} label={t("myUsage.copyModel", { name })} />
                </li>
              ))}
            </ul>
          )
        }
      </Answer>
    </Card>
  );
}
