/** The stored messages of a session. */
import { useQuery } from "@tanstack/react-query";
import { useTranslation } from "react-i18next";
import { ApiError, call } from "@/api/client";
import { Code } from "@/ui/code";
import { Empty, Failed, Loading } from "@/ui/empty";
import { Notice } from "@/ui/status";
import { Time } from "@/ui/text";

const asText = (said: unknown) => (typeof said === "string" ? said : JSON.stringify(said, null, 2));

export function Messages({
  sessionId,
  keyId,
}: {
  sessionId: string;
  keyId: number | null | undefined;
}) {
  const { t } = useTranslation();
  const { data, error, isPending, refetch } = useQuery({
    queryKey: ["sessions", "messages", sessionId, keyId],
    queryFn: ({ signal }) =>
      call(
        "actions/active-sessions/getSessionMessages",
        { sessionId, keyId, pageSize: 20 },
        signal,
      ),
    retry: false,
  });
  if (error instanceof ApiError && error.code === "OPERATION_FAILED" && !error.away) {
    return (
      <Notice tone="plain" title={t("sessions.notStored")}>
        {error.message}
      </Notice>
    );
  }
  if (error && data === undefined) return <Failed error={error} retry={() => void refetch()} />;
  if (isPending) return <Loading />;
  if (data.messages.length === 0) return <Empty title={t("sessions.noMessages")} />;
  return (
    <ol className="space-y-4">
      {data.nextCursor && <li className="text-xs text-faint">{t("sessions.latestOnly")}</li>}
      {data.messages.map((one) => (
        <li key={one.requestId} className="space-y-2">
          <Time at={one.createdAt} relative={false} />
          <Code
            label={one.requestTruncated ? t("sessions.askedCut") : t("sessions.asked")}
            text={asText(one.request)}
          />
          <Code
            label={one.responseTruncated ? t("sessions.answeredCut") : t("sessions.answered")}
            text={asText(one.response)}
          />
        </li>
      ))}
    </ol>
  );
}
