/** The entry point: language, cache, router, and the frame of every page. */
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { ApiError } from "@/api/client";
import { startLanguage } from "@/i18n";
import { ConfirmProvider } from "@/ui/confirm";
import { ToastProvider } from "@/ui/toast";
import { makeRouter } from "./router";
import "./style.css";

const cache = new QueryClient({
  defaultOptions: {
    // The gateway can be on this computer, so it can be reached without a network.
    mutations: { networkMode: "always" },
    queries: {
      networkMode: "always",
      staleTime: 5_000,
      refetchOnWindowFocus: false,
      // A refusal is not retried; a failed connection is. Queries that wait for the database are
      // read after the outage (`api/outage.ts`).
      retry: (failures, error) =>
        failures < 2 &&
        !(error instanceof ApiError && (error.away || (error.status >= 400 && error.status < 500))),
    },
  },
});
const router = makeRouter(cache);

await startLanguage();
const place = document.getElementById("root");
if (place) {
  createRoot(place).render(
    <StrictMode>
      <QueryClientProvider client={cache}>
        <ToastProvider>
          <ConfirmProvider>
            <RouterProvider router={router} />
          </ConfirmProvider>
        </ToastProvider>
      </QueryClientProvider>
    </StrictMode>,
  );
}
