/** What the providers' configuration of today would make of a past request. */
import { useMutation } from "@tanstack/react-query";
import { Route } from "lucide-react";
import { useTranslation } from "react-i18next";
import { call } from "@/api/client";
import { Selection } from "@/parts/request/selection";
import { untilInLog } from "@/parts/request/until-in-log";
import { Button } from "@/ui/button";
import { Failed } from "@/ui/empty";

export function Today({ requestId }: { requestId: string }) {
  const { t } = useTranslation();
  const { mutate, data, error, isPending } = useMutation({
    mutationFn: () => call("actions/providers/explainRequest", { requestId }),
    // The log shows a request before the database has it.
    ...untilInLog,
  });
  return (
    <div className="mt-4 space-y-3">
      <Button
        size="sm"
        icon={<Route className="size-3.5" aria-hidden />}
        disabled={isPending}
        onClick={() => mutate()}
      >
        {t("logs.chain.today")}
      </Button>
      {error ? (
        <Failed error={error} retry={() => mutate()} />
      ) : (
        data && (
          <div className="space-y-3 border-l-2 border-line pl-4">
            <p className="text-sm text-quiet">{t("logs.chain.todayHelp")}</p>
            <Selection found={data} />
          </div>
        )
      )}
    </div>
  );
}
