/** Appears when something was changed: saves it, or takes it back. Leaving the page with it open asks first. */
import { useBlocker } from "@tanstack/react-router";
import { useTranslation } from "react-i18next";
import { Button } from "@/ui/button";
import { useConfirm } from "@/ui/confirm";

export function SaveBar({ dirty, busy, onReset }: { dirty: boolean; busy: boolean; onReset: () => void }) {
  const { t } = useTranslation();
  const confirm = useConfirm();
  useBlocker({
    disabled: !dirty,
    enableBeforeUnload: dirty,
    shouldBlockFn: async () =>
      !(await confirm({ title: t("ui.discardTitle"), body: t("ui.discardBody"), action: t("ui.discard") })),
  });
  if (!dirty) return null;
  return (
    <div className="sticky bottom-4 z-10 mt-4 flex flex-wrap items-center gap-2 rounded-lg border border-line bg-raised px-4 py-2.5 shadow-lg">
      <span className="min-w-0 flex-1 text-sm">{t("settings.unsaved")}</span>
      <Button onClick={onReset} disabled={busy}>
        {t("ui.discard")}
      </Button>
      <Button type="submit" variant="primary" busy={busy}>
        {t("ui.save")}
      </Button>
    </div>
  );
}
