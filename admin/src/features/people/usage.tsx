/** The use of the limits of a user or a key, window by window. */
import { useQuery } from "@tanstack/react-query";
import * as queries from "@/api/queries";
import { LimitUse } from "@/parts/limits";

export const UserUsage = ({ userId }: { userId: number }) => (
  <LimitUse asked={useQuery(queries.userLimits(userId))} />
);

export const KeyUsage = ({ keyId }: { keyId: number }) => (
  <LimitUse asked={useQuery(queries.keyLimits(keyId))} />
);
