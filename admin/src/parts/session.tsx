/** The session: read once, and cleared as soon as the gateway no longer accepts it. */
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useRouter } from "@tanstack/react-router";
import { createContext, type ReactNode, useContext, useEffect } from "react";
import { call, type Schemas, whenLoggedOut } from "@/api/client";
import * as queries from "@/api/queries";

export type Session = Schemas["WhoAmI"];

/** The caller; `SessionProvider` sets it. */
export const SessionContext = createContext<Session | null>(null);

/** The session; only below a `SessionProvider`. */
export function useSession(): Session {
  const session = useContext(SessionContext);
  if (session === null) throw new Error("no session");
  return session;
}

/** Whether the caller may manage the whole gateway, not only the caller's own keys. */
export const useIsAdmin = () => {
  const session = useSession();
  return session.role === "admin" && !session.readOnly;
};

/** The users that the caller may see, with their keys: all of them, or only the caller. */
export function useUsers(enabled = true) {
  const admin = useIsAdmin();
  return useQuery({ ...(admin ? queries.users : queries.self), enabled });
}

export function SessionProvider({ children }: { children: ReactNode }) {
  const { data } = useQuery(queries.whoami);
  const router = useRouter();
  const cache = useQueryClient();
  useEffect(() => {
    whenLoggedOut(() => {
      if (router.state.location.pathname === "/login") return;
      const from = router.state.location.href;
      cache.clear();
      void router.navigate({ to: "/login", search: { from } });
    });
  }, [router, cache]);
  return data === undefined ? null : <SessionContext value={data}>{children}</SessionContext>;
}

export function useLogout() {
  const cache = useQueryClient();
  const router = useRouter();
  return async () => {
    await call("auth/logout", {}).catch(() => {});
    cache.clear();
    await router.navigate({ to: "/login", search: {} });
  };
}
