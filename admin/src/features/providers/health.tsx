/** A provider's circuit as a word, with the time until it is tried again. */
import { useTranslation } from "react-i18next";
import { Badge } from "@/ui/status";
import { Countdown, useNow } from "@/ui/text";
import type { Health, Provider } from "./selection";
import { useSpent } from "./spent";

export type Condition = "off" | "open" | "half" | "resting" | "spent" | "failing" | "good";

export function condition(provider: Provider, health: Health | undefined, now: number, spent = false): Condition {
  if (!provider.isEnabled) return "off";
  if (health?.state === "OPEN") return health.halfOpen ? "half" : "open";
  if (health?.restUntil && new Date(health.restUntil).getTime() > now) return "resting";
  if (spent) return "spent";
  return health && health.failureCount > 0 ? "failing" : "good";
}

const TONES = {
  off: "off",
  open: "bad",
  half: "warn",
  resting: "warn",
  spent: "warn",
  failing: "warn",
  good: "good",
} as const;

export function HealthBadge({ provider, health }: { provider: Provider; health: Health | undefined }) {
  const { t } = useTranslation();
  const now = useNow().getTime();
  const spent = useSpent().has(provider.id);
  const state = condition(provider, health, now, spent);
  const until = state === "open" ? health?.openUntil : state === "resting" ? health?.restUntil : null;
  return (
    <Badge tone={TONES[state]}>
      {state === "failing"
        ? t("providers.conditions.failing", { count: health?.failureCount ?? 0 })
        : t(`providers.conditions.${state}`)}
      {until && (
        <>
          {" · "}
          <Countdown until={until} />
        </>
      )}
    </Badge>
  );
}
