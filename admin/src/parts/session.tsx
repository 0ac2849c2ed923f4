/** Who is logged in: asked once, and forgotten the moment the gateway no longer knows. */
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useRouter } from "@tanstack/react-router";
import { createContext, type ReactNode, useContext, useEffect } from "react";
import { call, type Schemas, whenLoggedOut } from "@/api/client";
import * as queries from "@/api/queries";

export type Session = Schemas["WhoAmI"];

/** Who is logged in; `SessionProvider` fills it. */
export const SessionContext = createContext<Session | null>(null);

/** The session; only where `SessionProvider` is above. */
export function useSession(): Session {
  const session = useContext(SessionContext);
  if (session === null) throw new Error("no session");
  return session;
}

/** Whether the whole gateway may be managed, not only one's own keys. */
export const useIsAdmin = () => {
  const session = useSession();
  return session.role === "admin" && !session.readOnly;
};

/** The users that the caller may see, with their keys: all, or themselves. */
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
