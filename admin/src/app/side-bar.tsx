/** The side bar: the gateway's name, search, pages in groups, live connection and account. */
import { Link } from "@tanstack/react-router";
import { PanelLeftClose, PanelLeftOpen, Search } from "lucide-react";
import { useTranslation } from "react-i18next";
import { LiveDot } from "@/parts/live";
import { useSession } from "@/parts/session";
import { IconButton } from "@/ui/button";
import { cx } from "@/ui/cx";
import { Account } from "./account";
import { API_DOCS, type Group, pagesFor } from "./nav";

export function Mark() {
  return <img src="/icon.svg" alt="" className="size-6 shrink-0" />;
}

const GROUPS: Group[] = ["watch", "manage", "system"];

interface Props {
  /** Shows only icons. */
  narrow: boolean;
  onNarrow?: () => void;
  onSearch: () => void;
  /** A page was chosen, the current one too. */
  onPage?: () => void;
}

export function SideBar({ narrow, onNarrow, onSearch, onPage }: Props) {
  const { t } = useTranslation();
  const session = useSession();
  const pages = pagesFor(session);
  return (
    <>
      <div
        className={cx(
          "flex h-12 shrink-0 items-center gap-2.5",
          narrow ? "justify-center" : "px-4",
        )}
      >
        <Mark />
        {!narrow && (
          <span
            className="flex-1 truncate text-base font-semibold tracking-tight"
            title={session.siteTitle}
          >
            {session.siteTitle}
          </span>
        )}
      </div>
      <div className={cx("pb-1", narrow ? "flex justify-center" : "px-3")}>
        {narrow ? (
          <IconButton
            label={t("app.search")}
            icon={<Search className="size-4" aria-hidden />}
            onClick={onSearch}
          />
        ) : (
          <button
            type="button"
            onClick={onSearch}
            className={cx(
              "flex h-8 w-full items-center gap-2 rounded-md border",
              "border-line bg-sunken px-2 text-xs text-faint hover:text-ink",
            )}
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
              {!narrow && (
                <div className="px-2 pb-1 text-xs font-medium text-faint">
                  {t(`nav.groups.${group}`)}
                </div>
              )}
              {own.map(({ path, name, icon: Icon }) => (
                <Link
                  key={path}
                  to={path}
                  onClick={onPage}
                  title={narrow ? t(`nav.${name}`) : undefined}
                  aria-label={narrow ? t(`nav.${name}`) : undefined}
                  className={cx(
                    "mb-0.5 flex h-8 items-center gap-2.5 rounded-md",
                    "text-sm text-quiet hover:bg-hover hover:text-ink",
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
                    "flex h-8 items-center gap-2.5 rounded-md text-sm",
                    "text-quiet hover:bg-hover hover:text-ink",
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
      <div
        className={cx(
          "border-t border-line py-2",
          narrow ? "flex flex-col items-center gap-1" : "px-3",
        )}
      >
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
