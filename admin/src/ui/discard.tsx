/**
 * Protects unsaved input: closing a form with unsaved changes asks first, and so do opening another
 * page, going back, and (with the browser's dialog) leaving the program.
 */
import { useBlocker } from "@tanstack/react-router";
import { useRef } from "react";
import { useTranslation } from "react-i18next";
import { type Question, useConfirm } from "./confirm";

export interface Discard {
  /**
   * Closes the form: at once if nothing was edited, otherwise after a question; not while it is
   * being saved.
   */
  close: () => void;
  /** Do not ask from now on, because the form is being saved. `false` reverts that. */
  release: (released: boolean) => void;
}

/** `dirty`: there is unsaved input; or `question` describes what would be lost. */
export function useDiscard(dirty: boolean, close: () => void, question?: Question): Discard {
  const { t } = useTranslation();
  const confirm = useConfirm();
  const released = useRef(false);
  const ask = () =>
    confirm(
      question ?? {
        title: t("ui.discardTitle"),
        body: t("ui.discardBody"),
        action: t("ui.discard"),
      },
    );
  useBlocker({
    disabled: !dirty,
    enableBeforeUnload: dirty,
    shouldBlockFn: async () => !released.current && !(await ask()),
  });
  return {
    release: (now) => {
      released.current = now;
    },
    close: () => {
      // It is being saved, and closes when that is done or shows why it was refused.
      if (released.current) return;
      if (!dirty) return close();
      void ask().then((yes) => {
        if (!yes) return;
        // Closing may change the address; the user has already confirmed.
        released.current = true;
        close();
      });
    },
  };
}
