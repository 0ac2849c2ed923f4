/** How the web UI is built and tested: see README.md. */
import { fileURLToPath } from "node:url";
import tailwind from "@tailwindcss/vite";
import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";

/** The gateway that gets the API calls of `npm run dev`. */
const gateway = process.env.TOLLGATE_ADMIN ?? "http://127.0.0.1:8081";

export default defineConfig({
  plugins: [react(), tailwind()],
  resolve: { alias: { "@": fileURLToPath(new URL("./src", import.meta.url)) } },
  build: {
    // Nothing is inlined: the content security policy takes neither inline scripts nor data: fonts.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
  },
  server: { proxy: { "/api": { target: gateway, changeOrigin: true } } },
  test: {
    environment: "jsdom",
    include: ["src/**/*.test.{ts,tsx}"],
    setupFiles: ["src/test-setup.ts"],
    // Typing into a form takes seconds if several builds share two cores.
    testTimeout: 30_000,
  },
});
