/** Closing a form that holds unsaved changes asks first; leaving the browser's page does too. */
import { useEffect } from "react";
import { useTranslation } from "react-i18next";
import { useConfirm } from "./confirm";

/** Gives what closes the form: at once when nothing was typed, after a question when something was. */
export function useDiscard(dirty: boolean, close: () => void): () => void {
  const { t } = useTranslation();
  const confirm = useConfirm();
  useEffect(() => {
    if (!dirty) return;
    const warn = (event: BeforeUnloadEvent) => event.preventDefault();
    addEventListener("beforeunload", warn);
    return () => removeEventListener("beforeunload", warn);
  }, [dirty]);
  return () => {
    if (!dirty) return close();
    void confirm({ title: t("ui.discardTitle"), body: t("ui.discardBody"), action: t("ui.discard") }).then(
      (yes) => yes && close(),
    );
  };
}
