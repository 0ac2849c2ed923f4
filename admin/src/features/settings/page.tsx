/** The gateway's system settings and its notifications. */
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useTranslation } from "react-i18next";
import { Page } from "@/ui/page";
import { Tabs } from "@/ui/tabs";
import { NotificationsView } from "./notifications";
import { SystemView } from "./system";

export function SettingsPage() {
  const { t } = useTranslation();
  const { view = "system" } = useSearch({ from: "/shell/settings" });
  const navigate = useNavigate({ from: "/settings" });
  return (
    <Page title={t("nav.settings")}>
      <div className="max-w-3xl">
        <Tabs
          label={t("nav.settings")}
          value={view}
          onChange={(id) =>
            void navigate({
              search: { view: id === "notifications" ? "notifications" : undefined },
            })
          }
          tabs={[
            { id: "system", label: t("settings.system.title"), content: <SystemView /> },
            {
              id: "notifications",
              label: t("settings.notify.title"),
              content: <NotificationsView />,
            },
          ]}
        />
      </div>
    </Page>
  );
}
