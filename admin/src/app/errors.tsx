/** Error pages: for an address without a page, and for a fault of the program. */
import { type ErrorComponentProps, Link } from "@tanstack/react-router";
import { Compass } from "lucide-react";
import { useCallback, useEffect } from "react";
import { useTranslation } from "react-i18next";
import { ApiError, call } from "@/api/client";
import { Button } from "@/ui/button";
import { Empty, Failed } from "@/ui/empty";

const AGAIN = 5_000;

export function NotFound() {
  const { t } = useTranslation();
  return (
    <main>
      <Empty
        icon={<Compass className="size-6" aria-hidden />}
        title={t("app.notFound")}
        action={
          <Link to="/" className="text-accent underline">
            {t("app.goHome")}
          </Link>
        }
      >
        {t("app.notFoundHelp")}
      </Empty>
    </main>
  );
}

export function Crashed({ error, reset }: ErrorComponentProps) {
  const { t } = useTranslation();
  const away = error instanceof ApiError && (error.away || error.status === 0);
  const again = useCallback(() => {
    if (!away) return reset();
    // The page is restarted when the gateway answers who is logged in.
    void call("auth/whoami", {}).then(
      () => location.reload(),
      () => {},
    );
  }, [away, reset]);
  // It recovers automatically.
  useEffect(() => {
    if (!away) return;
    const timer = setInterval(again, AGAIN);
    return () => clearInterval(timer);
  }, [away, again]);
  return (
    <main className="mx-auto max-w-2xl space-y-4 px-4 py-10">
      <h1>{away ? t("outage.title") : t("app.crashed")}</h1>
      <Failed error={error} />
      {away && <p className="text-sm text-quiet">{t("outage.waits")}</p>}
      <div className="flex gap-2">
        <Button variant="primary" onClick={again}>
          {t("ui.retry")}
        </Button>
        <Button onClick={() => location.reload()}>{t("app.reload")}</Button>
      </div>
    </main>
  );
}
