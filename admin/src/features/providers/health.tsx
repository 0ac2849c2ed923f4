/** A provider's state as a word, with the cause on hover and the time until the next attempt. */
import { useTranslation } from "react-i18next";
import { useCause } from "@/parts/cause";
import { Badge } from "@/ui/status";
import { Countdown, useNow } from "@/ui/text";
import { type Health, isResting, type Provider } from "./selection";
import { useSpent } from "./spent";

export type Condition =
  | "off"
  | "gone"
  | "open"
  | "half"
  | "cooldown"
  | "spent"
  | "failing"
  | "unused"
  | "good";

export function condition(
  provider: Provider,
  health: Health | undefined,
  now: number,
  spent = false,
): Condition {
  if (!provider.isEnabled) return provider.switchedOff ? "gone" : "off";
  if (health?.state === "OPEN") return health.halfOpen ? "half" : "open";
  if (isResting(health, now)) return "cooldown";
  if (health?.health === "failing" || (health?.failureCount ?? 0) > 0) return "failing";
  if (spent) return "spent";
  return health === undefined || health.health === "never_used" ? "unused" : "good";
}

const TONES = {
  off: "off",
  gone: "warn",
  open: "bad",
  half: "warn",
  cooldown: "warn",
  spent: "warn",
  failing: "bad",
  unused: "plain",
  good: "good",
} as const;

/** `cause`: shows the reason beside the state, if there is one. */
export function HealthBadge({
  provider,
  health,
  cause = false,
}: {
  provider: Provider;
  health: Health | undefined;
  cause?: boolean;
}) {
  const { t } = useTranslation();
  const causeOf = useCause();
  const now = useNow().getTime();
  const spent = useSpent().has(provider.id);
  const state = condition(provider, health, now, spent);
  const until =
    state === "open" ? health?.openUntil : state === "cooldown" ? health?.cooldownUntil : null;
  const opened = state === "open" || state === "half" ? health?.openReason : undefined;
  const why = state === "gone" ? provider.switchedOff?.error : (opened ?? health?.lastError);
  const troubled = ["gone", "open", "half", "cooldown", "failing"].includes(state) && why;
  return (
    <span className="inline-flex max-w-full min-w-0 items-center gap-2">
      <Badge tone={TONES[state]} title={troubled ? `${causeOf(why)} — ${why.message}` : undefined}>
        {state === "failing"
          ? t("providers.conditions.failing", {
              count: health?.failedInARow || health?.failureCount || 0,
            })
          : t(`providers.conditions.${state}`)}
        {until && (
          <>
            {" · "}
            <Countdown until={until} />
          </>
        )}
      </Badge>
      {cause && troubled && (
        <span className="max-w-64 truncate text-xs text-quiet" title={why.message}>
          {causeOf(why)}
        </span>
      )}
    </span>
  );
}
