/** The search parameters of this page. */
import { oneOf, searchOf } from "@/parts/search";

export const settingsSearch = searchOf({
  view: oneOf(["notifications"]),
});
export type SettingsSearch = ReturnType<typeof settingsSearch>;
