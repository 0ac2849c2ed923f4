/** The search parameters of this page. */
import { oneOf } from "@/parts/search";

export interface SettingsSearch {
  view?: "notifications";
}

export const settingsSearch = (search: Record<string, unknown>): SettingsSearch => ({
  view: oneOf(search.view, ["notifications"] as const),
});
