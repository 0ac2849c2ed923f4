/** One user: the use of the limits, and the keys, each with its own use. */
import { useQuery } from "@tanstack/react-query";
import {
  CalendarClock,
  ChevronDown,
  CirclePause,
  CirclePlay,
  MoreHorizontal,
  Pencil,
  Plus,
  Trash2,
} from "lucide-react";
import type { ReactNode } from "react";
import { useTranslation } from "react-i18next";
import * as queries from "@/api/queries";
import { useIsAdmin } from "@/parts/session";
import { Button, IconButton } from "@/ui/button";
import { cx } from "@/ui/cx";
import { Panel } from "@/ui/dialog";
import { Menu } from "@/ui/menu";
import { Facts } from "@/ui/page";
import { Count, Money, Time, useNow } from "@/ui/text";
import { usePeopleActions } from "./actions";
import { KeyBadge, StateBadge, Words } from "./cells";
import { KeyUsage, UserUsage } from "./usage";
import { type Key, type User, userState, words } from "./values";

interface Props {
  user: User;
  /** The key whose details are open. */
  openKey: number | undefined;
  onOpenKey: (id: number | undefined) => void;
  onClose: () => void;
  onEdit: () => void;
  onAddKey: () => void;
  onEditKey: (key: Key) => void;
  onRenew: (key: Key) => void;
}

export function UserPanel({
  user,
  openKey,
  onOpenKey,
  onClose,
  onEdit,
  onAddKey,
  onEditKey,
  onRenew,
}: Props) {
  const { t } = useTranslation();
  const admin = useIsAdmin();
  const now = useNow();
  const actions = usePeopleActions();
  const icon = "size-4 text-faint";
  return (
    <Panel
      open
      onClose={onClose}
      title={user.name}
      description={user.note || undefined}
      extra={
        admin && (
          <>
            <IconButton
              size="sm"
              label={t("ui.edit")}
              icon={<Pencil className="size-4" aria-hidden />}
              onClick={onEdit}
            />
            <Menu
              trigger={
                <IconButton
                  size="sm"
                  label={t("ui.more")}
                  icon={<MoreHorizontal className="size-4" aria-hidden />}
                />
              }
              actions={[
                user.isEnabled
                  ? {
                      label: t("people.disable"),
                      icon: <CirclePause className={icon} aria-hidden />,
                      onSelect: () => void actions.setUser(user, false),
                    }
                  : {
                      label: t("people.enable"),
                      icon: <CirclePlay className={icon} aria-hidden />,
                      onSelect: () => void actions.setUser(user, true),
                    },
                "line",
                {
                  label: t("people.removeUser"),
                  icon: <Trash2 className="size-4" aria-hidden />,
                  danger: true,
                  onSelect: () => void actions.removeUser(user).then((done) => done && onClose()),
                },
              ]}
            />
          </>
        )
      }
    >
      <div className="space-y-6">
        <Facts
          facts={[
            [t("people.state"), <StateBadge key="state" state={userState(user, now)} />],
            [t("people.role"), t(`role.${user.role === "admin" ? "admin" : "user"}`)],
            [
              t("people.providerGroup"),
              <Words key="groups" list={words(user.providerGroup)} none="default" />,
            ],
            [
              t("people.allowedModels"),
              <Words key="models" list={user.allowedModels} none={t("people.everyModel")} />,
            ],
            ...(user.deniedFeatures.length > 0
              ? [
                  [
                    t("features.denied"),
                    <Words key="denied" list={user.deniedFeatures} none="" />,
                  ] as [string, ReactNode],
                ]
              : []),
            [
              t("people.expiresAt"),
              <Time key="expires" at={user.expiresAt} none={t("people.never")} />,
            ],
            ...(user.tags.length > 0
              ? [
                  [t("people.tags"), <Words key="tags" list={user.tags} none="" />] as [
                    string,
                    ReactNode,
                  ],
                ]
              : []),
          ]}
        />
        <section>
          <h3 className="mb-2">{t("people.used")}</h3>
          <UserUsage userId={user.id} />
        </section>
        <section>
          <div className="mb-2 flex items-center gap-2">
            <h3 className="flex-1">{t("people.keys")}</h3>
            <Button size="sm" icon={<Plus className="size-3.5" aria-hidden />} onClick={onAddKey}>
              {t("people.addKey")}
            </Button>
          </div>
          <Keys
            user={user}
            openKey={openKey}
            onOpenKey={onOpenKey}
            onEditKey={onEditKey}
            onRenew={onRenew}
          />
        </section>
      </div>
    </Panel>
  );
}

