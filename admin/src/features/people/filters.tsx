/** The filters of users and keys: the search text and the chips, kept in the address. */
import { useTranslation } from "react-i18next";
import { Select } from "@/ui/field";
import type { Filter } from "@/ui/filters";
import type { KeyRow } from "./columns";
import type { PeopleSearch } from "./search";
import { keyState, type State, type User, userState, words } from "./values";

/** Whether a user passes the filters. */
export function fits(user: User, { q, state, group }: PeopleSearch, now: Date): boolean {
  const text = [user.name, user.note, ...user.tags, ...user.keys.map((key) => key.name)]
    .join(" ")
    .toLowerCase();
  return (
    (q === undefined || text.includes(q.toLowerCase())) &&
    (state === undefined || userState(user, now) === state) &&
    (group === undefined || words(user.providerGroup).includes(group))
  );
}

/** Whether a key passes the filters. */
export function keyFits(
  { key, user }: KeyRow,
  { q, state, group }: PeopleSearch,
  now: Date,
): boolean {
  return (
    (q === undefined ||
      `${user.name} ${key.name} ${key.key}`.toLowerCase().includes(q.toLowerCase())) &&
    (state === undefined || keyState(key, user, now) === state) &&
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
  const states: State[] = ["enabled", "disabled", "expired"];
  return [
    {
      id: "state",
      label: t("people.state"),
      shown: search.state && t(`people.states.${search.state}`),
      clear: () => set({ state: undefined }),
      edit: (done) => (
        <Select
          aria-label={t("people.state")}
          value={search.state ?? ""}
          choices={[
            { value: "", label: "—" },
            ...states.map((state) => ({ value: state, label: t(`people.states.${state}`) })),
          ]}
          onChange={(event) => {
            set({ state: (event.target.value || undefined) as State | undefined });
            done();
          }}
        />
      ),
    },
    {
      id: "group",
      label: t("people.providerGroup"),
      shown: search.group,
      clear: () => set({ group: undefined }),
      edit: (done) => (
        <Select
          aria-label={t("people.providerGroup")}
          value={search.group ?? ""}
          choices={[
            { value: "", label: "—" },
            ...groups.map((group) => ({ value: group, label: group })),
          ]}
          onChange={(event) => {
            set({ group: event.target.value || undefined });
            done();
          }}
        />
      ),
    },
  ];
}
