/** Dark or light: by default the system's. `public/first.js` sets it before the first paint. */
import { useState } from "react";

export type Theme = "system" | "light" | "dark";
const STORED = "tollgate.theme";

export function useTheme(): [Theme, (theme: Theme) => void] {
  const [theme, setTheme] = useState<Theme>(() => {
    const stored = localStorage.getItem(STORED);
    return stored === "light" || stored === "dark" ? stored : "system";
  });
  return [
    theme,
    (next) => {
      if (next === "system") {
        localStorage.removeItem(STORED);
        delete document.documentElement.dataset.theme;
      } else {
        localStorage.setItem(STORED, next);
        document.documentElement.dataset.theme = next;
      }
      setTheme(next);
    },
  ];
}
