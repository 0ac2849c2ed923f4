/** Pieces of both lists and of the panel: whether somebody works, and lists of words. */
import { useTranslation } from "react-i18next";
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

/** Groups, models or tags; `none` where there are none. */
export function Words({ list, none }: { list: string[]; none: string }) {
  if (list.length === 0) return <span className="text-faint">{none}</span>;
  return (
    <span className="flex flex-wrap gap-1">
      {list.map((word) => (
        <Tag key={word}>{word}</Tag>
      ))}
    </span>
  );
}
