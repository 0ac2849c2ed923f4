/** When the gateway fetched the price list by itself, and what that changed. */
import { useQuery } from "@tanstack/react-query";
import { useTranslation } from "react-i18next";
import { call, type Schemas } from "@/api/client";
import { count, useFormat } from "@/ui/format";
import { Notice } from "@/ui/status";
import { Time } from "@/ui/text";

type Report = Schemas["PriceSyncRecord"];

export function DailySync() {
  const { t } = useTranslation();
  const { data } = useQuery({
    queryKey: ["prices", "daily"],
    queryFn: ({ signal }) => call("actions/model-prices/getPriceSync", {}, signal),
  });
  if (data === undefined || (data.mode === "off" && data.lastAt === null)) return null;
  return (
    <div className="mb-3">
      {data.error === null ? (
        <Done report={data} />
      ) : (
        <Notice tone="warn" title={t("prices.daily.failed")}>
          <p className="break-words">{data.error}</p>
          <p className="mt-1">
            <Time at={data.lastAt} /> · {t("prices.daily.kept")}
          </p>
        </Notice>
      )}
    </div>
  );
}

function Done({ report }: { report: Report }) {
  const { t } = useTranslation();
  const format = useFormat();
  const models = Object.keys(report.after);
  const number = (value: number) => count(value, format);
  if (report.lastAt === null)
    return (
      <p className="text-xs text-quiet">{t("prices.daily.soon", { address: report.address })}</p>
    );
  return (
    <div className="text-xs text-quiet">
      <p className="break-words">
        {t("prices.daily.done", {
          address: report.address,
          added: number(report.added),
          updated: number(report.updated),
          failed: number(report.failed),
        })}{" "}
        <Time at={report.lastAt} />
      </p>
      {models.length > 0 && (
        <details className="mt-1">
          <summary className="cursor-pointer">{t("prices.daily.changes")}</summary>
          <div className="mt-2 max-h-64 overflow-auto">
            <table className="w-full text-left">
              <thead>
                <tr>
                  <th className="pr-3 font-medium">{t("prices.model")}</th>
                  <th className="pr-3 font-medium">{t("prices.daily.before")}</th>
                  <th className="font-medium">{t("prices.daily.after")}</th>
                </tr>
              </thead>
              <tbody className="align-top font-mono">
                {models.map((model) => (
                  <tr key={model} className="border-t border-line">
                    <td className="py-1 pr-3 break-all">{model}</td>
                    <td className="py-1 pr-3 break-all">
                      <Fields of={report.before[model]} />
                    </td>
                    <td className="py-1 break-all">
                      <Fields of={report.after[model]} />
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        </details>
      )}
    </div>
  );
}

function Fields({ of }: { of: unknown }) {
  return (
    <>
      {Object.entries((of ?? {}) as Record<string, unknown>).map(([name, value]) => (
        <div key={name}>
          {name} {typeof value === "string" ? value : JSON.stringify(value)}
        </div>
      ))}
    </>
  );
}
