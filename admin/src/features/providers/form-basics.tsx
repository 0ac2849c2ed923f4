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
  const [type, url, key, proxy, auth, authorities] = form.watch([
    "provider_type",
    "url",
    "key",
    "proxy_url",
    "auth",
    "tls_ca",
  ]);
  const elsewhere = moved(provider, url, proxy, auth, authorities);
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
      {isJson(auth) && (
        <LinesField
          {...field("key")}
          label={t(`providers.jsonKeys.${auth}.label`)}
          help={kept ?? t(`providers.jsonKeys.${auth}.help`)}
          control={{ className: "font-mono !text-xs", placeholder: JSON_KEYS[auth] }}
          className="sm:col-span-2"
        />
      )}
      {!sendsNone(auth) && !isJson(auth) && (
        <TextField
          {...field("key")}
          label={t(auth === "azure-entra" ? "providers.clientSecret" : "providers.fields.key")}
          help={auth === "azure-entra" && !kept ? t("providers.clientSecretHelp") : keyHelp}
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

/** Credentials that are entered as JSON, and how they begin. */
const JSON_KEYS = {
  "gcp-service-account": '{"type": "service_account", …}',
  "aws-sigv4": '{"access_key_id": "AKIA…", "secret_access_key": "…"}',
} as const;

const isJson = (auth: string): auth is keyof typeof JSON_KEYS => auth in JSON_KEYS;

/** The destination of the stored credential, as text. */
function host(url: string | undefined): string {
  try {
    return new URL(url ?? "").host;
  } catch {
    return url ?? "";
  }
}
