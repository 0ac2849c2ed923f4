/** The problems that the gateway reports, worst first, translated, with their causes. */
import type { TFunction } from "i18next";
import type { ReactNode } from "react";
import type { Schemas } from "@/api/client";
import { type Cause, CauseText } from "@/parts/cause";
import { count, type Format } from "@/ui/format";
import { Countdown, Time } from "@/ui/text";

export type Problem = Schemas["Problem"];

/** The problems that have a translated text; another one keeps the gateway's message. */
const KNOWN = [
  "journal_full",
  "records_lost",
  "no_provider_usable",
  "database_unreachable",
  "counters_lost",
  "records_held",
  "provider_circuit_open",
  "provider_failing",
  "provider_without_credential",
  "provider_switched_off",
  "provider_key_refused",
  "provider_certificate_expires",
  "reload_refused",
  "model_unpriced",
  "records_set_aside",
  "credential_unused",
  "provider_cooldown",
] as const;

const number = (value: unknown) => (typeof value === "number" ? value : 0);
const text = (value: unknown) => (typeof value === "string" ? value : "");

export interface Told {
  id: string;
  tone: "bad" | "warn";
  title: string;
  text: ReactNode;
  /** The provider of the problem. */
  providerId: number | undefined;
}

export function tell(problem: Problem, t: TFunction, format: Format): Told {
  const { kind, severity, params, message } = problem;
  const known = KNOWN.find((one) => one === kind);
  const providerId = typeof params.providerId === "number" ? params.providerId : undefined;
  const values = {
    name: text(params.providerName),
    key: text(params.key),
    count: number(params.lostRecords ?? params.heldRecords ?? params.setAside ?? params.enabled),
    records: count(number(params.pendingRecords), format),
    attempts: number(params.recentAttempts),
    failures: number(params.recentFailures),
    probes: number(params.failedProbes),
    faults: text(params.faults),
    subject: text(params.subject),
    expires: text(params.expiresAt).slice(0, 10),
    mode: text(params.mode),
    models: Array.isArray(params.models) ? params.models.join(", ") : "",
    served: count(number(params.served), format),
    refused: count(number(params.refused), format),
  };
  return {
    id: `${kind}-${providerId ?? ""}-${text(params.key)}`,
    tone: severity === "warning" ? "warn" : "bad",
    title: known ? t(`problems.${known}.title`, values) : message,
    text: known ? (
      <Text problem={problem} words={t(`problems.${known}.text`, values)} t={t} />
    ) : undefined,
    providerId,
  };
}

function Text({ problem, words, t }: { problem: Problem; words: string; t: TFunction }) {
  const { params, since } = problem;
  const cause = params.lastError as Cause | null | undefined;
  const until = text(params.openUntil);
  const rest = text(params.until);
  return (
    <>
      {cause && (
        <div className="first-letter:uppercase">
          <CauseText cause={cause} />
        </div>
      )}
      {words}
      {until !== "" && (
        <>
          {" "}
          {t("overview.triedAgain")} <Countdown until={until} />
          {t("ui.stop")}
        </>
      )}
      {rest !== "" && (
        <>
          {" "}
          {t("overview.cooldownUntil")} <Time at={rest} />
          {t("ui.stop")}
        </>
      )}
      {since && (
        <>
          {" "}
          {t("overview.since")} <Time at={since} relative={false} />
          {t("ui.stop")}
        </>
      )}
    </>
  );
}
