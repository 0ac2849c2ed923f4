/**
 * The models in settings to copy: models of this gateway's providers, if the caller may list them.
 */
import { useQuery } from "@tanstack/react-query";
import { useCallback } from "react";
import { exampleModel, type Format } from "@/api/client-settings";
import * as queries from "@/api/queries";
import { useIsAdmin } from "./session";

export function useExampleModel() {
  const admin = useIsAdmin();
  const { data } = useQuery({ ...queries.providers, enabled: admin });
  return useCallback((format: Format) => exampleModel(format, data ?? []), [data]);
}
