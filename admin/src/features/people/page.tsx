/** Users and their keys: two lists of the same people, a panel for one of them, and forms. */
import { useQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import type { TFunction } from "i18next";
import { Plus, SquarePen, Users } from "lucide-react";
import { useMemo, useState } from "react";
import { useTranslation } from "react-i18next";
import type { Schemas } from "@/api/client";
import * as queries from "@/api/queries";
import type { PeopleSearch } from "@/app/router";
import { useIsAdmin, useSession } from "@/app/session";
import { Button } from "@/ui/button";
import { Empty, Failed } from "@/ui/empty";
import { Input, Select } from "@/ui/field";
import { type Filter, Filters } from "@/ui/filters";
import { Page } from "@/ui/page";
import { type Column, DataTable } from "@/ui/table";
import { Count, Money, Time, useNow } from "@/ui/text";
import { BatchEdit, NewKey, RenewKey } from "./dialogs";
import { KeyForm } from "./key-form";
import { StateBadge } from "./state";
import { UserForm } from "./user-form";
import { UserPanel, Words } from "./user-panel";
import { type Key, type State, type User, userState, words } from "./values";

interface KeyRow {
  key: Key;
  user: User;
}
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
  const set = (next: Partial<PeopleSearch>) => void navigate({ search: (old) => ({ ...old, ...next }), replace: true });
  const { data, error, isPending, refetch } = useQuery(queries.users);
  const [open, setOpen] = useState<Open>(null);
  const [made, setMade] = useState<{ text: string; name: string } | null>(null);
  const [picked, setPicked] = useState<Set<string>>(new Set());
  const now = useNow();

  const users = useMemo(() => (data ?? []).filter((user) => fits(user, search, now)), [data, search, now]);
  const keys = useMemo(
    () => (data ?? []).flatMap((user) => user.keys.map((key) => ({ key, user }))).filter((row) => keyFits(row, search)),
    [data, search],
  );
  const chosen = data?.find((user) => user.id === search.user);
  const view = search.view ?? "users";
  const created = (user: Schemas["NewUser"]) => {
    setMade({ text: user.defaultKey.key, name: `${user.user.name} / ${user.defaultKey.name}` });
    set({ user: user.user.id });
  };

  const userColumns = useUserColumns(now);
  const keyColumns = useMemo(() => KEY_COLUMNS(t), [t]);
  const filters = usePeopleFilters(search, set, data ?? []);

  const toolbar = (
    <>
      <fieldset className="flex h-7 overflow-hidden rounded-md border border-strong-line text-xs">
        <legend className="sr-only">{t("people.view")}</legend>
        {(["users", "keys"] as const).map((one) => (
          <button
            key={one}
            type="button"
            aria-pressed={view === one}
            className="px-2.5 aria-pressed:bg-accent-soft aria-pressed:font-medium aria-pressed:text-accent"
            onClick={() => set({ view: one === "users" ? undefined : one })}
          >
            {t(`people.${one}`)}
          </button>
        ))}
      </fieldset>
      <Input
        type="search"
        aria-label={t("people.find")}
        placeholder={t("people.find")}
        className="!h-7 max-w-52 !text-xs"
        value={search.q ?? ""}
        onChange={(event) => set({ q: event.target.value || undefined })}
      />
      <Filters filters={filters} />
      {view === "keys" && picked.size > 0 && (
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
  );
  const filtered = search.q !== undefined || search.state !== undefined || search.group !== undefined;
  const empty = filtered ? (
    <Empty
      title={t("people.noMatch")}
      action={
        <Button onClick={() => set({ q: undefined, state: undefined, group: undefined })}>
          {t("people.clearFilters")}
        </Button>
      }
    />
  ) : (
    <Empty
      icon={<Users className="size-6" aria-hidden />}
      title={t("people.none")}
      action={
        admin && (
          <Button
            variant="primary"
            icon={<Plus className="size-4" aria-hidden />}
            onClick={() => setOpen({ form: "user" })}
          >
            {t("people.newUser")}
          </Button>
        )
      }
    >
      {t("people.noneHelp")}
    </Empty>
  );

  return (
    <Page
      title={t("nav.people")}
      full
      actions={
        admin ? (
          <Button
            variant="primary"
            icon={<Plus className="size-4" aria-hidden />}
            onClick={() => setOpen({ form: "user" })}
          >
            {t("people.newUser")}
          </Button>
        ) : (
          data?.[0] && (
            <Button
              variant="primary"
              icon={<Plus className="size-4" aria-hidden />}
              onClick={() => data[0] && setOpen({ form: "key", user: data[0] })}
            >
              {t("people.addKey")}
            </Button>
          )
        )
      }
    >
      {error ? (
        <Failed error={error} retry={() => void refetch()} />
      ) : view === "users" ? (
        <DataTable
          id="users"
          label={t("people.users")}
          full
          loading={isPending}
          rows={users}
          rowId={(user) => String(user.id)}
          columns={userColumns}
          toolbar={toolbar}
          empty={empty}
          openId={chosen ? String(chosen.id) : null}
          onOpen={(user) => set({ user: user.id, key: undefined })}
          dim={(user) => userState(user, now) !== "enabled"}
        />
      ) : (
        <DataTable
          id="keys"
          label={t("people.keys")}
          full
          loading={isPending}
          rows={keys}
          rowId={({ key }) => String(key.id)}
          columns={keyColumns}
          toolbar={toolbar}
          empty={empty}
          openId={search.key === undefined ? null : String(search.key)}
          onOpen={({ key, user }) => set({ user: user.id, key: key.id })}
          dim={({ key }) => key.status !== "enabled"}
          picked={picked}
          onPick={admin ? setPicked : undefined}
        />
      )}
      {chosen && (
        <UserPanel
          user={chosen}
          openKey={search.key}
          onOpenKey={(key) => set({ key })}
          onClose={() => set({ user: undefined, key: undefined })}
          onEdit={() => setOpen({ form: "user", user: chosen })}
          onAddKey={() => setOpen({ form: "key", user: chosen })}
          onEditKey={(value) => setOpen({ form: "key", user: chosen, value })}
          onRenew={(value) => setOpen({ form: "renew", value })}
        />
      )}
      {open?.form === "user" && <UserForm user={open.user} onClose={() => setOpen(null)} onCreated={created} />}
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
          onClose={(done) => {
            setOpen(null);
            if (done) setPicked(new Set());
          }}
        />
      )}
      {made && <NewKey text={made.text} name={made.name} onClose={() => setMade(null)} />}
      {session.role === "user" && <p className="mt-2 text-xs text-faint">{t("people.ownOnly")}</p>}
    </Page>
  );
}

