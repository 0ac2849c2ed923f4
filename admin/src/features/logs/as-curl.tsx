/** The request as a curl command: with its body if messages are stored, else with an example. */
import { useQuery } from "@tanstack/react-query";
import { SquareTerminal } from "lucide-react";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { call } from "@/api/client";
import { proxyBase } from "@/api/client-settings";
import type { Entry } from "@/parts/request/entry";
import { useSession } from "@/parts/session";
import { Button } from "@/ui/button";
import { Code } from "@/ui/code";
import { Loading } from "@/ui/empty";
import { type Stored, toCurl } from "./curl";

/** The stored request; `null` = nothing that could be sent again. */
const stored = ({ requestId, sessionId, keyId }: Entry) => ({
  queryKey: ["logs", "stored", requestId],
  queryFn: async (): Promise<Stored | null> => {
    if (!sessionId) return null;
    const asked = { sessionId, keyId, pageSize: 50 };
    const { messages } = await call("actions/active-sessions/getSessionMessages", asked);
    return messages.find((one) => one.requestId === requestId) ?? null;
  },
  retry: false,
  staleTime: Number.POSITIVE_INFINITY,
});

export function AsCurl({ entry }: { entry: Entry }) {
  const { t } = useTranslation();
  const [open, setOpen] = useState(false);
  if (!open) {
    return (
      <Button
        size="sm"
        icon={<SquareTerminal className="size-3.5" aria-hidden />}
        onClick={() => setOpen(true)}
      >
        {t("logs.asCurl")}
      </Button>
    );
  }
  return <Line entry={entry} />;
}

function Line({ entry }: { entry: Entry }) {
  const { t } = useTranslation();
  const { proxyPort, proxyTls } = useSession();
  const { data, isPending } = useQuery(stored(entry));
  if (isPending) return <Loading lines={3} />;
  const base = proxyBase(window.location, { port: proxyPort, tls: proxyTls });
  const { text, own } = toCurl(entry, base, data ?? null);
  return (
    <div className="space-y-1.5">
      <Code label="curl" text={text} />
      <p className="text-xs text-faint">{own ? t("logs.curlOwn") : t("logs.curlExample")}</p>
    </div>
  );
}
