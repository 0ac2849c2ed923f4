/** The search parameters of this page. */
import { number, oneOf, text } from "@/parts/search";

export interface PeopleSearch {
  q?: string;
  state?: "enabled" | "disabled" | "expired";
  group?: string;
  view?: "users" | "keys";
  user?: number;
  key?: number;
}

export const peopleSearch = (search: Record<string, unknown>): PeopleSearch => ({
  q: text(search.q),
  state: oneOf(search.state, ["enabled", "disabled", "expired"] as const),
  group: text(search.group),
  view: oneOf(search.view, ["users", "keys"] as const),
  user: number(search.user),
  key: number(search.key),
});
