// Draws the API reference from the gateway's own description, with nothing from anywhere else: no fonts, no proxy, no reports.
// Comes before Scalar's script, whose checks would otherwise try first whether they may make code from text.
globalThis.__zod_globalConfig = { jitless: true };

const theme = localStorage.getItem("tollgate.theme");

addEventListener("DOMContentLoaded", async () => {
  const reply = await fetch("/api/actions/openapi.json");
  const description = await reply.json();
  globalThis.Scalar.createApiReference("#reference", {
    // Requests that are tried out go to where this page is from: its policy lets them go nowhere else.
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
