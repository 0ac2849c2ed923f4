/** The entries of the command palette and their order. */
import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { Boxes, KeyRound, MessagesSquare, ReceiptText, Server, Tags, User } from "lucide-react";
import { type ReactNode, useMemo } from "react";
import { useTranslation } from "react-i18next";
import * as queries from "@/api/queries";
import { useIsAdmin, useSession, useUsers } from "@/parts/session";
import { pagesFor } from "./nav";

export interface Entry {
  id: string;
  label: string;
  /** Additional words that find this entry. */
  words?: string;
  kind: string;
  icon: ReactNode;
  go: () => void;
}

/** The number of entries that are shown. */
const SHOWN = 12;
/** The number of one kind, while other kinds match too. */
const OF_A_KIND = 5;

/**
 * The rank of a match: 0 the name begins with it, 1 a word of the name does, 2 the name contains
 * it; or `undefined`.
 */
function rank({ label, words = "", kind }: Entry, typed: string[]): number | undefined {
  const name = label.toLowerCase();
  const text = `${name} ${words.toLowerCase()} ${kind.toLowerCase()}`;
  if (!typed.every((word) => text.includes(word))) return undefined;
  const [first = ""] = typed;
  if (name.startsWith(first)) return 0;
  return name.split(/[\s/._-]+/).some((word) => word.startsWith(first)) ? 1 : 2;
}

/** The best entries. Equal ranks keep their order; the first few of each kind come first. */
export function find(entries: Entry[], text: string): Entry[] {
  const typed = text.toLowerCase().split(/\s+/).filter(Boolean);
  if (typed.length === 0) return entries.slice(0, SHOWN);
  const ranked = entries.flatMap((entry) => {
    const at = rank(entry, typed);
    return at === undefined ? [] : [{ entry, at }];
  });
  const sorted = ranked.sort((a, b) => a.at - b.at).map(({ entry }) => entry);
  const seen = new Map<string, number>();
  const [first, rest]: [Entry[], Entry[]] = [[], []];
  for (const entry of sorted) {
    const of = (seen.get(entry.kind) ?? 0) + 1;
    seen.set(entry.kind, of);
    (of <= OF_A_KIND ? first : rest).push(entry);
  }
  return [...first, ...rest].slice(0, SHOWN);
}

/** A request's id as in `x-tollgate-request-id`, with its hyphens; `undefined` for other text. */
export function requestId(typed: string): string | undefined {
  const [, a, b, c, d, e] =
    /^([0-9a-f]{8})-?([0-9a-f]{4})-?([0-9a-f]{4})-?([0-9a-f]{4})-?([0-9a-f]{12})$/.exec(
      typed.trim().toLowerCase(),
    ) ?? [];
  return a && [a, b, c, d, e].join("-");
}

/** The number of letters from which models and prices are searched: there may be thousands. */
const ENOUGH = 2;

/** All entries that the caller may open; `loading` while more may come. */
export function useEntries(typed: string): { entries: Entry[]; loading: boolean } {
  const { t } = useTranslation();
  const session = useSession();
  const admin = useIsAdmin();
  const navigate = useNavigate();
  const manages = !session.readOnly;
  const long = typed.trim().length >= ENOUGH;
  const users = useUsers(manages);
  const providers = useQuery({ ...queries.providers, enabled: admin });
  const sessions = useQuery({ ...queries.sessions, enabled: manages });
  const models = useQuery({ ...queries.models, enabled: manages && long });
  const prices = useQuery({ ...queries.prices, enabled: admin && long });
  const loading = [users, providers, sessions, models, prices].some((list) => list.isLoading);
  const entries = useMemo(() => {
    const icon = "size-4";
    const pages = pagesFor(session).map(({ path, name, icon: Icon }) => ({
      id: path.slice(1),
      label: t(`nav.${name}`),
      kind: t("palette.page"),
      icon: <Icon className={icon} aria-hidden />,
      go: () => void navigate({ to: path }),
    }));
    const people = (users.data ?? []).flatMap((user) => [
      {
        id: `user-${user.id}`,
        label: user.name,
        kind: t("palette.user"),
        icon: <User className={icon} aria-hidden />,
        go: () => void navigate({ to: "/people", search: { user: user.id } }),
      },
      ...user.keys.map((key) => ({
        id: `key-${key.id}`,
        label: `${user.name} / ${key.name}`,
        kind: t("palette.key"),
        icon: <KeyRound className={icon} aria-hidden />,
        go: () => void navigate({ to: "/people", search: { user: user.id, key: key.id } }),
      })),
    ]);
    const id = manages ? requestId(typed) : undefined;
    const request = id && {
      id: `request-${id}`,
      label: id,
      words: typed,
      kind: t("palette.request"),
      icon: <ReceiptText className={icon} aria-hidden />,
      go: () => void navigate({ to: "/logs", search: { id, request: id } }),
    };
    return [
      ...(request ? [request] : []),
      ...pages,
      ...people,
      ...(providers.data ?? []).map((provider) => ({
        id: `provider-${provider.id}`,
        label: provider.name,
        kind: t("palette.provider"),
        icon: <Server className={icon} aria-hidden />,
        go: () => void navigate({ to: "/providers", search: { id: provider.id } }),
      })),
      ...(sessions.data ?? []).map(({ sessionId, keyId, userName, keyName, model }) => ({
        id: `session-${keyId}-${sessionId}`,
        label: [userName, keyName, sessionId].filter(Boolean).join(" / "),
        words: model ?? "",
        kind: t("palette.session"),
        icon: <MessagesSquare className={icon} aria-hidden />,
        go: () =>
          void navigate({
            to: "/sessions",
            search: { session: sessionId, key: keyId ?? undefined },
          }),
      })),
      ...(models.data ?? []).map((model) => ({
        id: `model-${model}`,
        label: model,
        kind: t("palette.model"),
        icon: <Boxes className={icon} aria-hidden />,
        go: () => void navigate({ to: "/logs", search: { model } }),
      })),
      ...(prices.data ?? []).map(({ modelName }) => ({
        id: `price-${modelName}`,
        label: modelName,
        kind: t("palette.price"),
        icon: <Tags className={icon} aria-hidden />,
        go: () => void navigate({ to: "/prices", search: { model: modelName } }),
      })),
    ];
  }, [
    t,
    session,
    navigate,
    manages,
    typed,
    users.data,
    providers.data,
    sessions.data,
    models.data,
    prices.data,
  ]);
  return { entries, loading };
}