function Keys({
  user,
  openKey,
  onOpenKey,
  onEditKey,
  onRenew,
}: Pick<Props, "user" | "openKey" | "onOpenKey" | "onEditKey" | "onRenew">) {
  const { t } = useTranslation();
  const actions = usePeopleActions();
  const { data: statistics } = useQuery(queries.keyStatistics(user.id));
  const now = useNow();
  const icon = "size-4 text-faint";
  return (
    <ul className="space-y-2">
      {user.keys.map((key) => {
        const own = statistics?.find((one) => one.keyId === key.id);
        const open = openKey === key.id;
        return (
          <li key={key.id} className="card">
            <div className="flex items-center gap-1 py-1.5 pr-1.5 pl-3">
              <button
                type="button"
                aria-expanded={open}
                className="flex min-w-0 flex-1 items-center gap-2 py-1 text-left"
                onClick={() => onOpenKey(open ? undefined : key.id)}
              >
                <ChevronDown
                  className={cx(
                    "size-4 shrink-0 text-faint transition-transform",
                    !open && "-rotate-90",
                  )}
                  aria-hidden
                />
                <span className="min-w-0 flex-1">
                  <span className="block truncate font-medium">{key.name}</span>
                  <span className="block truncate font-mono text-xs text-faint">{key.key}</span>
                </span>
                <KeyBadge value={key} user={user} now={now} />
                <span className="w-16 shrink-0 text-right text-xs text-quiet">
                  <Money amount={own?.todayCost} />
                </span>
              </button>
              <Menu
                trigger={
                  <IconButton
                    size="sm"
                    label={t("people.actionsOf", { name: key.name })}
                    icon={<MoreHorizontal className="size-4" aria-hidden />}
                  />
                }
                actions={[
                  {
                    label: t("ui.edit"),
                    icon: <Pencil className={icon} aria-hidden />,
                    onSelect: () => onEditKey(key),
                  },
                  {
                    label: t("people.renew"),
                    icon: <CalendarClock className={icon} aria-hidden />,
                    onSelect: () => onRenew(key),
                  },
                  key.isEnabled
                    ? {
                        label: t("people.disable"),
                        icon: <CirclePause className={icon} aria-hidden />,
                        onSelect: () => void actions.setKey(key, false),
                      }
                    : {
                        label: t("people.enable"),
                        icon: <CirclePlay className={icon} aria-hidden />,
                        onSelect: () => void actions.setKey(key, true),
                      },
                  "line",
                  {
                    label: t("people.removeKey"),
                    icon: <Trash2 className="size-4" aria-hidden />,
                    danger: true,
                    onSelect: () => void actions.removeKey(key),
                  },
                ]}
              />
            </div>
            {open && (
              <div className="space-y-4 border-t border-line p-3">
                <Facts
                  facts={[
                    [t("people.today"), <Today key="today" own={own} />],
                    [t("people.totalCost"), <Money key="total" amount={own?.totalCost} />],
                    [
                      t("people.lastUsed"),
                      <span key="last">
                        <Time at={own?.lastUsedAt} none={t("people.never")} />
                        {own?.lastProviderName && ` · ${own.lastProviderName}`}
                      </span>,
                    ],
                    [
                      t("people.providerGroup"),
                      <Words key="groups" list={words(key.providerGroup)} none="default" />,
                    ],
                    [
                      t("people.canLoginWebUi"),
                      key.canLoginWebUi ? t("ui.yes") : t("people.ownUsageOnly"),
                    ],
                    [
                      t("people.expiresAt"),
                      <Time key="expires" at={key.expiresAt} none={t("people.never")} />,
                    ],
                  ]}
                />
                <KeyUsage keyId={key.id} />
                {own && own.modelStats.length > 0 && (
                  <table className="w-full text-xs">
                    <thead className="text-left text-faint">
                      <tr>
                        <th className="py-1 font-medium">{t("people.modelToday")}</th>
                        <th className="py-1 text-right font-medium">{t("people.requests")}</th>
                        <th className="py-1 text-right font-medium">{t("people.cost")}</th>
                      </tr>
                    </thead>
                    <tbody>
                      {own.modelStats.map((model) => (
                        <tr key={model.model} className="border-t border-line">
                          <td className="max-w-0 truncate py-1">{model.model}</td>
                          <td className="py-1 text-right">
                            <Count value={model.callCount} />
                          </td>
                          <td className="py-1 text-right">
                            <Money amount={model.totalCost} />
                          </td>
                        </tr>
                      ))}
                    </tbody>
                  </table>
                )}
              </div>
            )}
          </li>
        );
      })}
    </ul>
  );
}

function Today({
  own,
}: {
  own: { todayCallCount: number; todayTokens: number; todayCost: number } | undefined;
}) {
  const { t } = useTranslation();
  if (!own) return <span className="text-faint">—</span>;
  return (
    <span>
      <Money amount={own.todayCost} /> · {t("people.requestsCount", { count: own.todayCallCount })}{" "}
      · <Count value={own.todayTokens} short /> {t("people.tokens")}
    </span>
  );
}
