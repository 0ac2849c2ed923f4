/** Pages for what went wrong: an address that is no page, and a fault of the program's own. */
import { type ErrorComponentProps, Link } from "@tanstack/react-router";
import { Compass } from "lucide-react";
import { useTranslation } from "react-i18next";
import { Button } from "@/ui/button";
import { Empty, Failed } from "@/ui/empty";

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
  return (
    <main className="mx-auto max-w-2xl space-y-4 px-4 py-10">
      <h1>{t("app.crashed")}</h1>
      <Failed error={error} />
      <div className="flex gap-2">
        <Button variant="primary" onClick={reset}>
          {t("ui.retry")}
        </Button>
        <Button onClick={() => location.reload()}>{t("app.reload")}</Button>
      </div>
    </main>
  );
}
