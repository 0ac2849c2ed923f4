/** The reply as it arrives: its status and times, its text, its events, its headers. */
import { LoaderCircle } from "lucide-react";
import { useMemo } from "react";
import { useTranslation } from "react-i18next";
import { Code, CopyButton, Id } from "@/ui/code";
import { Failed } from "@/ui/empty";
import { duration, useFormat } from "@/ui/format";
import { Card, Facts } from "@/ui/page";
import { Badge, Notice } from "@/ui/status";
import { Tabs } from "@/ui/tabs";
import { Duration } from "@/ui/text";
import { pretty, type Reply } from "./reply";
import { isRunning, type Run } from "./run";

export function Answer({ run }: { run: Run }) {
  const { t } = useTranslation();
  return (
    <Card title={t("playground.answer")}>
      <div className="space-y-3">
        <Status run={run} />
        {run.error !== undefined && <Failed error={run.error} />}
        {run.broken !== undefined && <Notice tone="bad">{t("playground.broken")}</Notice>}
        {run.state === "failed" && run.error === undefined && (
          <Notice tone="bad">{t("playground.lost")}</Notice>
        )}
        {run.reply.fault && (
          <Notice tone="bad" title={run.reply.fault.message}>
            {run.reply.fault.kind && (
              <span className="font-mono text-xs">{run.reply.fault.kind}</span>
            )}
          </Notice>
        )}
        {run.status !== undefined && (
          <Tabs
            label={t("playground.answer")}
            tabs={[
              { id: "text", label: t("playground.text"), content: <Text run={run} /> },
              {
                id: "events",
                label: t("playground.events"),
                content: <Events reply={run.reply} />,
              },
              { id: "headers", label: t("playground.headers"), content: <Headers run={run} /> },
            ]}
          />
        )}
      </div>
    </Card>
  );
}

function Status({ run }: { run: Run }) {
  const { t } = useTranslation();
  const good = run.status !== undefined && run.status < 400;
  return (
    <div className="flex flex-wrap items-center gap-x-3 gap-y-2 text-sm" role="status">
      {run.status !== undefined && <Badge tone={good ? "good" : "bad"}>{run.status}</Badge>}
      <span className="inline-flex items-center gap-1.5">
        {isRunning(run) && <LoaderCircle className="size-3.5 animate-spin" aria-hidden />}
        {t(`playground.states.${run.state}`)}
      </span>
      {run.firstByteMs !== undefined && (
        <span className="text-quiet">
          {t("playground.firstByte")} <Duration ms={run.firstByteMs} />
        </span>
      )}
      {run.totalMs !== undefined && (
        <span className="text-quiet">
          {t("playground.total")} <Duration ms={run.totalMs} />
        </span>
      )}
      {run.requestId !== undefined && (
        <span className="min-w-0 text-quiet">
          <Id value={run.requestId} />
        </span>
      )}
    </div>
  );
}

function Text({ run }: { run: Run }) {
  const { t } = useTranslation();
  const { text, fault, images, bytes } = run.reply;
  if (images.length > 0) return <Images addresses={images} />;
  if (bytes.length > 0) return <Sound run={run} />;
  if (text === "") {
    if (isRunning(run)) return <p className="text-sm text-quiet">{t("playground.nothingYet")}</p>;
    return (
      <p className="text-sm text-quiet">
        {fault ? t("playground.faultOnly") : t("playground.noText")}
      </p>
    );
  }
  return (
    <div className="relative rounded-lg border border-line bg-sunken p-3 pr-10 text-sm leading-6">
      <div className="absolute top-1 right-1">
        <CopyButton text={text} />
      </div>
      <p className="max-h-[32rem] overflow-y-auto break-words whitespace-pre-wrap" data-answer>
        {text}
      </p>
    </div>
  );
}

function Images({ addresses }: { addresses: string[] }) {
  const { t } = useTranslation();
  return (
    <ul className="flex flex-wrap gap-3">
      {addresses.map((address, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: images are only added
        <li key={index}>
          {address.startsWith("data:") ? (
            <img
              src={address}
              alt={t("playground.image", { number: index + 1 })}
              className="max-h-96 max-w-full rounded-lg border border-line"
            />
          ) : (
            // Of another origin: this page loads nothing from there by itself.
            <a href={address} target="_blank" rel="noreferrer" className="text-sm underline">
              {t("playground.image", { number: index + 1 })}
            </a>
          )}
        </li>
      ))}
    </ul>
  );
}

/** A reply of sound, when all of it has come. */
function Sound({ run }: { run: Run }) {
  const { t } = useTranslation();
  const kind = run.headers.find(({ name }) => name === "content-type")?.value ?? "audio/mpeg";
  const address = useMemo(
    () => (isRunning(run) ? "" : `data:${kind.split(";")[0]};base64,${joined(run.reply.bytes)}`),
    [run, kind],
  );
  if (address === "") return <p className="text-sm text-quiet">{t("playground.states.coming")}</p>;
  // biome-ignore lint/a11y/useMediaCaption: it is made from the text beside it
  return <audio controls src={address} aria-label={t("playground.sound")} className="w-full" />;
}

/** Pieces of base64 as one: each has its own padding. */
const joined = (pieces: string[]) => btoa(pieces.map((piece) => atob(piece)).join(""));

function Events({ reply }: { reply: Reply }) {
  const { t } = useTranslation();
  const format = useFormat();
  if (reply.events.length === 0) {
    if (reply.body === "")
      return <p className="text-sm text-quiet">{t("playground.nothingYet")}</p>;
    return <Code label={t("playground.wholeBody")} text={pretty(reply.body)} />;
  }
  return (
    <div className="space-y-2">
      {reply.dropped > 0 && (
        <p className="text-xs text-faint">{t("playground.dropped", { number: reply.dropped })}</p>
      )}
      <div className="flex justify-end">
        <CopyButton text={reply.body} label={t("playground.copyBody")} full />
      </div>
      <ol
        // biome-ignore lint/a11y/noNoninteractiveTabindex: the list scrolls, also by keyboard
        tabIndex={0}
        className="max-h-[32rem] divide-y divide-line overflow-y-auto rounded-lg border border-line"
      >
        {reply.events.map((event, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: events are only added
          <li key={index} className="flex gap-3 px-3 py-1.5 font-mono text-xs">
            <span className="tabular w-16 shrink-0 text-right text-faint">
              +{duration(event.atMs, format)}
            </span>
            <span className="min-w-0 break-all">
              {event.name && <span className="mr-2 font-medium">{event.name}</span>}
              <span className="text-quiet">{event.data}</span>
            </span>
          </li>
        ))}
      </ol>
    </div>
  );
}

function Headers({ run }: { run: Run }) {
  return (
    <Facts
      facts={run.headers.map(({ name, value }) => [
        <span key={name} className="font-mono text-xs">
          {name}
        </span>,
        <span key={`${name} `} className="font-mono text-xs break-all">
          {value}
        </span>,
      ])}
    />
  );
}
