/** The outcome of an upload or a sync per model; failures first, with the server's reason. */
import { ChevronRight } from "lucide-react";
import { useTranslation } from "react-i18next";
import { inTheirWords } from "@/api/client";
import { count, useFormat } from "@/ui/format";
import { Notice } from "@/ui/status";
import type { Outcome } from "./api";

export function OutcomeView({ outcome }: { outcome: Outcome }) {
  const { t } = useTranslation();
  const format = useFormat();
  const number = (list: string[]) => count(list.length, format);
  return (
    <div className="space-y-3">
      <Notice tone={outcome.failed.length > 0 ? "warn" : "good"} title={t("prices.outcome.title")}>
        {t("prices.outcome.summary", {
          added: number(outcome.added),
          updated: number(outcome.updated),
          unchanged: number(outcome.unchanged),
          failed: number(outcome.failed),
        })}
      </Notice>
      {outcome.failures.length > 0 && (
        <Group label={t("prices.outcome.failed", { number: number(outcome.failed) })} open>
          {outcome.failures.map(({ modelName, reason, code, params }) => (
            <li key={modelName} className="py-1">
              <span className="font-mono text-xs break-all">{modelName}</span>
              <span className="block text-xs text-bad">{inTheirWords(reason, code, params)}</span>
            </li>
          ))}
        </Group>
      )}
      {(["added", "updated", "unchanged"] as const).map(
        (kind) =>
          outcome[kind].length > 0 && (
            <Group
              key={kind}
              label={t(`prices.outcome.${kind}`, { number: number(outcome[kind]) })}
              open={kind !== "unchanged" && outcome[kind].length <= 20}
            >
              {outcome[kind].map((model) => (
                <li key={model} className="font-mono text-xs leading-5 break-all">
                  {model}
                </li>
              ))}
            </Group>
          ),
      )}
    </div>
  );
}

function Group({
  label,
  open,
  children,
}: {
  label: string;
  open?: boolean;
  children: React.ReactNode;
}) {
  return (
    <details open={open} className="group rounded-lg border border-line">
      <summary className="flex items-center gap-1.5 px-3 py-2 text-sm font-medium">
        <ChevronRight
          className="size-4 text-faint transition-transform group-open:rotate-90"
          aria-hidden
        />
        {label}
      </summary>
      <ul className="max-h-56 overflow-y-auto border-t border-line px-3 py-2">{children}</ul>
    </details>
  );
}
