/** The search parameters of this page. */
import { number, oneOf, searchOf, text } from "@/parts/search";

export const peopleSearch = searchOf({
  q: text,
  state: oneOf(["enabled", "disabled", "expired"]),
  group: text,
  view: oneOf(["users", "keys"]),
  user: number,
  key: number,
});
export type PeopleSearch = ReturnType<typeof peopleSearch>;
