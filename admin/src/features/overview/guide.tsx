/** Five steps to the first request, each with its button; hidden when all are done. */
import { Link } from "@tanstack/react-router";
import { Check, ChevronRight } from "lucide-react";
import { useTranslation } from "react-i18next";
import { useFirstSteps } from "@/parts/first-steps";
import { cx } from "@/ui/cx";
import { Card } from "@/ui/page";

export function Guide() {
  const { t } = useTranslation();
  const { guide } = useFirstSteps();
  if (!guide) return null;
  return (
    <Card title={t("guide.title")} className="mb-4">
      <ol className="divide-y divide-line">
        {guide.steps.map(({ id, done, to }, index) => (
          <li key={id}>
            <Link to={to as string} className="group flex items-center gap-3 py-2.5">
              <span
                className={cx(
                  "flex size-6 shrink-0 items-center justify-center",
                  "rounded-full text-xs font-semibold",
                  done
                    ? "bg-good-soft text-good"
                    : index === guide.next
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
              {!done && (
                <ChevronRight className="size-4 text-faint group-hover:text-ink" aria-hidden />
              )}
            </Link>
          </li>
        ))}
      </ol>
    </Card>
  );
}
