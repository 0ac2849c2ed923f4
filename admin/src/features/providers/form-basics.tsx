/** The first section of a provider's form: where requests go, and a test of it. */
import type { UseFormReturn } from "react-hook-form";
import { useTranslation } from "react-i18next";
import { LinesField, SelectField, TextField } from "@/parts/fields";
import { Section, Switch } from "@/ui/field";
import { Notice } from "@/ui/status";
import type { Asked } from "./api";
import { moved } from "./destination";
import { useField } from "./form-sections";
import type { Provider } from "./selection";
import { Trial } from "./trial";
import { AUTHS, sendsNone, TYPES, type Values } from "./values";
import { VendorField } from "./vendor-field";

/** An example address of each format. */
const PLACES: Record<(typeof TYPES)[number], string> = {
  native: "api.anthropic.com",
  "native-auth": "llm.example.com",
  responses: "api.openai.com",
  "chat-compatible": "api.openai.com",
  "alt-cli": "generativelanguage.googleapis.com",
};

interface Props {
  form: UseFormReturn<Values>;
  provider: Provider | undefined;
  /** A new provider that is a copy of another one. */
  isCopy: boolean;
  test: { asked: () => Asked; onFault: (error: unknown) => boolean };
}

export function Basics({ form, provider, isCopy, test }: Props) {
  const { t } = useTranslation();
  const field = useField(form);
  const [type, url, key, proxy, auth] = form.watch([
    "provider_type",
    "url",
    "key",
    "proxy_url",
    "auth",
  ]);
  const elsewhere = moved(provider, url, proxy, auth);
  const kept = provider && !elsewhere ? t("providers.keyKept", { key: provider.key }) : undefined;
  const keyHelp = provider ? kept : t(isCopy ? "providers.keyOfCopy" : "providers.keyHelp");
  const keyAgain = t(elsewhere ? "providers.keyAgain" : "providers.keyUnchanged");
  return (
    <Section title={t("providers.sections.basics")}>
      {!provider && <VendorField form={form} />}
      <TextField {...field("name")} control={{ autoFocus: !provider }} className="sm:col-span-2" />
      <SelectField
        {...field("provider_type")}
        choices={TYPES.map((value) => ({ value, label: t(`providers.kinds.${value}`) }))}
        className="sm:col-span-2"
      />
      <TextField
        {...field("url")}
        control={{
          type: "url",
          placeholder: `https://${PLACES[type as "native"]}`,
          spellCheck: false,
        }}
        className="sm:col-span-2"
      />
      <SelectField
        {...field("auth")}
        choices={AUTHS.map((value) => ({ value, label: t(`providers.auths.${value}`) }))}
        className="sm:col-span-2"
      />
      {auth === "client" && (
        <div className="sm:col-span-2">
          <Notice tone="plain">{t("providers.ownCredential")}</Notice>
        </div>
      )}
      {auth === "azure-entra" && (
        <>
          <TextField {...field("entra_tenant")} mono />
          <TextField {...field("entra_client")} mono />
        </>
      )}
      {auth === "gcp-service-account" && (
        <LinesField
          {...field("key")}
          label={t("providers.keyFile")}
          help={kept ?? t("providers.keyFileHelp")}
          control={{
            className: "font-mono !text-xs",
            placeholder: '{"type": "service_account", …}',
          }}
          className="sm:col-span-2"
        />
      )}
      {!sendsNone(auth) && auth !== "gcp-service-account" && (
        <TextField
          {...field("key")}
          label={t(auth === "azure-entra" ? "providers.clientSecret" : "providers.fields.key")}
          help={keyHelp}
          mono
          control={{
            type: "password",
            autoComplete: "new-password",
            placeholder: provider && keyAgain,
          }}
          className="sm:col-span-2"
        />
      )}
      {elsewhere && key === "" && !sendsNone(auth) && (
        <div className="sm:col-span-2" data-testid="key-wanted">
          <Notice tone="warn">
            {t(`providers.keyMoved.${elsewhere}`, { host: host(provider?.url) })}
          </Notice>
        </div>
      )}
      <div className="sm:col-span-2">
        <Trial {...test} />
        <p className="mt-1 text-xs text-faint">{t("providers.testHelp")}</p>
      </div>
      <Switch label={t("providers.fields.is_enabled")} {...form.register("is_enabled")} />
    </Section>
  );
}

/** The destination of the stored credential, as text. */
function host(url: string | undefined): string {
  try {
    return new URL(url ?? "").host;
  } catch {
    return url ?? "";
  }
}
