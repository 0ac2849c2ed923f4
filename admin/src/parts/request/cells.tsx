/** The cells of the tables about a cost. */
import type { ReactNode } from "react";
import { cx } from "@/ui/cx";

export const Head = ({ children, right }: { children: ReactNode; right?: boolean }) => (
  <th scope="col" className={cx("pb-1 font-medium", right ? "pl-4 text-right" : "text-left")}>
    {children}
  </th>
);
/** `span`: the number of columns. */
export const Cell = ({
  children,
  right,
  span,
}: {
  children?: ReactNode;
  right?: boolean;
  span?: number;
}) => (
  <td colSpan={span} className={cx("py-1 whitespace-nowrap", right && "tabular pl-4 text-right")}>
    {children}
  </td>
);
