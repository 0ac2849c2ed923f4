/** Users and models with the highest cost today, and live sessions. */
import { useQuery } from "@tanstack/react-query";
import { useTranslation } from "react-i18next";
import type { Schemas } from "@/api/client";
import * as queries from "@/api/queries";
import { Bar } from "@/ui/meter";
import { Card } from "@/ui/page";
import { Count, Money, Time } from "@/ui/text";

export function Top({ title, rows }: { title: string; rows: Schemas["TopRecord"][] }) {
  const { t } = useTranslation();
  const most = Math.max(...rows.map((row) => row.cost), Number.MIN_VALUE);
  return (
    <Card title={title}>
      {rows.length === 0 ? (
        <p className="py-4 text-center text-sm text-faint">{t("overview.noTraffic")}</p>
      ) : (
        <ul className="space-y-2.5">
          {rows.map((row) => (
            <li key={`${row.id}-${row.name}`}>
              <div className="flex items-baseline gap-3 text-sm">
                <span className="min-w-0 flex-1 truncate">{row.name || t("overview.unnamed")}</span>
                <span className="text-xs text-faint">
                  <Count value={row.requests} short />
                </span>
                <span className="w-20 text-right">
                  <Money amount={row.cost} />
                </span>
              </div>
              <Bar share={row.cost / most} />
            </li>
          ))}
        </ul>
      )}
    </Card>
  );
}

const SHOWN = 8;

export function LiveSessions() {
  const { t } = useTranslation();
  const { data = [] } = useQuery(queries.sessions);
  const sorted = [...data].sort(
    (a, b) => b.concurrentCount - a.concurrentCount || b.startTime - a.startTime,
  );
  return (
    <Card title={t("overview.liveSessions")} className="xl:col-span-2">
      {sorted.length === 0 ? (
        <p className="py-4 text-center text-sm text-faint">{t("overview.noSessions")}</p>
      ) : (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls needs the keyboard
        <section tabIndex={0} aria-label={t("overview.liveSessions")} className="overflow-x-auto">
          <table className="w-full text-xs">
            <thead className="text-left text-faint">
              <tr>
                <th className="py-1 pr-3 font-medium">{t("overview.who")}</th>
                <th className="py-1 pr-3 font-medium">{t("overview.model")}</th>
                <th className="py-1 pr-3 font-medium">{t("overview.provider")}</th>
                <th className="py-1 pr-3 text-right font-medium">{t("overview.calls")}</th>
                <th className="py-1 pr-3 text-right font-medium">{t("overview.costs")}</th>
                <th className="py-1 text-right font-medium">{t("overview.since")}</th>
              </tr>
            </thead>
            <tbody>
              {sorted.slice(0, SHOWN).map((session) => (
                <tr
                  key={`${session.keyId}-${session.sessionId}`}
                  className="border-t border-line whitespace-nowrap"
                >
                  <td className="py-1.5 pr-3">
                    <span className="font-medium">{session.userName ?? "—"}</span>{" "}
                    <span className="text-faint">{session.keyName}</span>
                  </td>
                  <td className="py-1.5 pr-3">{session.model ?? "—"}</td>
                  <td className="py-1.5 pr-3">{session.providerName ?? "—"}</td>
                  <td className="py-1.5 pr-3 text-right">
                    <Count value={session.requestCount} />
                  </td>
                  <td className="py-1.5 pr-3 text-right">
                    <Money amount={session.costUsd} />
                  </td>
                  <td className="py-1.5 text-right text-faint">
                    <Time at={session.startTime} />
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </section>
      )}
    </Card>
  );
}
