/**
 * What was typed is not lost by a slip: closing a form that holds unsaved changes asks first; so do
 * going to another page, going back, and (in the browser's words) leaving the program.
 */
import { useBlocker } from "@tanstack/react-router";
import { useRef } from "react";
import { useTranslation } from "react-i18next";
import { type Question, useConfirm } from "./confirm";

export interface Discard {
  /** Closes the form: at once when nothing was typed, after a question when something was. */
  close: () => void;
  /** From here on nothing is asked: it is being saved. `false` takes that back. */
  release: (released: boolean) => void;
}

/** `dirty`: something was typed that is not saved, or what `question` says would be lost. */
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
      if (!dirty) return close();
      void ask().then((yes) => {
        if (!yes) return;
        // Closing may change the address; that was asked already.
        released.current = true;
        close();
      });
    },
  };
}
