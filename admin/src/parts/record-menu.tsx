/** The menu of a record: enable or disable it, other actions, and below a line its deletion. */
import { CirclePause, CirclePlay, MoreHorizontal, Trash2 } from "lucide-react";
import { useTranslation } from "react-i18next";
import { IconButton } from "@/ui/button";
import { type Action, Menu } from "@/ui/menu";

/** The look of an icon in the menu. */
export const ICON = "size-4 text-faint";

interface Props {
  label: string;
  isEnabled: boolean;
  /** Disables an enabled record, and the other way around. */
  onToggle: () => void;
  before?: Action[];
  after?: Action[];
  /** The label of the deletion. */
  removal: string;
  onRemove: () => void;
}

export function RecordMenu(props: Props) {
  const { label, isEnabled, onToggle, before = [], after = [], removal, onRemove } = props;
  const { t } = useTranslation();
  const Toggle = isEnabled ? CirclePause : CirclePlay;
  return (
    <Menu
      trigger={
        <IconButton
          size="sm"
          label={label}
          icon={<MoreHorizontal className="size-4" aria-hidden />}
        />
      }
      actions={[
        ...before,
        {
          label: isEnabled ? t("people.disable") : t("people.enable"),
          icon: <Toggle className={ICON} aria-hidden />,
          onSelect: onToggle,
        },
        ...after,
        "line",
        {
          label: removal,
          icon: <Trash2 className="size-4" aria-hidden />,
          danger: true,
          onSelect: onRemove,
        },
      ]}
    />
  );
}
