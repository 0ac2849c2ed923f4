/** What is around every page: the side bar (an icon rail when narrow, a drawer on a phone), who is logged in, the palette. */

import { useQueryClient } from "@tanstack/react-query";
import { Link, Outlet, useRouterState } from "@tanstack/react-router";
import {
  Languages,
  LogOut,
  Menu as MenuIcon,
  Monitor,
  Moon,
  PanelLeftClose,
  PanelLeftOpen,
  Search,
  Sun,
  X,
} from "lucide-react";
import { useEffect, useMemo, useState } from "react";
import { useTranslation } from "react-i18next";
import { Live } from "@/api/live";
import { LANGUAGES, type Language, speak } from "@/i18n";
import { Button, IconButton } from "@/ui/button";
import { cx } from "@/ui/cx";
import { FormatContext } from "@/ui/format";
import { Menu } from "@/ui/menu";
import { useStored } from "@/ui/stored";
import { NextStep } from "./first-steps";
import { LiveDot, LiveProvider } from "./live";
import { API_DOCS, type Group, pagesFor } from "./nav";
import { Palette } from "./palette";
import { SessionProvider, useLogout, useSession } from "./session";
import { useTheme } from "./theme";

export function Shell() {
  const cache = useQueryClient();
  const live = useMemo(() => new Live(cache), [cache]);
  return (
    <SessionProvider>
      <LiveProvider live={live}>
        <Frame />
      </LiveProvider>
    </SessionProvider>
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
    document.title = page ? `${t(`nav.${page.name}`)} · tollgate` : "tollgate";
  }, [page, t]);
  const format = useMemo(
    () => ({ locale: i18n.language, timeZone: session.timeZone, currency: "$" }),
    [i18n.language, session.timeZone],
  );
  return (
    <FormatContext value={format}>
      <a
        href="#main"
        className="sr-only focus:not-sr-only focus:fixed focus:top-2 focus:left-2 focus:z-50 focus:rounded focus:bg-raised focus:px-3 focus:py-2"
      >
        {t("app.skip")}
      </a>
      <div className="flex h-dvh">
        <aside
          className={cx("hidden shrink-0 flex-col border-r border-line bg-surface md:flex", narrow ? "w-14" : "w-56")}
        >
          <SideBar narrow={narrow} onNarrow={() => setNarrow(!narrow)} onSearch={() => setPalette(true)} />
        </aside>
        <div className="flex min-w-0 flex-1 flex-col">
          <header className="flex h-12 shrink-0 items-center gap-2 border-b border-line bg-surface px-2 md:hidden">
            <IconButton
              label={t("app.menu")}
              icon={<MenuIcon className="size-5" aria-hidden />}
              onClick={() => setDrawer(true)}
            />
            <Mark />
            <span className="min-w-0 flex-1 truncate font-semibold">{page ? t(`nav.${page.name}`) : "tollgate"}</span>
            <LiveDot label={false} />
            <IconButton
              label={t("app.search")}
              icon={<Search className="size-5" aria-hidden />}
              onClick={() => setPalette(true)}
            />
          </header>
          <main id="main" tabIndex={-1} className="flex min-h-0 flex-1 flex-col overflow-y-auto outline-none">
            {session.role === "admin" && !session.readOnly && <NextStep />}
            <div className="min-h-0 flex-1">
              <Outlet />
            </div>
          </main>
        </div>
      </div>
      {drawer && (
        <div className="md:hidden">
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
            <SideBar narrow={false} onSearch={() => setPalette(true)} />
          </div>
        </div>
      )}
      <Palette open={palette} onClose={() => setPalette(false)} />
    </FormatContext>
  );
}

export function Mark() {
  return <img src="/icon.svg" alt="" className="size-6 shrink-0" />;
}

const GROUPS: Group[] = ["watch", "manage", "system"];

