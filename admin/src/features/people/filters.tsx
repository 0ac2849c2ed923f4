/** The filters of users and keys: the search text and the chips, kept in the address. */
import { useTranslation } from "react-i18next";
import { words } from "@/parts/values";
import { choiceFilter, type Filter } from "@/ui/filters";
import type { KeyRow } from "./columns";
import type { PeopleSearch } from "./search";
import { STATES, type User } from "./values";

/** Whether a user passes the filters. */
export function fits(user: User, { q, state, group }: PeopleSearch): boolean {
  const text = [user.name, user.note, ...user.tags, ...user.keys.map((key) => key.name)]
    .join(" ")
    .toLowerCase();
  return (
    (q === undefined || text.includes(q.toLowerCase())) &&
    (state === undefined || user.status === state) &&
    (group === undefined || words(user.providerGroup).includes(group))
  );
}

/** Whether a key passes the filters. */
export function keyFits({ key, user }: KeyRow, { q, state, group }: PeopleSearch): boolean {
  return (
    (q === undefined ||
      `${user.name} ${key.name} ${key.key}`.toLowerCase().includes(q.toLowerCase())) &&
    (state === undefined || key.effectiveStatus === state) &&
    (group === undefined || words(key.providerGroup).includes(group))
  );
}

export function usePeopleFilters(
  search: PeopleSearch,
  set: (next: Partial<PeopleSearch>) => void,
  users: User[],
): Filter[] {
  const { t } = useTranslation();
  const groups = [...new Set(users.flatMap((user) => words(user.providerGroup)))].sort();
  return [
    choiceFilter({
      id: "state",
      label: t("people.state"),
      value: search.state,
      choices: STATES.map((state) => ({ value: state, label: t(`people.states.${state}`) })),
      onChange: (state) => set({ state }),
    }),
    choiceFilter({
      id: "group",
      label: t("people.providerGroup"),
      value: search.group,
      choices: groups.map((group) => ({ value: group, label: group })),
      onChange: (group) => set({ group }),
    }),
  ];
}
