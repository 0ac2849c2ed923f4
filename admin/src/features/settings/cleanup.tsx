/** Cleanup of the request log: its progress, the last result, and the start button. */
import { useQuery } from "@tanstack/react-query";
import { Eraser, LoaderCircle } from "lucide-react";
import { useTranslation } from "react-i18next";
import { Button } from "@/ui/button";
import { useConfirm } from "@/ui/confirm";
import { count, useFormat } from "@/ui/format";
import { Notice } from "@/ui/status";
import { Time } from "@/ui/text";
import { useToast } from "@/ui/toast";
import { type Cleanup, cleanup, useRunCleanup } from "./api";

export function CleanupState({ retention, dirty }: { retention: number; dirty: boolean }) {
  const { t } = useTranslation();
  const confirm = useConfirm();
  const toast = useToast();
  const { data } = useQuery(cleanup);
  const run = useRunCleanup();
  const running = data?.running ?? false;
  const ask = async () => {
    const yes = await confirm({
      title: t("settings.cleanup.askTitle", { count: retention }),
      body: t("settings.cleanup.askBody"),
      action: t("settings.cleanup.run"),
    });
    if (yes) run.mutate({}, { onError: toast.failed });
  };
  return (
    <div className="mt-4 flex flex-wrap items-center gap-3 border-t border-line pt-4">
      <div className="min-w-0 flex-1 basis-56 text-sm" aria-live="polite">
        {data ? <State state={data} /> : null}
        {dirty && !running && (
          <p className="text-xs text-faint">{t("settings.cleanup.saveFirst")}</p>
        )}
      </div>
      <Button
        icon={<Eraser className="size-4" aria-hidden />}
        busy={run.isPending}
        disabled={running || dirty}
        onClick={() => void ask()}
      >
        {t("settings.cleanup.run")}
      </Button>
    </div>
  );
}

function State({ state }: { state: Cleanup }) {
  const { t } = useTranslation();
  const format = useFormat();
  const number = count(state.removed, format);
  if (state.running) {
    return (
      <span className="flex items-center gap-2">
        <LoaderCircle className="size-4 animate-spin" aria-hidden />
        {t("settings.cleanup.running", { count: state.removed, number })}
      </span>
    );
  }
  if (state.startedAt === null)
    return <span className="text-quiet">{t("settings.cleanup.never")}</span>;
  if (state.error !== null) {
    return (
      <Notice tone="bad" title={t("settings.cleanup.failed", { count: state.removed, number })}>
        {state.error}
      </Notice>
    );
  }
  return (
    <span>
      {t("settings.cleanup.done", { count: state.removed, number })} <Time at={state.finishedAt} />
    </span>
  );
}
