/** Testing a provider: what is sent, and what came of it. */
import { type BodyOf, call, type DataOf } from "@/api/client";

export type Asked = BodyOf<"actions/providers/testProvider">;
export type Tested = DataOf<"actions/providers/testProvider">;
export const testProvider = (asked: Asked) => call("actions/providers/testProvider", asked);
