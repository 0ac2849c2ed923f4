/**
 * A new key, shown once, with settings for each client. Closing it without copying the key asks
 * first.
 */
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { clients, proxyBase } from "@/api/client-settings";
import { useExampleModel } from "@/parts/example-model";
import { useSession } from "@/parts/session";
import { Button } from "@/ui/button";
import { Code, CopyButton } from "@/ui/code";
import { cx } from "@/ui/cx";
import { Dialog } from "@/ui/dialog";
import { useDiscard } from "@/ui/discard";
import { Notice } from "@/ui/status";
import { Tabs } from "@/ui/tabs";

/** The only time that a key's text is shown. */
export function NewKey({
  text,
  name,
  onClose,
}: {
  text: string;
  name: string;
  onClose: () => void;
}) {
  const { t } = useTranslation();
  const { proxyPort, proxyTls } = useSession();
  const base = proxyBase(window.location, { port: proxyPort, tls: proxyTls });
  const [copied, setCopied] = useState(false);
  const { close, release } = useDiscard(!copied, onClose, {
    title: t("people.keyLostTitle"),
    body: t("people.keyLostBody", { name }),
    action: t("people.keyLost"),
  });
  const kept = () => {
    release(true);
    onClose();
  };
  const ready = clients({ base, key: text, model: useExampleModel() });
  return (
    <Dialog
      open
      onClose={close}
      title={t("people.keyCreated", { name })}
      width="max-w-2xl"
      footer={
        <>
          <Link to="/connect" className="mr-auto text-sm text-accent hover:underline">
            {t("people.connectClient")}
          </Link>
          <Button variant="primary" onClick={kept}>
            {t("people.keyKept")}
          </Button>
        </>
      }
    >
      <Notice tone="warn">{t("people.keyOnce")}</Notice>
      <div
        className={cx(
          "mt-4 flex items-center gap-2 rounded-lg border",
          "border-strong-line bg-sunken py-2 pr-2 pl-3",
        )}
      >
        <code
          data-testid="new-key"
          className="min-w-0 flex-1 font-mono text-sm break-all select-all"
        >
          {text}
        </code>
        <CopyButton text={text} full label={t("people.copyKey")} onCopied={() => setCopied(true)} />
      </div>
      <h3 className="mt-6 mb-2">{t("people.withIt")}</h3>
      <Tabs
        label={t("people.withIt")}
        tabs={ready.map(({ id, name: client, snippets }) => ({
          id,
          label: client,
          content: (
            <div className="space-y-3">
              {snippets.map(({ where, text: lines }) => (
                <Code key={where} label={where} text={lines} />
              ))}
            </div>
          ),
        }))}
      />
    </Dialog>
  );
}
