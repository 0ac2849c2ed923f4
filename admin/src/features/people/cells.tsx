/** Pieces of both lists and of the panel: whether somebody works, and lists of words. */
import { useTranslation } from "react-i18next";
import { cx } from "@/ui/cx";
import { Badge, Tag } from "@/ui/status";
import type { State } from "./values";

/** Whether a user or a key works, as a word with its colour. */
export function StateBadge({ state }: { state: State }) {
  const { t } = useTranslation();
  return (
    <Badge tone={state === "enabled" ? "good" : state === "expired" ? "warn" : "off"}>
      {t(`people.states.${state}`)}
    </Badge>
  );
}

/** Words that a row has room for. */
const FEW = 2;

/** Groups, models or tags; `none` where there are none. `few`: what fits into a row, the rest as a number. */
export function Words({ list, none, few = false }: { list: string[]; none: string; few?: boolean }) {
  if (list.length === 0) return <span className="text-faint">{none}</span>;
  return (
    <span className={cx("flex gap-1", !few && "flex-wrap")} title={few ? list.join(", ") : undefined}>
      {list.slice(0, few ? FEW : undefined).map((word) => (
        <Tag key={word}>{word}</Tag>
      ))}
      {few && list.length > FEW && <span className="text-xs text-faint">+{list.length - FEW}</span>}
    </span>
  );
}
