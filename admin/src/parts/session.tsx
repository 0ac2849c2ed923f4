/** The session: read once, and cleared as soon as the gateway no longer accepts it. */
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useRouter } from "@tanstack/react-router";
import { createContext, type ReactNode, useContext, useEffect, useRef } from "react";
import { useTranslation } from "react-i18next";
import { call, type Schemas, whenLoggedOut } from "@/api/client";
import * as queries from "@/api/queries";
import { useConfirm } from "@/ui/confirm";
import { hasUnsaved, mayDiscard } from "@/ui/discard";
import { useToast } from "@/ui/toast";

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
  const { data, dataUpdatedAt } = useQuery(queries.whoami);
  useEnd(dataUpdatedAt);
  useChange(data);
  return data === undefined ? null : <SessionContext value={data}>{children}</SessionContext>;
}

/**
 * Leads to the login as soon as the gateway no longer accepts the session. Unsaved input stays,
 * with a question: it can be saved after a log-in in another tab. `readAt`: when the session was
 * last read.
 */
function useEnd(readAt: number) {
  const { t } = useTranslation();
  const router = useRouter();
  const cache = useQueryClient();
  const confirm = useConfirm();
  const asked = useRef(false);
  // biome-ignore lint/correctness/useExhaustiveDependencies: it was read, so there is one again
  useEffect(() => {
    asked.current = false;
  }, [readAt]);
  useEffect(() => {
    whenLoggedOut(() => {
      if (router.state.location.pathname === "/login") return;
      if (!hasUnsaved()) {
        const from = router.state.location.href;
        cache.clear();
        void router.navigate({ to: "/login", search: { from } });
      } else if (!asked.current) {
        asked.current = true;
        void confirm({
          title: t("login.endedTitle"),
          body: t("login.endedBody"),
          action: t("login.again"),
          danger: false,
        }).then((yes) => yes && window.open("/login", "_blank", "noopener"));
      }
    });
  }, [router, cache, confirm, t]);
}

const identityOf = ({ role, userId, keyId, readOnly }: Session) =>
  [role, userId, keyId, readOnly].join(" ");

/** Reads everything again when another tab logged in as another user. */
function useChange(session: Session | undefined) {
  const router = useRouter();
  const cache = useQueryClient();
  const identity = session && identityOf(session);
  const before = useRef(identity);
  useEffect(() => {
    const changed = before.current !== undefined && before.current !== identity;
    before.current = identity;
    if (!changed) return;
    void cache.resetQueries({ predicate: ({ queryKey: [name] }) => name !== "whoami" });
    // The page may be one that the new caller may not open.
    void router.invalidate();
  }, [identity, router, cache]);
}

/** Ends the session. If that fails, the page stays and says so. */
export function useLogout() {
  const { t } = useTranslation();
  const cache = useQueryClient();
  const router = useRouter();
  const toast = useToast();
  return async () => {
    if (!(await mayDiscard())) return;
    try {
      await call("auth/logout", {});
    } catch (error) {
      const said = error instanceof Error ? error.message : "";
      toast.bad(t("login.notEnded", { reason: said || t("ui.noConnection") }));
      return;
    }
    cache.clear();
    await router.navigate({ to: "/login", search: {}, ignoreBlocker: true });
  };
}
