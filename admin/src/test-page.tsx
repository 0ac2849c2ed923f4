/** Renders a part of a page in English for a test, with router, cache, toasts and dialogs. */
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import {
  createMemoryHistory,
  createRootRoute,
  createRouter,
  RouterContextProvider,
} from "@tanstack/react-router";
import { render } from "@testing-library/react";
import i18n from "i18next";
import type { ReactNode } from "react";
import { initReactI18next } from "react-i18next";
import en from "@/i18n/en.json";
import { ConfirmProvider } from "@/ui/confirm";
import { ToastProvider } from "@/ui/toast";

export async function renderPart(part: ReactNode) {
  if (!i18n.isInitialized) {
    await i18n.use(initReactI18next).init({
      lng: "en",
      resources: { en: { translation: en } },
      interpolation: { escapeValue: false },
    });
  }
  const cache = new QueryClient({ defaultOptions: { queries: { retry: false } } });
  const router = createRouter({ routeTree: createRootRoute(), history: createMemoryHistory() });
  const whole = (inner: ReactNode) => (
    <QueryClientProvider client={cache}>
      <ToastProvider>
        <ConfirmProvider>
          <RouterContextProvider router={router as never}>{inner}</RouterContextProvider>
        </ConfirmProvider>
      </ToastProvider>
    </QueryClientProvider>
  );
  const page = render(whole(part));
  const show = (other: ReactNode) => page.rerender(whole(other));
  return { ...page, router, cache, show };
}
