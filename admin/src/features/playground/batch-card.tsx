/** A batch that was made here: its state until it ends, then its results. */
import { useQuery } from "@tanstack/react-query";
import { CircleX, LoaderCircle } from "lucide-react";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { type BodyOf, callLines, type Schemas } from "@/api/client";
import { Button } from "@/ui/button";
import { Id } from "@/ui/code";
import { Failed } from "@/ui/empty";
import { Card } from "@/ui/page";
import { Badge, Notice } from "@/ui/status";
import { type Batch, type BatchEndpoint, batchOf, resultsOf } from "./batch";

/** Milliseconds between two looks. */
const EVERY = 2_000;

interface Props {
  keyId: number;
  endpoint: BatchEndpoint;
  /** What the provider said when it was made. */
  made: Batch;
}

/** Asks the proxy about a batch: the body of its answer. `file`: the one that has results. */
async function ask(
  { keyId, endpoint, made }: Props,
  call: BodyOf<"actions/playground/callBatch">["call"],
  signal: AbortSignal,
  file?: string,
) {
  let [status, body] = [0, ""];
  const text = new TextDecoder();
  const asked = { keyId, endpoint, id: made.id, call, ...(file !== undefined && { file }) };
  const events = callLines<Schemas["PlaygroundEvent"]>(
    "actions/playground/callBatch",
    asked,
    signal,
  );
  for await (const event of events) {
    if (event.type === "head") status = event.status;
    if (event.type === "data") body += event.text;
    // Services send files as bytes.
    if (event.type === "bytes") {
      const bytes = Uint8Array.from(atob(event.base64), (one) => one.charCodeAt(0));
      body += text.decode(bytes, { stream: true });
    }
  }
  if (status !== 200) throw new Error(body);
  return body;
}

export function BatchCard(props: Props) {
  const { t } = useTranslation();
  const { keyId, endpoint, made } = props;
  const place = ["playground-batch", keyId, endpoint, made.id];
  const [cancelling, setCancelling] = useState(false);
  const looked = useQuery({
    queryKey: place,
    queryFn: ({ signal }) => ask(props, "state", signal),
    refetchInterval: ({ state }) =>
      batchOf(endpoint, state.data ?? "")?.ended === true ? false : EVERY,
  });
  const now = batchOf(endpoint, looked.data ?? "") ?? made;
  const results = useQuery({
    queryKey: [...place, "results"],
    enabled: now.ended && (endpoint !== "batch" || now.files.length > 0),
    queryFn: async ({ signal }) => {
      if (endpoint !== "batch") return ask(props, "results", signal);
      const files = now.files.map((file) => ask(props, "results", signal, file));
      return (await Promise.all(files)).join("\n");
    },
  });
  const cancel = async () => {
    setCancelling(true);
    await ask(props, "cancel", new AbortController().signal).catch(() => undefined);
    await looked.refetch();
    setCancelling(false);
  };
  return (
    <Card title={t("playground.batch")}>
      <div className="space-y-3">
        <div className="flex flex-wrap items-center gap-x-3 gap-y-2 text-sm" role="status">
          <Badge tone={now.ended ? "good" : "plain"}>{now.state}</Badge>
          {!now.ended && <LoaderCircle className="size-3.5 animate-spin" aria-hidden />}
          <span className="min-w-0 text-quiet">
            <Id value={now.id} />
          </span>
          {!now.ended && (
            <Button
              size="sm"
              disabled={cancelling}
              icon={<CircleX className="size-3.5" aria-hidden />}
              onClick={() => void cancel()}
            >
              {t("playground.cancelBatch")}
            </Button>
          )}
        </div>
        {!now.ended && <p className="text-sm text-quiet">{t("playground.batchHelp")}</p>}
        {now.fault && (
          <Notice tone="bad" title={now.fault.message}>
            {now.fault.kind && <span className="font-mono text-xs">{now.fault.kind}</span>}
          </Notice>
        )}
        {looked.error && <Failed error={looked.error} retry={() => void looked.refetch()} />}
        {results.error && <Failed error={results.error} retry={() => void results.refetch()} />}
        {results.data !== undefined && <Results endpoint={endpoint} body={results.data} />}
      </div>
    </Card>
  );
}

function Results({ endpoint, body }: { endpoint: BatchEndpoint; body: string }) {
  const { t } = useTranslation();
  const all = resultsOf(endpoint, body);
  if (all.length === 0) return <p className="text-sm text-quiet">{t("playground.noResults")}</p>;
  return (
    <ul className="divide-y divide-line rounded-lg border border-line">
      {all.map(({ name, text, fault }, at) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: names may repeat, and the list stays
        <li key={at} className="space-y-1 px-3 py-2 text-sm">
          <p className="font-mono text-xs text-quiet">{name}</p>
          {fault ? (
            <Notice tone="bad" title={fault.message}>
              {fault.kind && <span className="font-mono text-xs">{fault.kind}</span>}
            </Notice>
          ) : (
            <p className="break-words whitespace-pre-wrap">{text}</p>
          )}
        </li>
      ))}
    </ul>
  );
}
