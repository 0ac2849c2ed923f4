/** The keys of a provider and the windows of their accounts, as its panel shows them. */
import { CirclePlay } from "lucide-react";
import { useTranslation } from "react-i18next";
import { CauseText } from "@/parts/cause";
import { resetsAt } from "@/parts/limits";
import { Button } from "@/ui/button";
import { percent, useFormat } from "@/ui/format";
import { Bar } from "@/ui/meter";
import { Badge } from "@/ui/status";
import { Countdown, Time } from "@/ui/text";
import type { Health, Provider } from "./selection";

type Key = Health["credentials"][number];

interface Props {
  provider: Provider;
  health: Health | undefined;
  /** Enables a key that the gateway disabled. */
  onEnable: (change: ReturnType<typeof enabled>) => void;
  busy: boolean;
}

export function Keys({ provider, health, onEnable, busy }: Props) {
  const { t } = useTranslation();
  const keys = health?.credentials ?? [];
  const isShown = keys.length > 1 || keys.some((key) => key.windows.length > 0);
  if (!isShown) return null;
  return (
    <section>
      <h3 className="mb-2">
        {t(keys.length > 1 ? "providers.keys.title" : "providers.keys.windows")}
      </h3>
      <ul className="space-y-4">
        {keys.map((key) => (
          <li key={key.name} className="space-y-2" data-testid={`key-${key.name}`}>
            {keys.length > 1 && (
              <KeyState
                credential={key}
                provider={provider}
                busy={busy}
                onEnable={() => onEnable(enabled(provider, key.name))}
              />
            )}
            <Windows credential={key} />
          </li>
        ))}
      </ul>
    </section>
  );
}

function KeyState({
  credential,
  provider,
  onEnable,
  busy,
}: {
  credential: Key;
  provider: Provider;
  onEnable: () => void;
  busy: boolean;
}) {
  const { t } = useTranslation();
  const { isEnabled, refused } = switchOf(provider, credential.name);
  const cause = refused ?? credential.lastError;
  return (
    <>
      <div className="flex flex-wrap items-center gap-2">
        <span className="min-w-0 truncate font-medium">{credential.name}</span>
        {refused ? (
          <Badge tone="bad">{t("providers.keys.refused")}</Badge>
        ) : !isEnabled ? (
          <Badge tone="off">{t("providers.conditions.off")}</Badge>
        ) : credential.cooldownUntil ? (
          <Badge tone="warn">
            {t("providers.conditions.cooldown")} <Countdown until={credential.cooldownUntil} />
          </Badge>
        ) : credential.isNearlyUsedUp ? (
          <Badge tone="warn">{t("providers.keys.guarded")}</Badge>
        ) : (
          <Badge tone="good">{t("providers.keys.usable")}</Badge>
        )}
        <span className="flex-1" />
        {refused && (
          <Button
            size="sm"
            icon={<CirclePlay className="size-3.5" aria-hidden />}
            busy={busy}
            onClick={onEnable}
          >
            {t("providers.enable")}
          </Button>
        )}
      </div>
      <p className="text-xs text-quiet">
        {t("providers.keys.figures", {
          count: credential.requests,
          failures: credential.failures,
        })}
        {credential.lastUsedAt && (
          <>
            {" · "}
            {t("providers.keys.lastUsed")} <Time at={credential.lastUsedAt} />
          </>
        )}
      </p>
      {cause && (
        <p className="text-xs text-quiet">
          {t("providers.lastError")}: <CauseText cause={cause} />
        </p>
      )}
    </>
  );
}

function Windows({ credential }: { credential: Key }) {
  const { t } = useTranslation();
  const format = useFormat();
  return credential.windows.map((window) => {
    const share = Number(window.usedPercent) / 100;
    const colour = share >= 1 ? "bg-bad" : share >= 0.8 ? "bg-warn" : "bg-accent";
    return (
      <div key={window.name} className="text-sm">
        <div className="flex items-baseline justify-between gap-3">
          <span className="min-w-0 truncate">
            {t("providers.keys.window", { name: window.name })}
          </span>
          <span className="tabular">{percent(share, format)}</span>
        </div>
        <Bar share={share} colour={colour} />
        {window.resetsAt && (
          <div className="mt-0.5 text-xs text-faint">
            {t("people.resets", { when: resetsAt(window.resetsAt, format) })}
          </div>
        )}
      </div>
    );
  });
}

/** Whether requests may use a key, and why the gateway disabled it. */
function switchOf(provider: Provider, name: string) {
  const further = provider.credentials.find((one) => one.name === name);
  return further ?? { isEnabled: provider.keyIsEnabled, refused: provider.keyRefused };
}

/** The change that enables a key again. */
export function enabled(provider: Provider, name: string) {
  const further = provider.credentials.map((one) => ({
    name: one.name,
    is_enabled: one.isEnabled || one.name === name,
  }));
  const isFurther = provider.credentials.some((one) => one.name === name);
  return isFurther ? { credentials: further } : { key_is_enabled: true };
}
