/** The key that signs messages: it can be set, but never read. */
import { KeyRound } from "lucide-react";
import type { UseFormRegisterReturn } from "react-hook-form";
import { useTranslation } from "react-i18next";
import { Button } from "@/ui/button";
import { CopyButton } from "@/ui/code";
import { useConfirm } from "@/ui/confirm";
import { Field, Input } from "@/ui/field";
import { Card } from "@/ui/page";
import { Badge } from "@/ui/status";
import { useToast } from "@/ui/toast";
import { useSaveNotifications } from "./api";
import { newSecret } from "./notify-values";

interface Props {
  isSet: boolean;
  /** The current input. */
  typed: string;
  input: UseFormRegisterReturn;
  error?: string;
  onGenerate: (secret: string) => void;
}

export function SecretCard({ isSet, typed, input, error, onGenerate }: Props) {
  const { t } = useTranslation();
  const confirm = useConfirm();
  const toast = useToast();
  const save = useSaveNotifications();
  const remove = async () => {
    const yes = await confirm({
      title: t("settings.notify.removeSecretTitle"),
      body: t("settings.notify.removeSecretBody"),
      action: t("settings.notify.removeSecret"),
    });
    if (!yes) return;
    save.mutate(
      { webhookSecret: null },
      {
        onSuccess: () => toast.good(t("settings.notify.secretRemoved")),
        onError: toast.failed,
      },
    );
  };
  return (
    <Card
      title={t("settings.notify.secret")}
      actions={
        isSet ? (
          <Badge tone="good">{t("settings.notify.signed")}</Badge>
        ) : (
          <Badge tone="plain">{t("settings.notify.unsigned")}</Badge>
        )
      }
    >
      <div className="flex flex-wrap items-start gap-2">
        <Field
          label={isSet ? t("settings.notify.newSecret") : t("settings.notify.secretLabel")}
          help={t("settings.notify.secretHelp")}
          error={error}
          className="flex-1 basis-64"
        >
          {(ids) => (
            <>
              <Input
                {...ids}
                autoComplete="off"
                spellCheck={false}
                className="pr-10 font-mono"
                placeholder={isSet ? t("settings.notify.secretKept") : undefined}
                {...input}
              />
              {typed !== "" && (
                <span className="absolute inset-y-0 right-1 flex items-center">
                  <CopyButton text={typed} />
                </span>
              )}
            </>
          )}
        </Field>
        <Button
          className="mt-6"
          icon={<KeyRound className="size-4" aria-hidden />}
          onClick={() => onGenerate(newSecret())}
        >
          {t("settings.notify.generate")}
        </Button>
        {isSet && (
          <Button
            className="mt-6"
            variant="ghost"
            busy={save.isPending}
            onClick={() => void remove()}
          >
            {t("settings.notify.removeSecret")}
          </Button>
        )}
      </div>
    </Card>
  );
}
