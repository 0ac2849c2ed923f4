/** What a test of a provider found: whether it answers, what it said, and in the person's language why not. */
import { useTranslation } from "react-i18next";
import { Notice } from "@/ui/status";
import type { Tested } from "./trial";

export function TestResult({ result }: { result: Tested }) {
  const { t } = useTranslation();
  const facts = [result.model, result.status && `HTTP ${result.status}`, `${result.latencyMs} ms`];
  return (
    <Notice
      tone={result.ok ? "good" : "bad"}
      title={`${result.ok ? t("providers.testGood") : t("providers.testBad")} — ${facts.filter(Boolean).join(" · ")}`}
    >
      <span className="line-clamp-4" title={result.message}>
        {result.message}
      </span>
    </Notice>
  );
}
