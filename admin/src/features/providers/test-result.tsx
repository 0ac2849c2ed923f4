/** The result of a provider's test: its reply, or the translated reason of the failure. */
import { useTranslation } from "react-i18next";
import { cx } from "@/ui/cx";
import { Notice } from "@/ui/status";
import type { Tested } from "./api";

const CODES = [
  "connection_refused",
  "unknown_host",
  "tls_failed",
  "timed_out",
  "no_connection",
  "no_token",
  "bad_address",
  "unauthorized",
  "not_found",
  "rate_limited",
  "provider_error",
  "client_error",
  "no_models",
  "not_a_reply",
] as const;

/** The translated reason of the failure; `undefined` if nothing failed. */
export function useTestWords() {
  const { t } = useTranslation();
  return ({ code, params }: Pick<Tested, "code" | "params">): string | undefined => {
    const known = CODES.find((one) => one === code);
    return known && t(`providers.testCodes.${known}`, params);
  };
}

export function TestResult({ result }: { result: Tested }) {
  const { t } = useTranslation();
  const say = useTestWords();
  const words = say(result);
  const facts = [result.model, result.status && `HTTP ${result.status}`, `${result.latencyMs} ms`];
  const outcome = result.ok ? t("providers.testGood") : t("providers.testBad");
  return (
    <Notice
      tone={result.ok ? "good" : "bad"}
      title={`${outcome} — ${facts.filter(Boolean).join(" · ")}`}
    >
      {words && <div>{words}</div>}
      <span className={cx("line-clamp-4", words && "text-faint")} title={result.message}>
        {result.message}
      </span>
      {result.credentials.length > 0 && (
        <ul className="mt-1 text-xs" aria-label={t("providers.testOthers")}>
          {result.credentials.map((one) => (
            <li key={one.name}>
              {one.name}: {one.ok ? t("providers.testGood") : t("providers.testBad")}
              {one.status !== null && ` · HTTP ${one.status}`} · {one.latencyMs} ms
              {!one.ok && <span title={one.message}> · {say(one) ?? one.message}</span>}
            </li>
          ))}
        </ul>
      )}
    </Notice>
  );
}
