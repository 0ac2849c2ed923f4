/** The test of a provider: its input and its result. */
import { type BodyOf, call, type DataOf } from "@/api/client";

export type Asked = BodyOf<"actions/providers/testProvider">;
export type Tested = DataOf<"actions/providers/testProvider">;
export const testProvider = (asked: Asked) => call("actions/providers/testProvider", asked);
