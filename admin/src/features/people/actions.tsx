/** Actions on a user or a key. Those that stop something ask once. */
import { useQueryClient } from "@tanstack/react-query";
import { useTranslation } from "react-i18next";
import { call } from "@/api/client";
import * as queries from "@/api/queries";
import { useConfirm } from "@/ui/confirm";
import { useToast } from "@/ui/toast";
import type { Key, User } from "./values";

export function usePeopleActions() {
  const { t } = useTranslation();
  const cache = useQueryClient();
  const confirm = useConfirm();
  const toast = useToast();

  /** Whether the action was done. */
  const run = async (work: () => Promise<unknown>, done: string): Promise<boolean> => {
    try {
      await work();
    } catch (error) {
      toast.failed(error);
      return false;
    } finally {
      await cache.invalidateQueries({ queryKey: queries.keys.users });
    }
    toast.good(done);
    return true;
  };

  return {
    removeUser: async (user: User) => {
      const question = {
        title: t("people.removeUserTitle", { name: user.name }),
        body: t("people.removeUserBody", { count: user.keys.length }),
        action: t("people.removeUser"),
      };
      return (
        (await confirm(question)) &&
        run(
          () => call("actions/users/removeUser", { userId: user.id }),
          t("people.removed", { name: user.name }),
        )
      );
    },
    setUser: async (user: User, isEnabled: boolean) => {
      const question = {
        title: t("people.disableUserTitle", { name: user.name }),
        body: t("people.disableUserBody"),
        action: t("people.disable"),
      };
      if (!isEnabled && !(await confirm(question))) return false;
      return run(
        () => call("actions/users/editUser", { userId: user.id, isEnabled }),
        t("ui.saved"),
      );
    },
    removeKey: async (key: Key) => {
      const question = {
        title: t("people.removeKeyTitle", { name: key.name }),
        body: t("people.removeKeyBody"),
        action: t("people.removeKey"),
      };
      return (
        (await confirm(question)) &&
        run(
          () => call("actions/keys/removeKey", { keyId: key.id }),
          t("people.removed", { name: key.name }),
        )
      );
    },
    setKey: async (key: Key, enabled: boolean) => {
      const question = {
        title: t("people.disableKeyTitle", { name: key.name }),
        body: t("people.disableKeyBody"),
        action: t("people.disable"),
      };
      if (!enabled && !(await confirm(question))) return false;
      return run(
        () => call("actions/keys/toggleKeyEnabled", { keyId: key.id, enabled }),
        t("ui.saved"),
      );
    },
  };
}
