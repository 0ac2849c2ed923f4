/** The columns of users and of keys. */
import type { TFunction } from "i18next";
import { useMemo } from "react";
import { useTranslation } from "react-i18next";
import { words } from "@/parts/values";
import type { Column } from "@/ui/table";
import { Count, Money, Time } from "@/ui/text";
import { KeyBadge, StateBadge, Tightest, Words } from "./cells";
import { type Key, MONEY, type MoneyLimit, type User } from "./values";

/** A key and its user. */
export interface KeyRow {
  key: Key;
  user: User;
}

/** A column for each money limit; those in `shown` are visible by default. */
function limitColumns<T>(
  t: TFunction,
  of: (row: T) => Record<MoneyLimit, number | null | undefined>,
  shown: MoneyLimit[],
): Column<T>[] {
  return MONEY.map((name) => ({
    id: name,
    header: t(`people.${name}`),
    align: "right" as const,
    hidden: !shown.includes(name),
    value: (row) => of(row)[name],
    cell: (row) => <Money amount={of(row)[name]} />,
  }));
}

export function useUserColumns(): Column<User>[] {
  const { t } = useTranslation();
  return useMemo(
    () => [
      {
        id: "name",
        header: t("people.name"),
        className: "max-w-72 truncate max-sm:max-w-40",
        value: (user) => user.name.toLowerCase(),
        cell: (user) => (
          <span className="font-medium" title={user.name}>
            {user.name}
          </span>
        ),
      },
      {
        id: "state",
        header: t("people.state"),
        value: (user) => user.status,
        cell: (user) => <StateBadge state={user.status} />,
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
        cell: (user) => <Words list={words(user.providerGroup)} none="default" few />,
      },
      {
        id: "spent",
        header: t("people.tightest"),
        value: (user) => user.tightestLimit?.percent,
        cell: (user) => <Tightest limit={user.tightestLimit} />,
      },
      {
        id: "lastUsed",
        header: t("people.lastUsed"),
        value: (user) => user.lastUsedAt,
        cell: (user) => <Time at={user.lastUsedAt} none={t("people.neverUsed")} />,
      },
      ...limitColumns<User>(t, (user) => user, []),
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
      {
        id: "tags",
        header: t("people.tags"),
        cell: (user) => <Words list={user.tags} none="" few />,
      },
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
    [t],
  );
}

const keyColumns = (t: TFunction): Column<KeyRow>[] => [
  {
    id: "name",
    header: t("people.key"),
    className: "max-w-64 truncate max-sm:max-w-40",
    value: ({ key }) => key.name.toLowerCase(),
    cell: ({ key }) => (
      <span className="font-medium" title={key.name}>
        {key.name}
      </span>
    ),
  },
  {
    id: "user",
    header: t("people.user"),
    className: "max-w-56 truncate",
    value: ({ user }) => user.name.toLowerCase(),
    cell: ({ user }) => <span title={user.name}>{user.name}</span>,
  },
  {
    id: "text",
    header: t("people.keyText"),
    cell: ({ key }) => <span className="font-mono text-xs">{key.key}</span>,
  },
  {
    id: "state",
    header: t("people.state"),
    value: ({ key }) => key.effectiveStatus,
    cell: ({ key }) => <KeyBadge value={key} />,
  },
  {
    id: "groups",
    header: t("people.providerGroup"),
    cell: ({ key }) => <Words list={words(key.providerGroup)} none="default" few />,
  },
  {
    id: "spent",
    header: t("people.tightest"),
    value: ({ key }) => key.tightestLimit?.percent,
    cell: ({ key }) => <Tightest limit={key.tightestLimit} />,
  },
  {
    id: "lastUsed",
    header: t("people.lastUsed"),
    value: ({ key }) => key.lastUsedAt,
    cell: ({ key }) => <Time at={key.lastUsedAt} none={t("people.neverUsed")} />,
  },
  ...limitColumns<KeyRow>(t, ({ key }) => key, []),
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

export function useKeyColumns(): Column<KeyRow>[] {
  const { t } = useTranslation();
  return useMemo(() => keyColumns(t), [t]);
}
