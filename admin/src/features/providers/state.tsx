/** A provider's last minutes: the failures, their reasons and their share of the attempts. */
import { useTranslation } from "react-i18next";
import { CauseText } from "@/parts/cause";
import { percent, useFormat } from "@/ui/format";
import { Facts } from "@/ui/page";
import { Notice } from "@/ui/status";
import { Count, Time } from "@/ui/text";
import type { Health, Provider } from "./selection";

export function ProviderState({
  provider,
  health,
}: {
  provider: Provider;
  health: Health | undefined;
}) {
  const { t } = useTranslation();
  const format = useFormat();
  const attempts = health?.recentAttempts ?? 0;
  const rate = t("providers.recentRate", {
    failures: health?.recentFailures ?? 0,
    attempts,
    share: percent((health?.recentFailureRate ?? 0) / 100, format),
  });
  return (
    <>
      {!provider.isEnabled && provider.switchedOff && <SwitchedOff off={provider.switchedOff} />}
      {health?.state === "OPEN" && health.openReason && (
        <Notice tone="bad" title={t("providers.openedBy")}>
          <CauseText cause={health.openReason} />
        </Notice>
      )}
      <Facts
        facts={[
          [t("providers.recent"), attempts === 0 ? t("providers.noRecent") : rate],
          [
            t("providers.failuresInARow"),
            <Count key="failures" value={health?.failedInARow ?? health?.failureCount ?? 0} />,
          ],
          ...(health?.failingSince
            ? [
                [t("providers.failingSince"), <Time key="since" at={health.failingSince} />] as [
                  string,
                  React.ReactNode,
                ],
              ]
            : []),
          [
            t("providers.lastError"),
            health?.lastError ? (
              <span key="error">
                <CauseText cause={health.lastError} /> · <Time at={health.lastError.at} />
              </span>
            ) : (
              t("providers.none")
            ),
          ],
          [
            t("providers.lastSuccess"),
            <Time key="success" at={health?.lastSuccessTime} none={t("providers.none")} />,
          ],
        ]}
      />
    </>
  );
}

/** Reports that the gateway disabled the provider, when, and why. */
function SwitchedOff({ off }: { off: NonNullable<Provider["switchedOff"]> }) {
  const { t } = useTranslation();
  return (
    <Notice
      tone="warn"
      title={
        <>
          {t("providers.switchedOff.title")} · <Time at={off.at} />
        </>
      }
    >
      {t("providers.switchedOff.text", { count: off.failedProbes })}
      {off.error && (
        <div>
          {t("providers.switchedOff.cause")} <CauseText cause={off.error} />
        </div>
      )}
    </Notice>
  );
}
