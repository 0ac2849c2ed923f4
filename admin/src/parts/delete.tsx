/**
 * The delete button of an open panel: asks for confirmation, and reports success or the refusal.
 */
import { Trash2 } from "lucide-react";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { Button } from "@/ui/button";
import { type Question, useConfirm } from "@/ui/confirm";
import { useToast } from "@/ui/toast";

export interface Deletion {
  /** Names the record and the consequences. */
  question: Question;
  remove: () => Promise<unknown>;
  /** The message after the deletion. */
  done: string;
}

export function DeleteButton(props: Deletion & { onDone: () => void }) {
  const { question, remove, done, onDone } = props;
  const { t } = useTranslation();
  const confirm = useConfirm();
  const toast = useToast();
  const [busy, setBusy] = useState(false);
  const ask = async () => {
    if (!(await confirm(question))) return;
    setBusy(true);
    try {
      await remove();
      onDone();
      toast.good(done);
    } catch (error) {
      toast.failed(error);
      setBusy(false);
    }
  };
  return (
    <Button
      variant="ghost"
      className="mr-auto !text-bad"
      icon={<Trash2 className="size-4" aria-hidden />}
      busy={busy}
      onClick={() => void ask()}
    >
      {t("ui.delete")}
    </Button>
  );
}