function SideBar({ narrow, onNarrow, onSearch }: { narrow: boolean; onNarrow?: () => void; onSearch: () => void }) {
  const { t } = useTranslation();
  const session = useSession();
  const pages = pagesFor(session);
  return (
    <>
      <div className={cx("flex h-12 shrink-0 items-center gap-2.5", narrow ? "justify-center" : "px-4")}>
        <Mark />
        {!narrow && <span className="flex-1 truncate text-base font-semibold tracking-tight">tollgate</span>}
      </div>
      <div className={cx("pb-1", narrow ? "flex justify-center" : "px-3")}>
        {narrow ? (
          <IconButton label={t("app.search")} icon={<Search className="size-4" aria-hidden />} onClick={onSearch} />
        ) : (
          <button
            type="button"
            onClick={onSearch}
            className="flex h-8 w-full items-center gap-2 rounded-md border border-line bg-sunken px-2 text-xs text-faint hover:text-ink"
          >
            <Search className="size-3.5" aria-hidden />
            <span className="flex-1 truncate text-left">{t("app.search")}</span>
            <kbd className="font-sans text-2xs">Ctrl K</kbd>
          </button>
        )}
      </div>
      <nav aria-label={t("app.pages")} className="min-h-0 flex-1 overflow-y-auto px-2 pb-2">
        {GROUPS.map((group) => {
          const own = pages.filter((page) => page.group === group);
          if (own.length === 0) return null;
          return (
            <div key={group} className="pt-3">
              {!narrow && <div className="px-2 pb-1 text-xs font-medium text-faint">{t(`nav.groups.${group}`)}</div>}
              {own.map(({ path, name, icon: Icon }) => (
                <Link
                  key={path}
                  to={path}
                  title={narrow ? t(`nav.${name}`) : undefined}
                  aria-label={narrow ? t(`nav.${name}`) : undefined}
                  className={cx(
                    "mb-0.5 flex h-8 items-center gap-2.5 rounded-md text-sm text-quiet hover:bg-hover hover:text-ink",
                    narrow ? "justify-center" : "px-2",
                  )}
                  activeProps={{ className: "!bg-accent-soft !text-accent font-medium" }}
                >
                  <Icon className="size-4 shrink-0" aria-hidden />
                  {!narrow && <span className="truncate">{t(`nav.${name}`)}</span>}
                </Link>
              ))}
              {group === "system" && !session.readOnly && (
                <a
                  href={API_DOCS.path}
                  target="_blank"
                  rel="noreferrer"
                  title={t("nav.api")}
                  className={cx(
                    "flex h-8 items-center gap-2.5 rounded-md text-sm text-quiet hover:bg-hover hover:text-ink",
                    narrow ? "justify-center" : "px-2",
                  )}
                >
                  <API_DOCS.icon className="size-4 shrink-0" aria-hidden />
                  {!narrow && <span className="truncate">{t("nav.api")}</span>}
                </a>
              )}
            </div>
          );
        })}
      </nav>
      <div className={cx("border-t border-line py-2", narrow ? "flex flex-col items-center gap-1" : "px-3")}>
        {!narrow && (
          <div className="flex items-center justify-between gap-2 px-1 pb-1">
            <span className="flex min-w-0">
              <LiveDot />
            </span>
            <span className="text-2xs text-faint">{session.version}</span>
          </div>
        )}
        {narrow && <LiveDot label={false} />}
        <div className={cx("flex items-center gap-1", narrow && "flex-col")}>
          <Account narrow={narrow} />
          {onNarrow && (
            <IconButton
              size="sm"
              label={narrow ? t("app.widen") : t("app.narrow")}
              icon={
                narrow ? (
                  <PanelLeftOpen className="size-4" aria-hidden />
                ) : (
                  <PanelLeftClose className="size-4" aria-hidden />
                )
              }
              onClick={onNarrow}
            />
          )}
        </div>
      </div>
    </>
  );
}

/** Who is logged in; language, theme and logout. */
function Account({ narrow }: { narrow: boolean }) {
  const { t } = useTranslation();
  const session = useSession();
  const logout = useLogout();
  const [theme, setTheme] = useTheme();
  const about = session.keyName ? t("app.byKey", { name: session.keyName }) : t("app.byToken");
  const icon = "size-4 text-faint";
  const themes = { system: Monitor, light: Sun, dark: Moon };
  return (
    <Menu
      title={
        <>
          <span className="block font-medium text-ink">{session.userName}</span>
          {t(`role.${session.role === "admin" ? "admin" : "user"}`)} · {about}
        </>
      }
      trigger={
        <Button
          variant="ghost"
          size="sm"
          className={cx("min-w-0 !justify-start", narrow ? "!w-8 !px-0" : "flex-1")}
          aria-label={t("app.account")}
        >
          <span className="flex size-6 shrink-0 items-center justify-center rounded-full bg-accent-soft text-2xs font-semibold text-accent uppercase">
            {session.userName.slice(0, 2)}
          </span>
          {!narrow && <span className="truncate">{session.userName}</span>}
        </Button>
      }
      actions={[
        ...(Object.keys(themes) as (keyof typeof themes)[]).map((name) => {
          const Icon = themes[name];
          return {
            label: `${t(`theme.${name}`)}${theme === name ? " ✓" : ""}`,
            icon: <Icon className={icon} aria-hidden />,
            onSelect: () => setTheme(name),
          };
        }),
        "line" as const,
        ...(Object.keys(LANGUAGES) as Language[]).map((language) => ({
          label: LANGUAGES[language],
          icon: <Languages className={icon} aria-hidden />,
          onSelect: () => void speak(language),
        })),
        "line" as const,
        { label: t("app.logout"), icon: <LogOut className={icon} aria-hidden />, onSelect: () => void logout() },
      ]}
    />
  );
}
