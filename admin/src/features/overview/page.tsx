/** The overview: anomalies first, then figures of users and cost, then charts. */
import { useQuery } from "@tanstack/react-query";
import { useTranslation } from "react-i18next";
import * as queries from "@/api/queries";
import { useIsAdmin } from "@/parts/session";
import { Answer } from "@/ui/empty";
import { Page } from "@/ui/page";
import { Anomalies } from "./anomalies";
import { CacheMisses } from "./cache-misses";
import { Figures } from "./figures";
import { Guide } from "./guide";
import { LiveSessions, Top } from "./tops";
import { Trend } from "./trend";

export function OverviewPage() {
  const { t } = useTranslation();
  const admin = useIsAdmin();
  return (
    <Page title={t("nav.overview")}>
      {admin && <Guide />}
      <Answer of={useQuery(queries.overview)}>
        {(data) => (
          <div className="space-y-4">
            {data.attention && <Anomalies attention={data.attention} />}
            <Figures data={data} />
            <Trend />
            <div className="grid grid-cols-1 gap-4 md:grid-cols-2 xl:grid-cols-3">
              {admin && <Top title={t("overview.topUsers")} rows={data.topUsers} />}
              <Top title={t("overview.topModels")} rows={data.topModels} />
              {admin && <Top title={t("overview.topProviders")} rows={data.topProviders} />}
            </div>
            <div className="grid grid-cols-1 gap-4 xl:grid-cols-3">
              <CacheMisses />
              <LiveSessions />
            </div>
          </div>
        )}
      </Answer>
    </Page>
  );
}
