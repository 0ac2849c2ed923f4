/** The price table's operations. */
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { type BodyOf, call, type Operation, type Schemas } from "@/api/client";
import { keys } from "@/api/queries";
import type { Entry } from "./rates";

/** As the gateway gives it; the entry is kept as it was uploaded, unknown fields and all. */
export type Price = Omit<Schemas["PriceRecord"], "priceData" | "source"> & {
  priceData: Entry;
  source: "manual" | "sync" | "seed";
};

/** What became of each entry of a table, by model name. */
export type Outcome = Schemas["PriceUpload"];

/** Writes to the price table and reads it anew. */
function useChange<O extends Operation>(operation: O) {
  const cache = useQueryClient();
  return useMutation({
    mutationFn: (body: BodyOf<O>) => call(operation, body),
    onSuccess: () => cache.invalidateQueries({ queryKey: keys.prices }),
  });
}

export const useUpload = () => useChange("actions/model-prices/uploadPriceTable");
export const useSync = () => useChange("actions/model-prices/syncLiteLLMPrices");
export const useSave = () => useChange("actions/model-prices/upsertModelPrice");
export const useDelete = () => useChange("actions/model-prices/deleteModelPrice");
