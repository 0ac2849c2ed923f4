/** The way to a provider: its proxy, and certificates of its own. For experts. */
import type { UseFormReturn } from "react-hook-form";
import { useTranslation } from "react-i18next";
import { LinesField, TextField } from "@/parts/fields";
import { Section } from "@/ui/field";
import { Time } from "@/ui/text";
import { useField } from "./form-sections";
import type { Provider } from "./selection";
import type { Values } from "./values";

interface Props {
  form: UseFormReturn<Values>;
  provider: Provider | undefined;
}

export function Way({ form, provider }: Props) {
  const { t } = useTranslation();
  const field = useField(form);
  const [url, certificate] = form.watch(["url", "tls_client_certificate"]);
  const isSecure = url.trim().toLowerCase().startsWith("https://");
  const control = { className: "font-mono !text-xs", placeholder: "-----BEGIN CERTIFICATE-----" };
  return (
    <Section title={t("providers.sections.way")} help={t("providers.sections.wayHelp")}>
      <TextField
        {...field("proxy_url")}
        control={{ placeholder: "socks5://user:password@proxy.example:1080", spellCheck: false }}
        className="sm:col-span-2"
      />
      {isSecure && (
        <>
          <LinesField {...field("tls_ca")} control={control} className="sm:col-span-2" />
          <LinesField
            {...field("tls_client_certificate")}
            control={control}
            className="sm:col-span-2"
          />
        </>
      )}
      {isSecure && certificate.trim() !== "" && (
        <LinesField
          {...field("tls_client_key")}
          help={provider?.tlsClientKey ? t("providers.tlsKeyKept") : field("tls_client_key").help}
          control={{ ...control, placeholder: "-----BEGIN PRIVATE KEY-----" }}
          className="sm:col-span-2"
        />
      )}
      {isSecure && <Certificates provider={provider} />}
    </Section>
  );
}

function Certificates({ provider }: { provider: Provider | undefined }) {
  const { t } = useTranslation();
  const all = provider?.certificates ?? [];
  if (all.length === 0) return null;
  return (
    <ul className="text-xs text-faint sm:col-span-2" data-testid="certificates">
      {all.map(({ field, subject, expiresAt }) => (
        <li key={`${field} ${subject} ${expiresAt}`}>
          {t("providers.certificate", { subject })} <Time at={expiresAt} relative={false} />
        </li>
      ))}
    </ul>
  );
}
