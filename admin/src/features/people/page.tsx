/** Users and their keys: two lists, a panel for one user, and forms. */
import { useNavigate, useSearch } from "@tanstack/react-router";
import { Plus, SquarePen, Users } from "lucide-react";
import { useMemo, useState } from "react";
import { useTranslation } from "react-i18next";
import type { Schemas } from "@/api/client";
import { usePanelHistory } from "@/parts/panel-history";
import { useIsAdmin, useSession, useUsers } from "@/parts/session";
import { Button } from "@/ui/button";
import { Empty } from "@/ui/empty";
import { Filters } from "@/ui/filters";
import { List } from "@/ui/list";
import { Page } from "@/ui/page";
import { Segments } from "@/ui/segments";
import { useKeyColumns, useUserColumns } from "./columns";
import { BatchEdit, RenewKey } from "./dialogs";
import { fits, keyFits, usePeopleFilters } from "./filters";
import { KeyForm } from "./key-form";
import { NewKey } from "./new-key";
import type { PeopleSearch } from "./search";
import { UserForm } from "./user-form";
import { UserPanel } from "./user-panel";
import type { Key, User } from "./values";

const VIEWS = ["users", "keys"] as const;

type Open =
  | { form: "user"; user?: User }
  | { form: "key"; user: User; value?: Key }
  | { form: "renew"; value: Key }
  | { form: "batch" }
  | null;

export function PeoplePage() {
  const { t } = useTranslation();
  const admin = useIsAdmin();
  const session = useSession();
  const search = useSearch({ from: "/shell/people" });
  const navigate = useNavigate({ from: "/people" });
  const panel = usePanelHistory(search.user !== undefined);
  const set = (next: Partial<PeopleSearch>, how: object = { replace: true }) =>
    void navigate({ search: (old) => ({ ...old, ...next }), ...how });
  const show = (next: Partial<PeopleSearch>) => set(next, panel.opening());
  const asked = useUsers();
  const { data } = asked;
  const [open, setOpen] = useState<Open>(null);
  const [made, setMade] = useState<{ text: string; name: string } | null>(null);
  const [picked, setPicked] = useState<Set<string>>(new Set());

  const users = useMemo(() => (data ?? []).filter((user) => fits(user, search)), [data, search]);
  const keys = useMemo(
    () =>
      (data ?? [])
        .flatMap((user) => user.keys.map((key) => ({ key, user })))
        .filter((row) => keyFits(row, search)),
    [data, search],
  );
  const chosen = data?.find((user) => user.id === search.user);
  const view = search.view ?? "users";
  const created = (user: Schemas["NewUser"]) => {
    setMade({ text: user.defaultKey.key, name: `${user.user.name} / ${user.defaultKey.name}` });
    show({ user: user.user.id });
  };
  const userColumns = useUserColumns();
  const keyColumns = useKeyColumns();
  const filters = usePeopleFilters(search, set, data ?? []);
  const filtered =
    search.q !== undefined || search.state !== undefined || search.group !== undefined;
  const adds = admin ? (
    <Add label={t("people.newUser")} onClick={() => setOpen({ form: "user" })} />
  ) : (
    data?.[0] && (
      <Add
        label={t("people.addKey")}
        onClick={() => data[0] && setOpen({ form: "key", user: data[0] })}
      />
    )
  );

  const frame = {
    asked,
    search: {
      label: t("people.find"),
      value: search.q,
      onChange: (q: string | undefined) => set({ q }),
    },
    lead: (
      <Segments
        label={t("people.view")}
        value={view}
        choices={VIEWS.map((value) => ({ value, label: t(`people.${value}`) }))}
        onChange={(one) => set({ view: one === "users" ? undefined : one })}
      />
    ),
    none: filtered
      ? {
          title: t("people.noMatch"),
          action: t("people.clearFilters"),
          clear: () => set({ q: undefined, state: undefined, group: undefined }),
        }
      : undefined,
    first: (
      <Empty
        icon={<Users className="size-6" aria-hidden />}
        title={t("people.none")}
        action={admin && adds}
      >
        {t("people.noneHelp")}
      </Empty>
    ),
  };
  return (
    <Page title={t("nav.people")} full actions={adds}>
      {view === "users" ? (
        <List
          {...frame}
          id="users"
          label={t("people.users")}
          rows={users}
          rowId={(user) => String(user.id)}
          columns={userColumns}
          toolbar={<Filters filters={filters} />}
          openId={chosen ? String(chosen.id) : null}
          onOpen={(user) => show({ user: user.id, key: undefined })}
          dim={(user) => user.status !== "enabled"}
        />
      ) : (
        <List
          {...frame}
          id="keys"
          label={t("people.keys")}
          rows={keys}
          rowId={({ key }) => String(key.id)}
          columns={keyColumns}
          toolbar={
            <>
              <Filters filters={filters} />
              {picked.size > 0 && (
                <Button
                  size="sm"
                  variant="primary"
                  icon={<SquarePen className="size-3.5" aria-hidden />}
                  onClick={() => setOpen({ form: "batch" })}
                >
                  {t("people.batchEdit", { count: picked.size })}
                </Button>
              )}
            </>
          }
          openId={search.key === undefined ? null : String(search.key)}
          onOpen={({ key, user }) => show({ user: user.id, key: key.id })}
          dim={({ key }) => key.effectiveStatus !== "enabled"}
          picked={picked}
          onPick={admin ? setPicked : undefined}
        />
      )}
      {chosen && (
        <UserPanel
          user={chosen}
          openKey={search.key}
          onOpenKey={(key) => show({ key })}
          onClose={() => panel.close(() => set({ user: undefined, key: undefined }))}
          onEdit={() => setOpen({ form: "user", user: chosen })}
          onAddKey={() => setOpen({ form: "key", user: chosen })}
          onEditKey={(value) => setOpen({ form: "key", user: chosen, value })}
          onRenew={(value) => setOpen({ form: "renew", value })}
        />
      )}
      {open?.form === "user" && (
        <UserForm user={open.user} onClose={() => setOpen(null)} onCreated={created} />
      )}
      {open?.form === "key" && (
        <KeyForm
          user={open.user}
          value={open.value}
          onClose={() => setOpen(null)}
          onCreated={(text, name) => setMade({ text, name: `${open.user.name} / ${name}` })}
        />
      )}
      {open?.form === "renew" && <RenewKey value={open.value} onClose={() => setOpen(null)} />}
      {open?.form === "batch" && (
        <BatchEdit
          keyIds={[...picked].map(Number)}
          onClose={() => setOpen(null)}
          onDone={() => setPicked(new Set())}
        />
      )}
      {made && <NewKey text={made.text} name={made.name} onClose={() => setMade(null)} />}
      {session.role === "user" && <p className="mt-2 text-xs text-faint">{t("people.ownOnly")}</p>}
    </Page>
  );
}

function Add({ label, onClick }: { label: string; onClick: () => void }) {
  return (
    <Button variant="primary" icon={<Plus className="size-4" aria-hidden />} onClick={onClick}>
      {label}
    </Button>
  );
}
