/** The pages, their groups and their audience, for the router, the side bar and the palette. */
import {
  type Activity,
  BookOpenText,
  FlaskConical,
  Gauge,
  History,
  LayoutDashboard,
  MessagesSquare,
  PlugZap,
  ReceiptText,
  ScrollText,
  Server,
  ShieldAlert,
  ShieldX,
  SlidersHorizontal,
  Tags,
  Users,
} from "lucide-react";

export type Group = "watch" | "manage" | "system";
export type Audience = "admin" | "user" | "any";

interface Page {
  path: string;
  name: string;
  group: Group;
  audience: Audience;
  icon: typeof Activity;
}

export const PAGES = [
  { path: "/dashboard", name: "overview", group: "watch", audience: "user", icon: LayoutDashboard },
  { path: "/logs", name: "logs", group: "watch", audience: "user", icon: ScrollText },
  { path: "/sessions", name: "sessions", group: "watch", audience: "user", icon: MessagesSquare },
  { path: "/rejected", name: "rejected", group: "watch", audience: "admin", icon: ShieldX },
  { path: "/my-usage", name: "my-usage", group: "watch", audience: "any", icon: Gauge },
  { path: "/people", name: "people", group: "manage", audience: "user", icon: Users },
  { path: "/providers", name: "providers", group: "manage", audience: "admin", icon: Server },
  { path: "/prices", name: "prices", group: "manage", audience: "admin", icon: Tags },
  {
    path: "/invoices",
    name: "invoices",
    group: "manage",
    audience: "admin",
    icon: ReceiptText,
  },
  { path: "/rules", name: "rules", group: "manage", audience: "admin", icon: ShieldAlert },
  {
    path: "/settings",
    name: "settings",
    group: "system",
    audience: "admin",
    icon: SlidersHorizontal,
  },
  { path: "/audit", name: "audit", group: "system", audience: "admin", icon: History },
  {
    path: "/playground",
    name: "playground",
    group: "system",
    audience: "user",
    icon: FlaskConical,
  },
  { path: "/connect", name: "connect", group: "system", audience: "any", icon: PlugZap },
] as const satisfies readonly Page[];

export type PagePath = (typeof PAGES)[number]["path"];
export const API_DOCS = { path: "/api/actions/scalar", icon: BookOpenText };

interface Who {
  role: string;
  readOnly: boolean;
  userId?: number | null;
}

/** The pages that the caller may open. The admin token is not a user and has no usage. */
export function pagesFor({ role, readOnly, userId }: Who) {
  return PAGES.filter((page) => {
    const { path, audience } = page;
    if ((path as string) === "/my-usage" && userId == null) return false;
    if ((audience as Audience) === "any") return true;
    return !readOnly && (audience === "user" || role === "admin");
  });
}
