/**
 * Asks once before something is destroyed: `const confirm = useConfirm()` and `if (await confirm({
 * title, body, action })) …`. The body names the record and the consequences.
 */
import { createContext, type ReactNode, useCallback, useContext, useState } from "react";
import { useTranslation } from "react-i18next";
import { Button } from "./button";
import { Dialog } from "./dialog";

export interface Question {
  title: string;
  body: ReactNode;
  /** The verb on the button: "Delete key". */
  action: string;
  danger?: boolean;
}

const Ask = createContext<(question: Question) => Promise<boolean>>(async () => false);
export const useConfirm = () => useContext(Ask);

export function ConfirmProvider({ children }: { children: ReactNode }) {
  const { t } = useTranslation();
  const [asked, setAsked] = useState<(Question & { answer: (yes: boolean) => void }) | null>(null);
  const ask = useCallback(
    (question: Question) => new Promise<boolean>((answer) => setAsked({ ...question, answer })),
    [],
  );
  const settle = (yes: boolean) => {
    asked?.answer(yes);
    setAsked(null);
  };
  return (
    <Ask value={ask}>
      {children}
      {asked !== null && (
        <Dialog
          open
          onClose={() => settle(false)}
          title={asked.title}
          width="max-w-md"
          footer={
            <>
              <Button onClick={() => settle(false)}>{t("ui.cancel")}</Button>
              <Button
                variant={asked.danger === false ? "primary" : "danger"}
                onClick={() => settle(true)}
              >
                {asked.action}
              </Button>
            </>
          }
        >
          <div className="text-sm text-quiet">{asked.body}</div>
        </Dialog>
      )}
    </Ask>
  );
}
