/** A section of a request's details, with its heading. */
import type { ReactNode } from "react";

export function Part({ title, children }: { title: string; children: ReactNode }) {
  return (
    <section>
      <h3 className="mb-2">{title}</h3>
      {children}
    </section>
  );
}
