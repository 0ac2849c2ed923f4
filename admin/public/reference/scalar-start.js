// Draws the API reference from the gateway's own description. It loads nothing from other hosts: no
// fonts, no proxy, no reports. It runs before Scalar's script, whose checks would otherwise first
// try to evaluate code from text.
globalThis.__zod_globalConfig = { jitless: true };

const theme = localStorage.getItem("tollgate.theme");

addEventListener("DOMContentLoaded", async () => {
  const reply = await fetch("/api/actions/openapi.json");
  const description = await reply.json();
  globalThis.Scalar.createApiReference("#reference", {
    // Requests that are tried out go to this page's origin: the policy allows no other.
    content: { ...description, servers: [{ url: location.origin }] },
    authentication: { preferredSecurityScheme: "bearer" },
    defaultHttpClient: { targetKey: "shell", clientKey: "curl" },
    ...(theme === "dark" || theme === "light" ? { forceDarkModeState: theme } : {}),
    theme: "default",
    withDefaultFonts: false,
    telemetry: false,
    hideClientButton: true,
    showDeveloperTools: "never",
    agent: { disabled: true },
    mcp: { disabled: true },
  });
});
