/** Invoice sources, and invoices beside the ledger. */
import { queryOptions, useMutation, useQueryClient } from "@tanstack/react-query";
import { type BodyOf, call, type Operation, type Schemas } from "@/api/client";

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

/** Writes a source, and forgets what was compared with it. */
function useChange<O extends Operation>(operation: O) {
  const cache = useQueryClient();
  return useMutation({
    mutationFn: (body: BodyOf<O>) => call(operation, body),
    onSuccess: () => cache.invalidateQueries({ queryKey: ["invoices"] }),
  });
}

export const useSaveSource = () => useChange("actions/reconciliation/saveInvoiceSource");
export const useRemoveSource = () => useChange("actions/reconciliation/removeInvoiceSource");
