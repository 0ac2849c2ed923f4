import { Pencil, Plus } from "lucide-react";
import type { ReactNode } from "react";
import { useTranslation } from "react-i18next";
import { RecordMenu } from "@/parts/record-menu";
import { useIsAdmin } from "@/parts/session";
import { words } from "@/parts/values";
import { Button, IconButton } from "@/ui/button";
import { Panel } from "@/ui/dialog";
import { Facts } from "@/ui/page";
import { Time } from "@/ui/text";
import { usePeopleActions } from "./actions";
import { StateBadge, Words } from "./cells";
import { UserUsage } from "./usage";
import { Keys } from "./user-keys";
import type { Key, User } from "./values";

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
  const actions = usePeopleActions();
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
            <RecordMenu
              label={t("ui.more")}
              isEnabled={user.isEnabled}
              onToggle={() => void actions.setUser(user, !user.isEnabled)}
              removal={t("people.removeUser")}
              onRemove={() => void actions.removeUser(user).then((done) => done && onClose())}
            />
          </>
        )
      }
    >
      <div className="space-y-6">
        <Facts
          facts={[
            [t("people.state"), <StateBadge key="state" state={user.status} />],
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
