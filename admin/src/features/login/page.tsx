/**
 * Login with the admin token or a key. If the browser drops the session cookie, the page reports
 * why.
 */
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useNavigate, useRouter, useSearch } from "@tanstack/react-router";
import { Eye, EyeOff } from "lucide-react";
import { type FormEvent, useEffect, useState } from "react";
import { useTranslation } from "react-i18next";
import { ApiError, call } from "@/api/client";
import * as queries from "@/api/queries";
import { speak } from "@/i18n";
import { LANGUAGES, type Language } from "@/i18n/languages";
import { Button, IconButton } from "@/ui/button";
import { cx } from "@/ui/cx";
import { Field, Input } from "@/ui/field";
import { Notice } from "@/ui/status";

/** `from` if it is a path of this site: a link must not redirect elsewhere after the login. */
function localPath(from: string | undefined): string | undefined {
  return from?.startsWith("/") && !from.startsWith("//") && !from.startsWith("/login")
    ? from
    : undefined;
}

export function LoginPage() {
  const { t, i18n } = useTranslation();
  const cache = useQueryClient();
  const router = useRouter();
  const navigate = useNavigate();
  const { from } = useSearch({ from: "/login" });
  const [key, setKey] = useState("");
  const [visible, setVisible] = useState(false);
  const [busy, setBusy] = useState(false);
  const [fault, setFault] = useState<string>();
  const [cookieDropped, setCookieDropped] = useState(false);
  // The form is shown before the title has arrived.
  const title = useQuery(queries.site).data?.siteTitle ?? "tollgate";
  useEffect(() => {
    document.title = `${t("login.title")} · ${title}`;
  }, [t, title]);

  const submit = async (event: FormEvent) => {
    event.preventDefault();
    setFault(undefined);
    setCookieDropped(false);
    if (key.trim() === "") return setFault(t("login.empty"));
    setBusy(true);
    try {
      const login = await call("auth/login", { key: key.trim() });
      cache.clear();
      await cache.fetchQuery(queries.whoami);
      const back = login.redirectTo === "/dashboard" ? localPath(from) : undefined;
      if (back) router.history.push(back);
      else
        await navigate({ to: login.redirectTo === "/dashboard" ? "/dashboard" : login.redirectTo });
    } catch (error) {
      const known = error instanceof ApiError ? error : new ApiError(0, "NETWORK", "");
      // The key was accepted, but the next request was sent without the session cookie.
      const loggedIn = known.status === 401 && known.params.reason === "no_credential";
      setCookieDropped(loggedIn);
      if (!loggedIn) setFault(known.message || t("ui.noConnection"));
    } finally {
      setBusy(false);
    }
  };

  return (
    <main className="flex min-h-dvh flex-col items-center justify-center gap-6 px-4 py-10">
      <div className="card w-full max-w-sm p-6">
        <div className="mb-5 flex items-center gap-3">
          <img src="/icon.svg" alt="" className="size-9" />
          <div className="min-w-0">
            <h1 className="!leading-6 break-words">{title}</h1>
            <p className="text-sm text-quiet">{t("login.title")}</p>
          </div>
        </div>
        <form onSubmit={(event) => void submit(event)} className="space-y-4" noValidate>
          <Field label={t("login.key")} help={t("login.help")} error={fault}>
            {(ids) => (
              <>
                <Input
                  {...ids}
                  autoFocus
                  type={visible ? "text" : "password"}
                  name="key"
                  autoComplete="current-password"
                  spellCheck={false}
                  className="pr-10 font-mono"
                  value={key}
                  onChange={(event) => setKey(event.target.value)}
                />
                <span className="absolute inset-y-0 right-1 flex items-center">
                  <IconButton
                    size="sm"
                    label={visible ? t("login.hide") : t("login.show")}
                    icon={
                      visible ? (
                        <EyeOff className="size-4" aria-hidden />
                      ) : (
                        <Eye className="size-4" aria-hidden />
                      )
                    }
                    onClick={() => setVisible(!visible)}
                  />
                </span>
              </>
            )}
          </Field>
          {cookieDropped && (
            <Notice tone="warn" title={t("login.droppedTitle")}>
              {location.protocol === "http:" ? t("login.droppedHttp") : t("login.dropped")}
            </Notice>
          )}
          <Button type="submit" variant="primary" className="w-full" busy={busy}>
            {t("login.submit")}
          </Button>
        </form>
        <p className="mt-5 border-t border-line pt-4 text-xs text-faint">{t("login.where")}</p>
      </div>
      <div className="flex gap-3 text-xs">
        {(Object.keys(LANGUAGES) as Language[]).map((language) => (
          <button
            key={language}
            type="button"
            lang={language}
            aria-pressed={i18n.language === language}
            className={cx(
              "rounded px-1 text-faint hover:text-ink",
              "aria-pressed:font-semibold aria-pressed:text-ink",
            )}
            onClick={() => void speak(language)}
          >
            {LANGUAGES[language]}
          </button>
        ))}
      </div>
    </main>
  );
}
