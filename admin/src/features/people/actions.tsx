/** Actions on a user or a key. Those that stop something ask once. */
import { useQueryClient } from "@tanstack/react-query";
import { useTranslation } from "react-i18next";
import { call } from "@/api/client";
import * as queries from "@/api/queries";
import { type Question, useConfirm } from "@/ui/confirm";
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

  const remove = async (name: string, question: Question, work: () => Promise<unknown>) =>
    (await confirm(question)) && run(work, t("people.removed", { name }));
  /** `question`: asked before something is disabled. */
  const enable = async (on: boolean, question: Question, work: () => Promise<unknown>) =>
    (on || (await confirm(question))) && run(work, t("ui.saved"));

  return {
    removeUser: ({ id, name, keys }: User) =>
      remove(
        name,
        {
          title: t("people.removeUserTitle", { name }),
          body: t("people.removeUserBody", { count: keys.length }),
          action: t("people.removeUser"),
        },
        () => call("actions/users/removeUser", { userId: id }),
      ),
    removeKey: ({ id, name }: Key) =>
      remove(
        name,
        {
          title: t("people.removeKeyTitle", { name }),
          body: t("people.removeKeyBody"),
          action: t("people.removeKey"),
        },
        () => call("actions/keys/removeKey", { keyId: id }),
      ),
    setUser: ({ id, name }: User, isEnabled: boolean) =>
      enable(
        isEnabled,
        {
          title: t("people.disableUserTitle", { name }),
          body: t("people.disableUserBody"),
          action: t("people.disable"),
        },
        () => call("actions/users/editUser", { userId: id, isEnabled }),
      ),
    setKey: ({ id, name }: Key, enabled: boolean) =>
      enable(
        enabled,
        {
          title: t("people.disableKeyTitle", { name }),
          body: t("people.disableKeyBody"),
          action: t("people.disable"),
        },
        () => call("actions/keys/toggleKeyEnabled", { keyId: id, enabled }),
      ),
  };
}
