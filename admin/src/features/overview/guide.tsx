/** The first start: five steps to the first request, each with its button, gone when all are done. */
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { Check, ChevronRight } from "lucide-react";
import { useTranslation } from "react-i18next";
import { call } from "@/api/client";
import * as queries from "@/api/queries";
import { cx } from "@/ui/cx";
import { Card } from "@/ui/page";

/** Whether any request was ever logged. */
const anyRequest = {
  queryKey: ["logs", "any"],
  queryFn: () => call("actions/usage-logs/getUsageLogs", { pageSize: 1 }).then((page) => page.total > 0),
};

export function useGuide() {
  const providers = useQuery(queries.providers);
  const prices = useQuery(queries.hasPrices);
  const users = useQuery(queries.users);
  const requests = useQuery(anyRequest);
  const loaded = providers.data && prices.data !== undefined && users.data && requests.data !== undefined;
  if (!loaded) return undefined;
  const steps = [
    { id: "provider", done: (providers.data ?? []).length > 0, to: "/providers" },
    { id: "prices", done: prices.data === true, to: "/prices" },
    { id: "people", done: (users.data ?? []).length > 0, to: "/people" },
    { id: "connect", done: requests.data === true, to: "/connect" },
    { id: "request", done: requests.data === true, to: "/logs" },
  ] as const;
  return { steps, done: steps.every((step) => step.done) };
}

export function Guide() {
  const { t } = useTranslation();
  const guide = useGuide();
  if (!guide || guide.done) return null;
  const next = guide.steps.findIndex((step) => !step.done);
  return (
    <Card title={t("guide.title")} className="mb-4">
      <ol className="divide-y divide-line">
        {guide.steps.map(({ id, done, to }, index) => (
          <li key={id}>
            <Link to={to as string} className="group flex items-center gap-3 py-2.5">
              <span
                className={cx(
                  "flex size-6 shrink-0 items-center justify-center rounded-full text-xs font-semibold",
                  done
                    ? "bg-good-soft text-good"
                    : index === next
                      ? "bg-accent text-on-accent"
                      : "bg-sunken text-quiet",
                )}
              >
                {done ? <Check className="size-3.5" aria-label={t("guide.done")} /> : index + 1}
              </span>
              <span className="min-w-0 flex-1">
                <span className={cx("block font-medium", done && "text-faint line-through")}>
                  {t(`guide.${id}.title`)}
                </span>
                {!done && <span className="block text-xs text-faint">{t(`guide.${id}.help`)}</span>}
              </span>
              {!done && <ChevronRight className="size-4 text-faint group-hover:text-ink" aria-hidden />}
            </Link>
          </li>
        ))}
      </ol>
    </Card>
  );
}