function fits(user: User, { q, state, group }: PeopleSearch, now: Date): boolean {
  const text = [user.name, user.note, ...user.tags, ...user.keys.map((key) => key.name)].join(" ").toLowerCase();
  return (
    (q === undefined || text.includes(q.toLowerCase())) &&
    (state === undefined || userState(user, now) === state) &&
    (group === undefined || words(user.providerGroup).includes(group))
  );
}

function keyFits({ key, user }: KeyRow, { q, state, group }: PeopleSearch): boolean {
  return (
    (q === undefined || `${user.name} ${key.name} ${key.key}`.toLowerCase().includes(q.toLowerCase())) &&
    (state === undefined || key.status === state) &&
    (group === undefined || words(key.providerGroup).includes(group))
  );
}

function usePeopleFilters(search: PeopleSearch, set: (next: Partial<PeopleSearch>) => void, users: User[]): Filter[] {
  const { t } = useTranslation();
  const groups = [...new Set(users.flatMap((user) => words(user.providerGroup)))].sort();
  const states: State[] = ["enabled", "disabled", "expired"];
  return [
    {
      id: "state",
      label: t("people.state"),
      shown: search.state && t(`people.states.${search.state}`),
      clear: () => set({ state: undefined }),
      edit: (done) => (
        <Select
          aria-label={t("people.state")}
          value={search.state ?? ""}
          choices={[
            { value: "", label: "—" },
            ...states.map((state) => ({ value: state, label: t(`people.states.${state}`) })),
          ]}
          onChange={(event) => {
            set({ state: (event.target.value || undefined) as State | undefined });
            done();
          }}
        />
      ),
    },
    {
      id: "group",
      label: t("people.providerGroup"),
      shown: search.group,
      clear: () => set({ group: undefined }),
      edit: (done) => (
        <Select
          aria-label={t("people.providerGroup")}
          value={search.group ?? ""}
          choices={[{ value: "", label: "—" }, ...groups.map((group) => ({ value: group, label: group }))]}
          onChange={(event) => {
            set({ group: event.target.value || undefined });
            done();
          }}
        />
      ),
    },
  ];
}

