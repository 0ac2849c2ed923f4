/** A webhook's address with a button that sends a test message to it, saved or not. */
import { Send } from "lucide-react";
import type { UseFormRegisterReturn } from "react-hook-form";
import { useTranslation } from "react-i18next";
import { ApiError } from "@/api/client";
import { Button } from "@/ui/button";
import { Field, Input } from "@/ui/field";
import { Notice } from "@/ui/status";
import { useTestWebhook } from "./api";

interface Props {
  /** The current input. */
  address: string;
  input: UseFormRegisterReturn;
  error?: string;
}

export function Webhook({ address, input, error }: Props) {
  const { t } = useTranslation();
  const test = useTestWebhook();
  // The result belongs to the tested address.
  const current = test.variables === address.trim();
  const failed = current && test.error ? test.error : undefined;
  const atField =
    failed instanceof ApiError && failed.field !== undefined ? failed.atField : undefined;
  return (
    <div className="space-y-2">
      <div className="flex items-start gap-2">
        <Field
          label={t("settings.notify.webhook")}
          help={t("settings.notify.webhookHelp")}
          error={error ?? atField}
          className="flex-1"
        >
          {(ids) => (
            <Input
              {...ids}
              type="url"
              autoComplete="off"
              spellCheck={false}
              placeholder="https://hooks.example.com/…"
              {...input}
            />
          )}
        </Field>
        <Button
          className="mt-6"
          icon={<Send className="size-4" aria-hidden />}
          busy={test.isPending}
          disabled={address.trim() === ""}
          onClick={() => test.mutate(address.trim())}
        >
          {t("settings.notify.test")}
        </Button>
      </div>
      {current && test.isSuccess && (
        <Notice tone="good">
          {t("settings.notify.delivered", { status: test.data.status, ms: test.data.latencyMs })}
        </Notice>
      )}
      {failed && atField === undefined && (
        <Notice tone="bad" title={t("settings.notify.notDelivered")}>
          {failed.message || t("ui.noConnection")}
        </Notice>
      )}
    </div>
  );
}
