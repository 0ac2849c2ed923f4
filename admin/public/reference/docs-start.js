// Draws the classic API reference from the gateway's own description. It loads nothing from other
// hosts.
const chosen = localStorage.getItem("tollgate.theme");
const system = matchMedia("(prefers-color-scheme: dark)");
const paint = () =>
  document.documentElement.classList.toggle(
    "dark-mode",
    chosen === "dark" || (chosen !== "light" && system.matches),
  );
paint();
system.addEventListener("change", paint);

addEventListener("DOMContentLoaded", async () => {
  const reply = await fetch("/api/actions/openapi.json");
  const description = await reply.json();
  globalThis.SwaggerUIBundle({
    domNode: document.getElementById("reference"),
    // Requests that are tried out go to this page's origin: the policy allows no other.
    spec: { ...description, servers: [{ url: location.origin }] },
    docExpansion: "list",
    // No badge of an external validator.
    validatorUrl: null,
  });
});
