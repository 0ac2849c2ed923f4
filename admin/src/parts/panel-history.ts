/**
 * A panel in the browser's history: opening it adds an entry, so that Back closes it. On a phone,
 * where a panel covers its page, Back is a gesture that people expect to do so.
 */
import { useRouter } from "@tanstack/react-router";

declare module "@tanstack/history" {
  interface HistoryState {
    /** The entry is an open panel, and the one before it is the panel's page. */
    panel?: boolean;
  }
}

export interface PanelHistory {
  /** Options of the navigation that opens a panel; another row's takes the place of an open one. */
  opening: () => { replace: boolean; state: true | { panel: boolean } };
  /** Goes back to the panel's page; `replace` if the panel was not opened there, but by a link. */
  close: (replace: () => void) => void;
}

export function usePanelHistory(isOpen: boolean): PanelHistory {
  const { history } = useRouter();
  return {
    opening: () =>
      isOpen || history.location.state.panel
        ? { replace: true, state: true }
        : { replace: false, state: { panel: true } },
    close: (replace) => {
      if (history.location.state.panel) history.back();
      else replace();
    },
  };
}