function useUserColumns(now: Date): Column<User>[] {
  const { t } = useTranslation();
  return useMemo(
    () => [
      {
        id: "name",
        header: t("people.name"),
        value: (user) => user.name.toLowerCase(),
        cell: (user) => <span className="font-medium">{user.name}</span>,
      },
      {
        id: "state",
        header: t("people.state"),
        value: (user) => userState(user, now),
        cell: (user) => <StateBadge state={userState(user, now)} />,
      },
      {
        id: "role",
        header: t("people.role"),
        value: (user) => user.role,
        cell: (user) => t(`role.${user.role === "admin" ? "admin" : "user"}`),
      },
      {
        id: "keys",
        header: t("people.keys"),
        align: "right",
        value: (user) => user.keys.length,
        cell: (user) => <Count value={user.keys.length} />,
      },
      {
        id: "groups",
        header: t("people.providerGroup"),
        cell: (user) => <Words list={words(user.providerGroup)} none="default" />,
      },
      {
        id: "5h",
        header: t("people.limit5hUsd"),
        align: "right",
        hidden: true,
        value: (user) => user.limit5hUsd,
        cell: (user) => <Money amount={user.limit5hUsd} />,
      },
      {
        id: "daily",
        header: t("people.limitDailyUsd"),
        align: "right",
        value: (user) => user.limitDailyUsd,
        cell: (user) => <Money amount={user.limitDailyUsd} />,
      },
      {
        id: "weekly",
        header: t("people.limitWeeklyUsd"),
        align: "right",
        hidden: true,
        value: (user) => user.limitWeeklyUsd,
        cell: (user) => <Money amount={user.limitWeeklyUsd} />,
      },
      {
        id: "monthly",
        header: t("people.limitMonthlyUsd"),
        align: "right",
        value: (user) => user.limitMonthlyUsd,
        cell: (user) => <Money amount={user.limitMonthlyUsd} />,
      },
      {
        id: "rpm",
        header: t("people.rpm"),
        align: "right",
        hidden: true,
        value: (user) => user.rpm,
        cell: (user) => <Count value={user.rpm || null} />,
      },
      {
        id: "sessions",
        header: t("people.limitConcurrentSessions"),
        align: "right",
        hidden: true,
        value: (user) => user.limitConcurrentSessions,
        cell: (user) => <Count value={user.limitConcurrentSessions || null} />,
      },
      { id: "tags", header: t("people.tags"), cell: (user) => <Words list={user.tags} none="" /> },
      {
        id: "note",
        header: t("people.note"),
        cell: (user) => <span className="block max-w-72 truncate text-quiet">{user.note}</span>,
      },
      {
        id: "expires",
        header: t("people.expiresAt"),
        value: (user) => user.expiresAt,
        cell: (user) => <Time at={user.expiresAt} none={t("people.never")} />,
      },
      {
        id: "created",
        header: t("people.created"),
        hidden: true,
        value: (user) => user.createdAt,
        cell: (user) => <Time at={user.createdAt} />,
      },
    ],
    [t, now],
  );
}

const KEY_COLUMNS = (t: TFunction): Column<KeyRow>[] => [
  {
    id: "name",
    header: t("people.key"),
    value: ({ key }) => key.name.toLowerCase(),
    cell: ({ key }) => <span className="font-medium">{key.name}</span>,
  },
  { id: "user", header: t("people.user"), value: ({ user }) => user.name.toLowerCase(), cell: ({ user }) => user.name },
  { id: "text", header: t("people.keyText"), cell: ({ key }) => <span className="font-mono text-xs">{key.key}</span> },
  {
    id: "state",
    header: t("people.state"),
    value: ({ key }) => key.status,
    cell: ({ key }) => <StateBadge state={key.status as State} />,
  },
  {
    id: "groups",
    header: t("people.providerGroup"),
    cell: ({ key }) => <Words list={words(key.providerGroup)} none="default" />,
  },
  {
    id: "5h",
    header: t("people.limit5hUsd"),
    align: "right",
    value: ({ key }) => key.limit5hUsd,
    cell: ({ key }) => <Money amount={key.limit5hUsd} />,
  },
  {
    id: "daily",
    header: t("people.limitDailyUsd"),
    align: "right",
    value: ({ key }) => key.limitDailyUsd,
    cell: ({ key }) => <Money amount={key.limitDailyUsd} />,
  },
  {
    id: "weekly",
    header: t("people.limitWeeklyUsd"),
    align: "right",
    hidden: true,
    value: ({ key }) => key.limitWeeklyUsd,
    cell: ({ key }) => <Money amount={key.limitWeeklyUsd} />,
  },
  {
    id: "monthly",
    header: t("people.limitMonthlyUsd"),
    align: "right",
    hidden: true,
    value: ({ key }) => key.limitMonthlyUsd,
    cell: ({ key }) => <Money amount={key.limitMonthlyUsd} />,
  },
  {
    id: "login",
    header: t("people.canLoginWebUi"),
    hidden: true,
    cell: ({ key }) => (key.canLoginWebUi ? t("ui.yes") : t("ui.no")),
  },
  {
    id: "expires",
    header: t("people.expiresAt"),
    value: ({ key }) => key.expiresAt,
    cell: ({ key }) => <Time at={key.expiresAt} none={t("people.never")} />,
  },
  {
    id: "created",
    header: t("people.created"),
    hidden: true,
    value: ({ key }) => key.createdAt,
    cell: ({ key }) => <Time at={key.createdAt} />,
  },
];
