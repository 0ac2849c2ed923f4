/** Invoice sources, and invoices beside the ledger. */
import { queryOptions, useMutation, useQueryClient } from "@tanstack/react-query";
import { type BodyOf, call, type Schemas } from "@/api/client";

export type Source = Schemas["InvoiceSourceRecord"];
export type Reconciliation = Schemas["ReconciliationRecord"];
export type Line = Schemas["InvoiceLine"];
export type Asked = NonNullable<BodyOf<"actions/reconciliation/getReconciliation">>;

export const KINDS = ["anthropic", "openai"] as const;
export const FILE_KINDS = ["google", "aws"] as const;
export const TOKENS = [
  "inputTokens",
  "cacheReadTokens",
  "cacheWrite5mTokens",
  "cacheWrite1hTokens",
  "outputTokens",
] as const;

/** Sources, and what was compared with them. */
export const KEYS = ["invoices"];
const keys = { sources: ["invoices", "sources"], compared: ["invoices", "compared"] } as const;

export const sources = queryOptions({
  queryKey: keys.sources,
  queryFn: ({ signal }) => call("actions/reconciliation/getInvoiceSources", {}, signal),
});

/** Asks vendors, so only when the user does. A file is known by its name, not by its text. */
export const reconciliation = (asked: Asked, file: string | undefined) =>
  queryOptions({
    queryKey: [...keys.compared, { ...asked, file }],
    queryFn: ({ signal }) => call("actions/reconciliation/getReconciliation", asked, signal),
    staleTime: Number.POSITIVE_INFINITY,
    refetchOnWindowFocus: false,
    refetchOnReconnect: false,
    retry: false,
  });

/** Removes a source. What was compared with it is read again. */
export function useRemoveSource() {
  const cache = useQueryClient();
  return useMutation({
    mutationFn: (providerId: number) =>
      call("actions/reconciliation/removeInvoiceSource", { providerId }),
    onSuccess: () => cache.invalidateQueries({ queryKey: KEYS }),
  });
}
