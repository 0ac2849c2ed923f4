/** The shell of every page: the side bar (icon rail or drawer if narrow), account and palette. */

import { type QueryClient, useQueryClient } from "@tanstack/react-query";
import { Outlet, useRouterState } from "@tanstack/react-router";
import { Menu as MenuIcon, Search, X } from "lucide-react";
import { useEffect, useMemo, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import { Live } from "@/api/live";
import { faultsIn } from "@/i18n";
import { NextStep } from "@/parts/first-steps";
import { LiveDot, LiveProvider } from "@/parts/live";
import { SessionProvider, useSession } from "@/parts/session";
import { IconButton } from "@/ui/button";
import { cx } from "@/ui/cx";
import { FormatContext } from "@/ui/format";
import { useStored } from "@/ui/stored";
import { pagesFor } from "./nav";
import { OutageBanner } from "./outage-banner";
import { Palette } from "./palette";
import { Mark, SideBar } from "./side-bar";

export function Shell() {
  const cache = useQueryClient();
  return (
    <SessionProvider>
      <Connected cache={cache} />
    </SessionProvider>
  );
}

function Connected({ cache }: { cache: QueryClient }) {
  const { role, userId, keyId, readOnly } = useSession();
  const live = useMemo(
    () => new Live(cache, [role, userId, keyId, readOnly].join(" ")),
    [cache, role, userId, keyId, readOnly],
  );
  return (
    <LiveProvider live={live}>
      <Frame />
    </LiveProvider>
  );
}

function Frame() {
  const { t, i18n } = useTranslation();
  const session = useSession();
  const [narrow, setNarrow] = useStored("rail", false);
  const [drawer, setDrawer] = useState(false);
  const [palette, setPalette] = useState(false);
  const path = useRouterState({ select: (state) => state.location.pathname });
  // biome-ignore lint/correctness/useExhaustiveDependencies: a new page closes the drawer
  useEffect(() => setDrawer(false), [path]);
  const opener = useRef<HTMLButtonElement>(null);
  // The page behind the open drawer cannot have the focus, and gets it back.
  useEffect(() => {
    if (drawer) return () => opener.current?.focus();
  }, [drawer]);
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
        event.preventDefault();
        setPalette((open) => !open);
      }
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, []);
  const page = pagesFor(session).find((one) => path.startsWith(one.path));
  useEffect(() => {
    document.title = page ? `${t(`nav.${page.name}`)} · ${session.siteTitle}` : session.siteTitle;
  }, [page, t, session.siteTitle]);
  const format = useMemo(
    () => ({
      locale: i18n.language,
      timeZone: session.timeZone,
      currency: session.currencyDisplay,
    }),
    [i18n.language, session.timeZone, session.currencyDisplay],
  );
  useEffect(() => faultsIn(session.timeZone), [session.timeZone]);
  return (
    <FormatContext value={format}>
      <a
        href="#main"
        className={cx(
          "sr-only focus:not-sr-only focus:fixed focus:top-2 focus:left-2",
          "focus:z-50 focus:rounded focus:bg-raised focus:px-3 focus:py-2",
        )}
      >
        {t("app.skip")}
      </a>
      <div className="flex h-dvh" inert={drawer}>
        <aside
          className={cx(
            "hidden shrink-0 flex-col border-r border-line bg-surface md:flex",
            narrow ? "w-14" : "w-56",
          )}
        >
          <SideBar
            narrow={narrow}
            onNarrow={() => setNarrow(!narrow)}
            onSearch={() => setPalette(true)}
          />
        </aside>
        <div className="flex min-w-0 flex-1 flex-col">
          <header
            className={cx(
              "flex h-12 shrink-0 items-center gap-2 border-b",
              "border-line bg-surface px-2 md:hidden",
            )}
          >
            <IconButton
              ref={opener}
              label={t("app.menu")}
              icon={<MenuIcon className="size-5" aria-hidden />}
              onClick={() => setDrawer(true)}
            />
            <Mark />
            <span className="min-w-0 flex-1 truncate font-semibold">
              {page ? t(`nav.${page.name}`) : session.siteTitle}
            </span>
            <LiveDot label={false} />
            <IconButton
              label={t("app.search")}
              icon={<Search className="size-5" aria-hidden />}
              onClick={() => setPalette(true)}
            />
          </header>
          <OutageBanner />
          <main
            id="main"
            tabIndex={-1}
            className="flex min-h-0 flex-1 flex-col overflow-y-auto outline-none"
          >
            {session.role === "admin" && !session.readOnly ? (
              <NextStep>
                <Outlet />
              </NextStep>
            ) : (
              <div className="min-h-0 flex-1">
                <Outlet />
              </div>
            )}
          </main>
        </div>
      </div>
      {drawer && (
        // biome-ignore lint/a11y/noStaticElementInteractions: Escape closes the menu within
        <div
          className="md:hidden"
          onKeyDown={(event) => event.key === "Escape" && setDrawer(false)}
        >
          <button
            type="button"
            data-overlay
            aria-label={t("ui.close")}
            className="fixed inset-0 z-40 bg-black/45"
            onClick={() => setDrawer(false)}
          />
          <div
            role="dialog"
            aria-modal
            aria-label={t("app.menu")}
            className="fixed inset-y-0 left-0 z-50 flex w-64 flex-col bg-surface shadow-2xl"
          >
            <div className="absolute top-1.5 right-1.5">
              <IconButton
                label={t("ui.close")}
                icon={<X className="size-5" aria-hidden />}
                onClick={() => setDrawer(false)}
                autoFocus
              />
            </div>
            <SideBar
              narrow={false}
              onSearch={() => setPalette(true)}
              onPage={() => setDrawer(false)}
            />
          </div>
        </div>
      )}
      <Palette open={palette} onClose={() => setPalette(false)} />
    </FormatContext>
  );
}
