/** The price table's operations. */
import { queryOptions, useMutation, useQueryClient } from "@tanstack/react-query";
import { type BodyOf, call, type Operation, type Schemas } from "@/api/client";
import { keys } from "@/api/queries";
import type { Entry } from "./rates";

/** As the gateway returns it; the entry is stored as it was uploaded, including unknown fields. */
export type Price = Omit<Schemas["PriceRecord"], "priceData" | "source"> & {
  priceData: Entry;
  source: "manual" | "sync" | "seed";
};

/** The result for each entry of a table, by model name. */
export type Outcome = Schemas["PriceUpload"];

/** The models that need a price. */
export const unpriced = queryOptions({
  queryKey: [...keys.prices, "unpriced"],
  queryFn: ({ signal }) => call("actions/model-prices/getUnpricedModels", {}, signal),
});

/** Writes to the price table and reads it again. */
function useChange<O extends Operation>(operation: O) {
  const cache = useQueryClient();
  return useMutation({
    mutationFn: (body: BodyOf<O>) => call(operation, body),
    onSuccess: () => cache.invalidateQueries({ queryKey: keys.prices }),
  });
}

export const useUpload = () => useChange("actions/model-prices/uploadPriceTable");
export const useSync = () => useChange("actions/model-prices/syncLiteLLMPrices");
export const useDelete = () => useChange("actions/model-prices/deleteModelPrice");
