/** Sends a request with a key through the proxy; shows the reply, its cost and its decisions. */

import { Link } from "@tanstack/react-router";
import { FlaskConical } from "lucide-react";
import { useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import { useIsAdmin, useUsers } from "@/parts/session";
import { buttonLook } from "@/ui/button";
import { Empty, Failed, Loading } from "@/ui/empty";
import { Card, Page } from "@/ui/page";
import { Answer } from "./answer";
import { batchOf, isBatch } from "./batch";
import { BatchCard } from "./batch-card";
import { Explained, useExplained } from "./explained";
import { AskForm } from "./form";
import { Record } from "./record";
import type { toSend } from "./request";
import { isRunning, type Run, useRun } from "./run";

export function PlaygroundPage() {
  const { t } = useTranslation();
  const { data: users, error, refetch } = useUsers();
  return (
    <Page title={t("nav.playground")} help={t("playground.help")}>
      {error && users === undefined ? (
        <Failed error={error} retry={() => void refetch()} />
      ) : users === undefined ? (
        <Loading />
      ) : users.some((user) => user.keys.length > 0) ? (
        <Bench users={users} />
      ) : (
        <NoKey />
      )}
    </Page>
  );
}

function NoKey() {
  const { t } = useTranslation();
  return (
    <Card>
      <Empty
        icon={<FlaskConical className="size-6" aria-hidden />}
        title={t("playground.noKey")}
        action={
          <Link to="/people" className={buttonLook("primary")}>
            {t("playground.toPeople")}
          </Link>
        }
      >
        {t("playground.noKeyHelp")}
      </Empty>
    </Card>
  );
}

function Bench({ users }: { users: NonNullable<ReturnType<typeof useUsers>["data"]> }) {
  const { t } = useTranslation();
  const admin = useIsAdmin();
  const { run, send, stop } = useRun();
  const explained = useExplained();
  const [asked, setAsked] = useState<ReturnType<typeof toSend>>();
  const reply = useRef<HTMLDivElement>(null);
  return (
    <div className="grid grid-cols-1 items-start gap-4 lg:grid-cols-[24rem_minmax(0,1fr)]">
      <AskForm
        users={users}
        running={isRunning(run)}
        onExplain={admin ? explained.ask : undefined}
        onSend={(asked) => {
          explained.clear();
          setAsked(asked);
          void send(asked);
          // On a phone the reply comes below the form.
          if (matchMedia("(width < 64rem)").matches)
            reply.current?.scrollIntoView({ block: "start" });
        }}
        onStop={stop}
      />
      <div ref={reply} className="min-w-0 scroll-mt-4 space-y-4">
        <Explained answer={explained} />
        {explained.isShown ? null : run === undefined ? (
          <Card>
            <Empty
              icon={<FlaskConical className="size-6" aria-hidden />}
              title={t("playground.empty")}
            >
              {t("playground.emptyHelp")}
            </Empty>
          </Card>
        ) : (
          <>
            <Answer run={run} />
            {asked && <MadeBatch run={run} asked={asked} />}
            {!isRunning(run) && run.requestId !== undefined && (
              <Record
                key={run.requestId}
                requestId={run.requestId}
                status={run.status}
                admin={admin}
              />
            )}
          </>
        )}
      </div>
    </div>
  );
}

/** The batch that a request made. */
function MadeBatch({ run, asked }: { run: Run; asked: ReturnType<typeof toSend> }) {
  const { keyId, endpoint } = asked;
  if (isRunning(run) || run.status !== 200 || !isBatch(endpoint)) return null;
  const made = batchOf(endpoint, run.reply.body);
  return made && <BatchCard key={made.id} keyId={keyId} endpoint={endpoint} made={made} />;
}
