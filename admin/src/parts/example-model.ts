/** The models in settings to copy: ones that this gateway's providers have, as far as visible. */
import { useQuery } from "@tanstack/react-query";
import { useCallback } from "react";
import { exampleModel, type Format } from "@/api/clients";
import * as queries from "@/api/queries";
import { useIsAdmin } from "./session";

export function useExampleModel() {
  const admin = useIsAdmin();
  const { data } = useQuery({ ...queries.providers, enabled: admin });
  return useCallback((format: Format) => exampleModel(format, data ?? []), [data]);
}
