/** The account menu: the session's user, language, theme and logout. */
import { Languages, LogOut, Monitor, Moon, Sun } from "lucide-react";
import { useTranslation } from "react-i18next";
import { speak } from "@/i18n";
import { LANGUAGES, type Language } from "@/i18n/languages";
import { useLogout, useSession } from "@/parts/session";
import { Button } from "@/ui/button";
import { cx } from "@/ui/cx";
import { Menu } from "@/ui/menu";
import { useTheme } from "./theme";

export function Account({ narrow }: { narrow: boolean }) {
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
          <span
            className={cx(
              "flex size-6 shrink-0 items-center justify-center rounded-full",
              "bg-accent-soft text-2xs font-semibold text-accent uppercase",
            )}
          >
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
        {
          label: t("app.logout"),
          icon: <LogOut className={icon} aria-hidden />,
          onSelect: () => void logout(),
        },
      ]}
    />
  );
}
