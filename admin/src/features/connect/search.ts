/** The search parameters of this page. */
import { searchOf, text } from "@/parts/search";

export const connectSearch = searchOf({
  /** The selected client. */
  client: text,
});
export type ConnectSearch = ReturnType<typeof connectSearch>;
