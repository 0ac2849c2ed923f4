/**
 * Protects unsaved input: closing a form with unsaved changes asks first, and so do opening another
 * page, going back, and (with the browser's dialog) leaving the program.
 */
import { useBlocker } from "@tanstack/react-router";
import { useEffect, useRef } from "react";
import { useTranslation } from "react-i18next";
import { type Question, useConfirm } from "./confirm";

/** Asks whether the unsaved input may be discarded: one for each form that has some. */
const unsaved = new Set<() => Promise<boolean>>();

export const hasUnsaved = () => unsaved.size > 0;

/** Asks about all unsaved input. Returns `false` if some of it must be kept. */
export async function mayDiscard(): Promise<boolean> {
  for (const ask of unsaved) if (!(await ask())) return false;
  return true;
}

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
  const latest = useRef(ask);
  latest.current = ask;
  useEffect(() => {
    if (!dirty) return;
    const asks = () => latest.current();
    unsaved.add(asks);
    return () => void unsaved.delete(asks);
  }, [dirty]);
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
