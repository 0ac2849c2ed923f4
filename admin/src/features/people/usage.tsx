/** What a user or a key has used of its limits, window by window. */
import { useQuery } from "@tanstack/react-query";
import * as queries from "@/api/queries";
import { Meters, type Usage } from "@/parts/limits";
import { Failed, Loading } from "@/ui/empty";

export function UserUsage({ userId }: { userId: number }) {
  const query = useQuery(queries.userLimits(userId));
  return <Shown usage={query.data} error={query.error} retry={() => void query.refetch()} />;
}

export function KeyUsage({ keyId }: { keyId: number }) {
  const query = useQuery(queries.keyLimits(keyId));
  return <Shown usage={query.data} error={query.error} retry={() => void query.refetch()} />;
}

function Shown({ usage, error, retry }: { usage: Usage | undefined; error: unknown; retry: () => void }) {
  if (error) return <Failed error={error} retry={retry} />;
  return usage === undefined ? <Loading lines={4} /> : <Meters usage={usage} />;
}
