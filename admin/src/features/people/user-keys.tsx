/** The keys of one user, each with its use. */
import { useQuery } from "@tanstack/react-query";
import { CalendarClock, ChevronDown, Pencil } from "lucide-react";
import { useTranslation } from "react-i18next";
import type { DataOf } from "@/api/client";
import * as queries from "@/api/queries";
import { ICON, RecordMenu } from "@/parts/record-menu";
import { words } from "@/parts/values";
import { cx } from "@/ui/cx";
import { Facts } from "@/ui/page";
import { Count, Money, Time } from "@/ui/text";
import { usePeopleActions } from "./actions";
import { KeyBadge, Words } from "./cells";
import { KeyUsage } from "./usage";
import type { Key, User } from "./values";

interface Props {
  user: User;
  /** The key whose details are open. */
  openKey: number | undefined;
  onOpenKey: (id: number | undefined) => void;
  onEditKey: (key: Key) => void;
  onRenew: (key: Key) => void;
}

export function Keys({ user, openKey, onOpenKey, ...on }: Props) {
  const { data: statistics } = useQuery(queries.keyStatistics(user.id));
  return (
    <ul className="space-y-2">
      {user.keys.map((key) => (
        <KeyCard
          key={key.id}
          value={key}
          used={statistics?.find((one) => one.keyId === key.id)}
          open={openKey === key.id}
          onToggle={() => onOpenKey(openKey === key.id ? undefined : key.id)}
          {...on}
        />
      ))}
    </ul>
  );
}

type Used = DataOf<"actions/keys/getKeysWithStatistics">[number];

function KeyCard({
  value,
  used,
  open,
  onToggle,
  onEditKey,
  onRenew,
}: {
  value: Key;
  used: Used | undefined;
  open: boolean;
  onToggle: () => void;
} & Pick<Props, "onEditKey" | "onRenew">) {
  const { t } = useTranslation();
  const actions = usePeopleActions();
  return (
    <li className="card">
      <div className="flex items-center gap-1 py-1.5 pr-1.5 pl-3">
        <button
          type="button"
          aria-expanded={open}
          className="flex min-w-0 flex-1 items-center gap-2 py-1 text-left"
          onClick={onToggle}
        >
          <ChevronDown
            className={cx("size-4 shrink-0 text-faint transition-transform", !open && "-rotate-90")}
            aria-hidden
          />
          <span className="min-w-0 flex-1">
            <span className="block truncate font-medium">{value.name}</span>
            <span className="block truncate font-mono text-xs text-faint">{value.key}</span>
          </span>
          <KeyBadge value={value} />
          <span className="w-16 shrink-0 text-right text-xs text-quiet">
            <Money amount={used?.todayCost} />
          </span>
        </button>
        <RecordMenu
          label={t("people.actionsOf", { name: value.name })}
          before={[
            {
              label: t("ui.edit"),
              icon: <Pencil className={ICON} aria-hidden />,
              onSelect: () => onEditKey(value),
            },
            {
              label: t("people.renew"),
              icon: <CalendarClock className={ICON} aria-hidden />,
              onSelect: () => onRenew(value),
            },
          ]}
          isEnabled={value.isEnabled}
          onToggle={() => void actions.setKey(value, !value.isEnabled)}
          removal={t("people.removeKey")}
          onRemove={() => void actions.removeKey(value)}
        />
      </div>
      {open && <KeyDetails value={value} used={used} />}
    </li>
  );
}

function KeyDetails({ value, used }: { value: Key; used: Used | undefined }) {
  const { t } = useTranslation();
  return (
    <div className="space-y-4 border-t border-line p-3">
      <Facts
        facts={[
          [t("people.today"), <Today key="today" own={used} />],
          [t("people.totalCost"), <Money key="total" amount={used?.totalCost} />],
          [
            t("people.lastUsed"),
            <span key="last">
              <Time at={used?.lastUsedAt} none={t("people.never")} />
              {used?.lastProviderName && ` · ${used.lastProviderName}`}
            </span>,
          ],
          [
            t("people.providerGroup"),
            <Words key="groups" list={words(value.providerGroup)} none="default" />,
          ],
          [t("people.canLoginWebUi"), value.canLoginWebUi ? t("ui.yes") : t("people.ownUsageOnly")],
          [
            t("people.expiresAt"),
            <Time key="expires" at={value.expiresAt} none={t("people.never")} />,
          ],
        ]}
      />
      <KeyUsage keyId={value.id} />
      {used && used.modelStats.length > 0 && (
        <table className="w-full text-xs">
          <thead className="text-left text-faint">
            <tr>
              <th className="py-1 font-medium">{t("people.modelToday")}</th>
              <th className="py-1 text-right font-medium">{t("people.requests")}</th>
              <th className="py-1 text-right font-medium">{t("people.cost")}</th>
            </tr>
          </thead>
          <tbody>
            {used.modelStats.map((model) => (
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
  );
}

function Today({ own }: { own: Used | undefined }) {
  const { t } = useTranslation();
  if (!own) return <span className="text-faint">—</span>;
  return (
    <span>
      <Money amount={own.todayCost} /> · {t("people.requestsCount", { count: own.todayCallCount })}{" "}
      · <Count value={own.todayTokens} short /> {t("people.tokens")}
    </span>
  );
}
