/** Built-in rules that were removed, each with a button that restores it. */
import { useQuery } from "@tanstack/react-query";
import { RotateCcw } from "lucide-react";
import { useTranslation } from "react-i18next";
import { Button } from "@/ui/button";
import { useToast } from "@/ui/toast";
import { removedRules, useRestoreRule } from "./api";
import { Pattern } from "./cells";

export function RemovedRules() {
  const { t } = useTranslation();
  const toast = useToast();
  const { data } = useQuery(removedRules);
  const restore = useRestoreRule();
  if (data === undefined || data.length === 0) return null;
  return (
    <details className="mt-4 text-sm">
      <summary className="cursor-pointer text-quiet">
        {t("rules.errors.removed", { count: data.length })}
      </summary>
      <ul className="card mt-2 divide-y divide-line">
        {data.map((rule) => (
          <li key={rule.id} className="flex items-center gap-3 px-3 py-2">
            <span className="min-w-0 flex-1">
              <Pattern text={rule.pattern} />
              <span className="block truncate text-xs text-quiet">{rule.description}</span>
            </span>
            <Button
              size="sm"
              icon={<RotateCcw className="size-4" aria-hidden />}
              busy={restore.isPending && restore.variables.id === rule.id}
              onClick={() =>
                restore.mutate(
                  { id: rule.id },
                  {
                    onSuccess: () => toast.good(t("rules.errors.restored")),
                    onError: toast.failed,
                  },
                )
              }
            >
              {t("rules.errors.restore")}
            </Button>
          </li>
        ))}
      </ul>
    </details>
  );
}
