/** A setting of this browser (columns, density, theme), stored across visits. */
import { useCallback, useState } from "react";

export function useStored<T>(name: string, initial: T): [T, (value: T) => void] {
  const key = `tollgate.${name}`;
  const [value, setValue] = useState<T>(() => {
    try {
      const text = localStorage.getItem(key);
      return text === null ? initial : (JSON.parse(text) as T);
    } catch {
      return initial;
    }
  });
  const set = useCallback(
    (next: T) => {
      setValue(next);
      try {
        localStorage.setItem(key, JSON.stringify(next));
      } catch {
        // Without storage the setting lasts as long as the page.
      }
    },
    [key],
  );
  return [value, set];
}
