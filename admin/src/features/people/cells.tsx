/** Cells of both lists and of the panel: states, spent limits, and lists of words. */
import { useTranslation } from "react-i18next";
import type { Schemas } from "@/api/client";
import { cx } from "@/ui/cx";
import { isMultiple, money, used, useFormat } from "@/ui/format";
import { Bar } from "@/ui/meter";
import { Badge, Tag } from "@/ui/status";
import type { Key, State } from "./values";

const toneOf = (state: string) =>
  state === "enabled" ? "good" : state === "expired" ? "warn" : "off";

/** Whether a user is usable, as a word with its colour. */
export function StateBadge({ state }: { state: string }) {
  const { t } = useTranslation();
  return <Badge tone={toneOf(state)}>{t(`people.states.${state as State}`)}</Badge>;
}

/** The same of a key. It says so if only the user is not usable. */
export function KeyBadge({ value }: { value: Key }) {
  const { t } = useTranslation();
  const { status, effectiveStatus: state } = value;
  if (state === status) return <StateBadge state={state} />;
  return <Badge tone={toneOf(state)}>{t(`people.userStates.${state as "expired"}`)}</Badge>;
}

type Limit = Schemas["UserRecord"]["tightestLimit"];

/** The limit with the largest used share; amber from 80 %, red when it refuses. */
export function Tightest({ limit }: { limit: Limit }) {
  const { t } = useTranslation();
  const format = useFormat();
  if (!limit) return <span className="text-faint">{t("people.noLimit")}</span>;
  const share = limit.percent / 100;
  const tone = share >= 1 ? "bad" : share >= 0.8 ? "warn" : "accent";
  const window = t(`overview.windows.${limit.window as "5h"}`);
  return (
    <span
      className="block min-w-36"
      title={t(isMultiple(share) ? "people.tightestTimes" : "people.tightestOf", {
        window,
        share: used(share, format),
      })}
    >
      <span className="flex items-baseline justify-between gap-2 text-xs">
        <span className="tabular whitespace-nowrap">
          {money(limit.current, format)}{" "}
          <span className="text-faint">/ {money(limit.limit, format)}</span>
        </span>
        <span
          className={cx(tone === "bad" ? "text-bad" : tone === "warn" ? "text-warn" : "text-faint")}
        >
          {window}
        </span>
      </span>
      <Bar
        share={share}
        colour={tone === "bad" ? "bg-bad" : tone === "warn" ? "bg-warn" : "bg-accent"}
        className="!mt-0.5"
      />
    </span>
  );
}

/** The number of words that fit into a row. */
const FEW = 2;

/** Groups, models or tags; `none` if empty. `few`: as many as fit, the rest as a number. */
export function Words({
  list,
  none,
  few = false,
}: {
  list: string[];
  none: string;
  few?: boolean;
}) {
  if (list.length === 0) return <span className="text-faint">{none}</span>;
  return (
    <span
      className={cx("flex gap-1", !few && "flex-wrap")}
      title={few ? list.join(", ") : undefined}
    >
      {list.slice(0, few ? FEW : undefined).map((word) => (
        <Tag key={word}>{word}</Tag>
      ))}
      {few && list.length > FEW && <span className="text-xs text-faint">+{list.length - FEW}</span>}
    </span>
  );
}
