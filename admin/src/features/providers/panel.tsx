/** One provider: its circuit with a reset, a test, and the use of its limits. */
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { CirclePlay, Copy, Pencil, RotateCcw } from "lucide-react";
import { useTranslation } from "react-i18next";
import { call } from "@/api/client";
import * as queries from "@/api/queries";
import { LimitUse } from "@/parts/limits";
import { ICON, RecordMenu } from "@/parts/record-menu";
import { Button, IconButton } from "@/ui/button";
import { useConfirm } from "@/ui/confirm";
import { Panel } from "@/ui/dialog";
import { Facts } from "@/ui/page";
import { Tag } from "@/ui/status";
import { Time } from "@/ui/text";
import { useToast } from "@/ui/toast";
import { HealthBadge } from "./health";
import { HistoryStrips } from "./history-strips";
import { Keys } from "./keys";
import type { Health, Provider } from "./selection";
import { ProviderState } from "./state";
import { Trial } from "./trial";

interface Props {
  provider: Provider;
  health: Health | undefined;
  onClose: () => void;
  onEdit: () => void;
  onCopy: () => void;
}

export function ProviderPanel({ provider, health, onClose, onEdit, onCopy }: Props) {
  const { t } = useTranslation();
  const cache = useQueryClient();
  const confirm = useConfirm();
  const used = useQuery(queries.providerLimits(provider.id));
  const toast = useToast();
  const change = useMutation({
    mutationFn: (work: () => Promise<unknown>) => work(),
    onSuccess: () => toast.good(t("ui.saved")),
    onError: toast.failed,
    onSettled: () =>
      Promise.all(
        [queries.keys.providers, queries.keys.health].map((queryKey) =>
          cache.invalidateQueries({ queryKey }),
        ),
      ),
  });
  const toggle = async () => {
    const question = {
      title: t("providers.disableTitle", { name: provider.name }),
      body: t("providers.disableBody"),
      action: t("providers.disable"),
    };
    if (provider.isEnabled && !(await confirm(question))) return;
    change.mutate(() =>
      call("actions/providers/editProvider", {
        providerId: provider.id,
        is_enabled: !provider.isEnabled,
      }),
    );
  };
  const remove = async () => {
    const question = {
      title: t("providers.removeTitle", { name: provider.name }),
      body: t("providers.removeBody"),
      action: t("providers.remove"),
    };
    if (!(await confirm(question))) return;
    change.mutate(() => call("actions/providers/removeProvider", { providerId: provider.id }), {
      onSuccess: onClose,
    });
  };
  const troubled =
    health !== undefined &&
    (health.state === "OPEN" ||
      health.failureCount > 0 ||
      health.failedInARow > 0 ||
      !!health.cooldownUntil ||
      health.credentials?.some((key) => key.cooldownUntil));
  return (
    <Panel
      open
      onClose={onClose}
      title={provider.name}
      description={provider.note || provider.url}
      extra={
        <>
          <IconButton
            size="sm"
            label={t("ui.edit")}
            icon={<Pencil className="size-4" aria-hidden />}
            onClick={onEdit}
          />
          <RecordMenu
            label={t("ui.more")}
            isEnabled={provider.isEnabled}
            onToggle={() => void toggle()}
            after={[
              {
                label: t("providers.copy"),
                icon: <Copy className={ICON} aria-hidden />,
                onSelect: onCopy,
              },
            ]}
            removal={t("providers.remove")}
            onRemove={() => void remove()}
          />
        </>
      }
    >
      <div className="space-y-6">
        <section className="space-y-3">
          <div className="flex flex-wrap items-center gap-2">
            <HealthBadge provider={provider} health={health} />
            <span className="flex-1" />
            {!provider.isEnabled && provider.switchedOff && (
              <Button
                size="sm"
                icon={<CirclePlay className="size-3.5" aria-hidden />}
                busy={change.isPending}
                onClick={() => void toggle()}
              >
                {t("providers.enable")}
              </Button>
            )}
            <Button
              size="sm"
              icon={<RotateCcw className="size-3.5" aria-hidden />}
              disabled={!troubled}
              busy={change.isPending}
              onClick={() =>
                change.mutate(() =>
                  call("actions/providers/resetProviderCircuit", { providerId: provider.id }),
                )
              }
            >
              {t("providers.reset")}
            </Button>
          </div>
          <ProviderState provider={provider} health={health} />
          <Trial asked={() => ({ providerId: provider.id })} />
          <ProviderFacts provider={provider} health={health} />
        </section>
        <Keys
          provider={provider}
          health={health}
          busy={change.isPending}
          onEnable={(fields) =>
            change.mutate(() =>
              call("actions/providers/editProvider", { providerId: provider.id, ...fields }),
            )
          }
        />
        <HistoryStrips providerId={provider.id} />
        <section>
          <h3 className="mb-2">{t("providers.used")}</h3>
          <LimitUse asked={used} />
        </section>
      </div>
    </Panel>
  );
}

function ProviderFacts({ provider, health }: Pick<Props, "provider" | "health">) {
  const { t } = useTranslation();
  const keys = health?.credentials ?? [];
  const models = provider.allowedModels.map((model) => (
    <Tag key={model} whole>
      {model}
    </Tag>
  ));
  return (
    <Facts
      facts={[
        [
          t("providers.fields.provider_type"),
          t(`providers.types.${provider.providerType as "native"}`),
        ],
        [
          t("providers.fields.url"),
          <span key="url" className="font-mono text-xs">
            {provider.url}
          </span>,
        ],
        [
          t("providers.fields.key"),
          <span key="key" className="font-mono text-xs">
            {provider.key}
            {keys.length === 1 && (
              <span className="font-sans text-quiet">
                {" · "}
                {t("providers.keys.lastUsed")}{" "}
                <Time at={keys[0]?.lastUsedAt} none={t("providers.keys.never")} />
              </span>
            )}
          </span>,
        ],
        [
          t("providers.fields.allowed_models"),
          models.length === 0 ? (
            t("providers.everyModel")
          ) : (
            <span key="models" className="flex flex-wrap gap-1">
              {models}
            </span>
          ),
        ],
        [t("providers.fields.cost_multiplier"), `× ${provider.costMultiplier}`],
      ]}
    />
  );
}
