/** How a provider was in the last 24 hours and in the last 90 days. */
import { useQuery } from "@tanstack/react-query";
import { useTranslation } from "react-i18next";
import * as queries from "@/api/queries";
import { cx } from "@/ui/cx";
import { Answer } from "@/ui/empty";
import { exactTime, finePercent, useFormat } from "@/ui/format";
import { useNow } from "@/ui/text";
import { type Cell, cells, DAY, HALF_HOUR, type Looks, shareUp, stateOf } from "./history";

export function HistoryStrips({ providerId }: { providerId: number }) {
  const { t } = useTranslation();
  const asked = useQuery(queries.providersHistory);
  return (
    <section className="space-y-3">
      <h3>{t("providers.history.title")}</h3>
      <Answer of={asked} lines={2}>
        {(all) => {
          const own = all.find((one) => one.providerId === providerId);
          return (
            <>
              <Strip name={t("providers.history.day")} looks={own?.looks} step={HALF_HOUR} />
              <Strip name={t("providers.history.days")} looks={own?.days} step={DAY} />
            </>
          );
        }}
      </Answer>
    </section>
  );
}

const TONES = { unknown: "bg-sunken", good: "bg-good", warn: "bg-warn", bad: "bg-bad" };

function Strip({ name, looks, step }: { name: string; looks?: Looks[]; step: number }) {
  const { t } = useTranslation();
  const format = useFormat();
  const now = useNow().getTime();
  const all = cells(looks ?? [], now, step, step === DAY ? 90 : 48);
  const share = shareUp(all);
  const words = share === null ? t("providers.history.unknown") : finePercent(share, format);
  const when = ({ from }: Cell) =>
    step === DAY ? new Date(from).toISOString().slice(0, 10) : exactTime(new Date(from), format);
  const text = (cell: Cell) => {
    const part = shareUp([cell]);
    const said = part === null ? t("providers.history.unknown") : finePercent(part, format);
    return `${when(cell)} · ${said}`;
  };
  return (
    <div>
      <div className="flex items-baseline justify-between gap-3 text-sm">
        <span>{name}</span>
        <span className="tabular">{words}</span>
      </div>
      <div
        role="img"
        aria-label={`${name}: ${words}`}
        className={cx("mt-1 flex h-5", step === DAY ? "gap-px" : "gap-0.5")}
      >
        {all.map((cell) => (
          <span
            key={cell.from}
            title={text(cell)}
            data-state={stateOf(cell)}
            className={cx("min-w-0 flex-1 rounded-[1px]", TONES[stateOf(cell)])}
          />
        ))}
      </div>
    </div>
  );
}
