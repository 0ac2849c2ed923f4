/** Whether a form changes the credential's destination, so that it must be entered again. Pure. */
import type { Provider } from "./selection";

/** Scheme, host and port; an address that cannot be read is only the same as itself. */
function origin(url: string): string {
  try {
    return new URL(url).origin;
  } catch {
    return url;
  }
}

/** The change: the address's origin, or the proxy. `undefined` if the destination is the same. */
export function moved(
  provider: Provider | undefined,
  url: string,
  proxyUrl: string,
): "address" | "proxy" | undefined {
  if (!provider) return undefined;
  if (url.trim() !== provider.url && origin(url.trim()) !== origin(provider.url)) return "address";
  if (proxyUrl.trim() !== (provider.proxyUrl ?? "")) return "proxy";
  return undefined;
}
