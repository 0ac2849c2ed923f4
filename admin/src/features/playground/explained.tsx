/** Which providers the form's request would go to, without sending it. */
import { useMutation } from "@tanstack/react-query";
import { useTranslation } from "react-i18next";
import { type BodyOf, call } from "@/api/client";
import { Selection } from "@/parts/request/selection";
import { Failed, Loading } from "@/ui/empty";
import { Card } from "@/ui/page";
import type { toSend } from "./request";

type Asked = BodyOf<"actions/providers/explainSelection">;
export type ToExplain = ReturnType<typeof toSend> & { model: string };

/** The answer, and how to ask for it. */
export function useExplained() {
  const { mutate, reset, data, error, isPending } = useMutation({
    mutationFn: ({ fileName: _, fileBase64: __, ...asked }: ToExplain) =>
      // The endpoints' names come from the gateway.
      call("actions/providers/explainSelection", asked as Asked),
  });
  const isShown = data !== undefined || error !== null || isPending;
  return { ask: mutate, clear: reset, data, error, isShown };
}

export function Explained({ answer }: { answer: ReturnType<typeof useExplained> }) {
  const { t } = useTranslation();
  const { data, error, isShown } = answer;
  if (!isShown) return null;
  return (
    <Card title={t("playground.explained")}>
      {error ? <Failed error={error} /> : data ? <Selection found={data} /> : <Loading lines={3} />}
    </Card>
  );
}
