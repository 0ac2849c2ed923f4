/** Whether a user or a key works, as a word with its colour. */
import { useTranslation } from "react-i18next";
import { Badge } from "@/ui/status";
import type { State } from "./values";

export function StateBadge({ state }: { state: State }) {
  const { t } = useTranslation();
  return (
    <Badge tone={state === "enabled" ? "good" : state === "expired" ? "warn" : "off"}>
      {t(`people.states.${state}`)}
    </Badge>
  );
}
