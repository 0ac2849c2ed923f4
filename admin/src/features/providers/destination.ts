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

/** Another password for the same proxy changes no destination. */
const withoutPassword = (url: string) => url.replace(/^([a-z0-9]+:\/\/[^:@]*):.*@/i, "$1@");

/** The credential is exchanged for an access token or signs requests: its form is not a key's. */
const isExchanged = (auth: string) =>
  ["gcp-service-account", "azure-entra", "aws-sigv4"].includes(auth);

/** Line ends say nothing: a text field has its own. */
const lines = (pem: string) => pem.trim().split(/\r?\n/).join("\n");

/**
 * The change: the address's origin, the proxy, other authorities, or the kind of the credential.
 * `undefined` if the stored credential can be used.
 */
export function moved(
  provider: Provider | undefined,
  url: string,
  proxyUrl: string,
  auth = provider?.auth ?? "auto",
  authorities = provider?.tlsCa ?? "",
): "address" | "proxy" | "authorities" | "auth" | undefined {
  if (!provider) return undefined;
  if (url.trim() !== provider.url && origin(url.trim()) !== origin(provider.url)) return "address";
  if (withoutPassword(proxyUrl.trim()) !== withoutPassword(provider.proxyUrl ?? "")) return "proxy";
  if (authorities.trim() !== "" && lines(authorities) !== lines(provider.tlsCa ?? ""))
    return "authorities";
  if (auth !== provider.auth && [auth, provider.auth].some(isExchanged)) return "auth";
  return undefined;
}
