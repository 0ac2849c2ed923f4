/** A logged request as a curl command. Pure. */
import { curlLine, exampleRequest, type Format } from "@/api/client-settings";
import type { Entry } from "@/parts/request/entry";

export interface Stored {
  request: unknown;
  requestTruncated: boolean;
}
type Asked = Pick<Entry, "clientFormat" | "model" | "endpoint" | "streamed">;

/**
 * `own`: with the stored body of the request; otherwise a small one of the same format, model and
 * kind.
 */
export function toCurl(
  entry: Asked,
  base: string,
  stored: Stored | null,
): { text: string; own: boolean } {
  const format = entry.clientFormat as Format;
  const example = exampleRequest(format, entry.model, entry.streamed);
  const own = stored !== null && !stored.requestTruncated && typeof stored.request === "object";
  const path = own ? withQuery(entry.endpoint, example.path) : example.path;
  const body = JSON.stringify(own ? stored.request : example.body);
  return {
    text: curlLine({ base, path, body, stream: entry.streamed, native: format === "native" }),
    own,
  };
}

/** The log has paths without a query; an alt-cli stream needs one. */
function withQuery(endpoint: string, example: string): string {
  const query = example.split("?")[1];
  return query && endpoint.endsWith(":streamGenerateContent") ? `${endpoint}?${query}` : endpoint;
}
