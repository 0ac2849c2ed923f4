/** Users and their keys. */
import { useQuery } from "@tanstack/react-query";
import { useTranslation } from "react-i18next";
import * as queries from "@/api/queries";
import { Failed } from "@/ui/empty";
import { Page } from "@/ui/page";
import { DataTable } from "@/ui/table";

export function PeoplePage() {
  const { t } = useTranslation();
  const { data, error, isPending, refetch } = useQuery(queries.users);
  return (
    <Page title={t("nav.people")} full>
      {error ? (
        <Failed error={error} retry={() => void refetch()} />
      ) : (
        <DataTable
          id="users"
          label={t("nav.people")}
          full
          loading={isPending}
          rows={data ?? []}
          rowId={(user) => String(user.id)}
          columns={[{ id: "name", header: t("nav.people"), cell: (user) => user.name, value: (user) => user.name }]}
        />
      )}
    </Page>
  );
}
