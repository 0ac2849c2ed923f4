/** The last failure of a provider, translated, with the provider's message. */
import { useTranslation } from "react-i18next";
import type { Schemas } from "@/api/client";

export type Cause = NonNullable<Schemas["ProviderHealth"]["lastError"]>;

const KINDS = ["dns", "connect", "tls", "timeout", "broken", "status", "unusable"] as const;

/** A cause in a few words: "connection refused or failed", "status 502". */
export function useCause() {
  const { t } = useTranslation();
  return ({ kind, status }: Pick<Cause, "kind" | "status">) => {
    const known = KINDS.find((one) => one === kind) ?? "broken";
    return t(`causes.${known}`, { status: status ?? "?" });
  };
}

/** The provider's message. It begins with the status, which the cause names already. */
const messageOf = ({ kind, status, message }: Cause) =>
  kind === "status" && message.startsWith(`${status} `)
    ? message.slice(`${status} `.length)
    : message;

export function CauseText({ cause }: { cause: Cause }) {
  const words = useCause()(cause);
  const message = messageOf(cause);
  return (
    <span className="min-w-0 break-words">
      {words}
      {message !== "" && <span className="text-faint"> — {message}</span>}
    </span>
  );
}
