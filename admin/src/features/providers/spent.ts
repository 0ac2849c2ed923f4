/** The providers that have reached a spending limit: selection skips them until it resets. */
import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import * as queries from "@/api/queries";

export function useSpent(): ReadonlySet<number> {
  const { data } = useQuery(queries.overview);
  return useMemo(() => {
    const near = data?.attention?.nearLimits ?? [];
    return new Set(
      near
        .filter((one) => one.kind === "provider" && one.current >= one.limit)
        .map((one) => one.id),
    );
  }, [data]);
}
