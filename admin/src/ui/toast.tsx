/**
 * Messages at the page's edge: `const toast = useToast()`, `toast.good(text)`, `toast.bad(text)`,
 * `toast.failed(error)`.
 */
import { CircleAlert, CircleCheck, X } from "lucide-react";
import { createContext, type ReactNode, useContext, useMemo, useState } from "react";
import { useTranslation } from "react-i18next";
import { cx } from "./cx";

interface News {
  id: number;
  tone: "good" | "bad";
  text: string;
}
interface Toast {
  good: (text: string) => void;
  bad: (text: string) => void;
  /** The error's message; without one, that the gateway cannot be reached. */
  failed: (error: unknown) => void;
}

const Context = createContext<Toast>({ good: () => {}, bad: () => {}, failed: () => {} });
export const useToast = () => useContext(Context);
let next = 0;

export function ToastProvider({ children }: { children: ReactNode }) {
  const { t } = useTranslation();
  const [news, setNews] = useState<News[]>([]);
  const toast = useMemo<Toast>(() => {
    const show = (tone: News["tone"]) => (text: string) => {
      const id = next++;
      setNews((old) => [...old.slice(-2), { id, tone, text }]);
      setTimeout(
        () => setNews((old) => old.filter((one) => one.id !== id)),
        tone === "good" ? 4000 : 9000,
      );
    };
    const bad = show("bad");
    const failed = (error: unknown) =>
      bad((error instanceof Error && error.message) || t("ui.noConnection"));
    return { good: show("good"), bad, failed };
  }, [t]);
  return (
    <Context value={toast}>
      {children}
      <div
        aria-live="polite"
        className={cx(
          "pointer-events-none fixed inset-x-4 bottom-4",
          "z-[60] flex flex-col items-center gap-2",
        )}
      >
        {news.map(({ id, tone, text }) => (
          <div
            key={id}
            data-popup
            data-message
            className={cx(
              "pointer-events-auto flex max-w-lg items-start gap-2 rounded-lg",
              "border border-line bg-raised py-2.5 pr-2 pl-3 text-sm shadow-lg",
            )}
          >
            <span className={cx("mt-0.5", tone === "good" ? "text-good" : "text-bad")}>
              {tone === "good" ? (
                <CircleCheck className="size-4" aria-hidden />
              ) : (
                <CircleAlert className="size-4" aria-hidden />
              )}
            </span>
            <span className="min-w-0 break-words">{text}</span>
            <button
              type="button"
              aria-label={t("ui.dismiss")}
              className="rounded p-0.5 text-faint hover:text-ink"
              onClick={() => setNews((old) => old.filter((one) => one.id !== id))}
            >
              <X className="size-4" aria-hidden />
            </button>
          </div>
        ))}
      </div>
    </Context>
  );
}
