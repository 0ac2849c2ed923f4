/** Whether a form would send the stored credential elsewhere, so that it must be entered again. Pure. */
import type { Provider } from "./selection";

/** Scheme, host and port; an address that cannot be read is only the same as itself. */
function origin(url: string): string {
  try {
    return new URL(url).origin;
  } catch {
    return url;
  }
}

/** What was changed: the address's origin, or the proxy. `undefined`: the stored credential goes where it went before. */
export function moved(provider: Provider | undefined, url: string, proxyUrl: string): "address" | "proxy" | undefined {
  if (!provider) return undefined;
  if (url.trim() !== provider.url && origin(url.trim()) !== origin(provider.url)) return "address";
  if (proxyUrl.trim() !== (provider.proxyUrl ?? "")) return "proxy";
  return undefined;
}
