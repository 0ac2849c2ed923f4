/** What needs me, who is using it, what does it cost: the page that people have open. */
import { useTranslation } from "react-i18next";
import { useIsAdmin } from "@/app/session";
import { Page } from "@/ui/page";
import { Guide } from "./guide";

export function OverviewPage() {
  const { t } = useTranslation();
  const admin = useIsAdmin();
  return <Page title={t("nav.overview")}>{admin && <Guide />}</Page>;
}
