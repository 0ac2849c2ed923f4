/** The settings that connect each client to this gateway, to copy. */
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { type Client, clients, KEY_PLACE, proxyBase } from "@/api/client-settings";
import { whoami } from "@/api/queries";
import { useExampleModel } from "@/parts/example-model";
import { Code } from "@/ui/code";
import { cx } from "@/ui/cx";
import { Answer } from "@/ui/empty";
import { Field, Input } from "@/ui/field";
import { Card, Page } from "@/ui/page";
import { Notice, Tag } from "@/ui/status";
import { Tabs } from "@/ui/tabs";

const route = getRouteApi("/shell/connect");

export function ConnectPage() {
  const { t } = useTranslation();
  return (
    <Page title={t("nav.connect")} help={t("connect.help")}>
      <Answer of={useQuery(whoami)}>{(me) => <Settings me={me} />}</Answer>
    </Page>
  );
}

function Settings({ me }: { me: { proxyPort: number; proxyTls: boolean; readOnly: boolean } }) {
  const { t } = useTranslation();
  const { client: chosen } = route.useSearch();
  const navigate = route.useNavigate();
  const guess = proxyBase(window.location, { port: me.proxyPort, tls: me.proxyTls });
  const [base, setBase] = useState(guess);
  const [key, setKey] = useState("");
  const [model, setModel] = useState("");
  const address = base.trim().replace(/\/+$/, "") || guess;
  const example = useExampleModel();
  const shown = clients({
    base: address,
    key: key.trim() || KEY_PLACE,
    model: model.trim() || example,
  });
  const client = shown.find((one) => one.id === chosen) ?? shown[0];
  const id = client?.id;
  return (
    <div className="grid grid-cols-1 gap-4 lg:grid-cols-[20rem_minmax(0,1fr)]">
      <div className="space-y-4">
        <Card title={t("connect.yours")}>
          <div className="space-y-4">
            <Field label={t("connect.base")} help={t("connect.baseHelp")}>
              {(ids) => (
                <Input
                  {...ids}
                  value={base}
                  spellCheck={false}
                  onChange={(event) => setBase(event.target.value)}
                />
              )}
            </Field>
            <Field label={t("connect.key")} help={t("connect.keyHelp")} optional={t("ui.optional")}>
              {(ids) => (
                <Input
                  {...ids}
                  value={key}
                  placeholder={KEY_PLACE}
                  autoComplete="off"
                  spellCheck={false}
                  className="font-mono"
                  onChange={(event) => setKey(event.target.value)}
                />
              )}
            </Field>
            {!me.readOnly && (
              <Link
                to="/people"
                className="!mt-1 block text-xs text-accent underline underline-offset-2"
              >
                {t("connect.noKey")}
              </Link>
            )}
            <Field
              label={t("connect.model")}
              help={t("connect.modelHelp")}
              optional={t("ui.optional")}
            >
              {(ids) => (
                <Input
                  {...ids}
                  value={model}
                  placeholder={example(client?.format ?? "native")}
                  spellCheck={false}
                  onChange={(event) => setModel(event.target.value)}
                />
              )}
            </Field>
          </div>
        </Card>
        <nav aria-label={t("connect.clients")} className="card p-1.5">
          <ul className="grid grid-cols-2 gap-0.5 lg:grid-cols-1">
            {shown.map((one) => (
              <li key={one.id}>
                <button
                  type="button"
                  aria-current={one.id === id ? "true" : undefined}
                  onClick={() => void navigate({ search: { client: one.id }, replace: true })}
                  className={cx(
                    "flex h-9 w-full items-center justify-between",
                    "gap-2 rounded-md px-2.5 text-left text-sm",
                    one.id === id ? "bg-accent-soft font-medium text-accent" : "hover:bg-hover",
                  )}
                >
                  <span className="truncate">{one.name}</span>
                </button>
              </li>
            ))}
          </ul>
        </nav>
      </div>
      {client && (
        <Instructions key={client.id} client={client} tls={address.startsWith("https:")} />
      )}
    </div>
  );
}

function Instructions({ client, tls }: { client: Client; tls: boolean }) {
  const { t } = useTranslation();
  const tabbed = client.id === "curl" || client.id.endsWith("-sdk");
  return (
    <Card
      title={client.name}
      actions={
        client.id === "curl" ? undefined : <Tag title={t("connect.format")}>{client.format}</Tag>
      }
    >
      <p className="mb-4 text-sm text-quiet">{t(`connect.note.${client.id}`)}</p>
      {tabbed && client.snippets.length > 1 ? (
        <Tabs
          label={client.name}
          tabs={client.snippets.map(({ where, text }) => ({
            id: where,
            label: where,
            content: <Code label={where} text={text} />,
          }))}
        />
      ) : (
        <ol className="space-y-4">
          {client.snippets.map(({ where, text }) => (
            <li key={where}>
              <Code label={where === "shell" ? t("connect.shell") : where} text={text} />
            </li>
          ))}
        </ol>
      )}
      <div className="mt-4 space-y-2">
        {!tls && <Notice tone="warn">{t("connect.plain")}</Notice>}
        <p className="text-xs text-faint">{t("connect.after")}</p>
      </div>
    </Card>
  );
}
