/** Fetches the public price list as soon as it is opened, and shows the result. */
import { LoaderCircle } from "lucide-react";
import { useEffect, useRef } from "react";
import { useTranslation } from "react-i18next";
import { Button } from "@/ui/button";
import { Dialog } from "@/ui/dialog";
import { Failed } from "@/ui/empty";
import { useSync } from "./api";
import { OutcomeView } from "./outcome";

export function SyncDialog({ onClose }: { onClose: () => void }) {
  const { t } = useTranslation();
  const { mutate, data, error, isSuccess } = useSync();
  const begun = useRef(false);
  useEffect(() => {
    if (begun.current) return;
    begun.current = true;
    mutate({});
  }, [mutate]);
  return (
    <Dialog
      open
      onClose={onClose}
      title={t("prices.sync.title")}
      footer={
        <Button variant={isSuccess ? "primary" : "secondary"} onClick={onClose}>
          {t("ui.close")}
        </Button>
      }
    >
      {isSuccess ? (
        <OutcomeView outcome={data} />
      ) : error ? (
        <Failed error={error} retry={() => mutate({})} />
      ) : (
        <p role="status" className="flex items-center gap-2 py-4 text-sm text-quiet">
          <LoaderCircle className="size-4 animate-spin" aria-hidden />
          {t("prices.sync.running")}
        </p>
      )}
    </Dialog>
  );
}
