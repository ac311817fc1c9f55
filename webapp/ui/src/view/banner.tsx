// SPDX-License-Identifier: MIT
// What is wrong now, above every screen. It names times, not ages: what is read aloud does not change
// each second.
import type { ComponentChildren, JSX } from "preact";
import { identity, may } from "../api/session";
import type { Overview } from "../generated/contract";
import { attention, broker, database, freshness, isOld, keys, lost, oldest, unserved } from "../health";
import { href } from "../route";
import { exact } from "./time";

const QUEUES = 3;

interface Line {
  readonly key: string;
  readonly title: string;
  readonly more: ComponentChildren;
  readonly calm?: boolean;
}

function asOf(): string {
  return oldest.value === null ? "" : `What is shown is as of ${exact(oldest.value)}.`;
}

function connection(): Line | null {
  if (freshness.value === "Paused")
    return isOld.value ? { key: "paused", title: "Paused", more: `${asOf()} Press “Paused” to go on.`, calm: true } : null;
  if (lost.value !== null)
    return {
      key: "lost",
      title: navigator.onLine ? `The service has not answered since ${exact(lost.value)}` : "This browser is offline",
      more: `${asOf()} Check that sluice-web runs and that the network works; the page tries again by itself.`,
    };
  if (database.value !== "up" && database.value !== "unknown")
    return {
      key: "database",
      title: "The database is down",
      more: `${asOf()} Nothing can be read or submitted, and nothing starts; running jobs go on. ${database.value}.`,
    };
  if (isOld.value || freshness.value === "Stale")
    return { key: "stale", title: "What is shown is old", more: `${asOf()} No newer answer has come; the page tries again by itself.` };
  return null;
}

function brokerLine(): Line | null {
  const said = broker.value;
  if (said === "up" || said === "unknown") return null;
  const blocked = said.startsWith("blocked");
  return {
    key: "broker",
    title: blocked ? "The broker takes no messages" : "The broker is down",
    more: blocked ? `It is ${said}.` : "Jobs are accepted and start when it is back; running jobs go on.",
  };
}

export function jobsWait(waiting: { count: number; isMore: boolean }): string {
  return `${waiting.isMore ? "at least " : ""}${waiting.count.toLocaleString("en")} job${waiting.count === 1 ? " waits" : "s wait"}`;
}

function unservedLine(one: Overview["unserved"][number]): Line {
  const tenant = identity.value?.tenant ?? "TENANT";
  const start = <code>{`sluice-worker --tenant ${tenant} --queue ${one.queue}`}</code>;
  const asked = Date.parse(attention.value?.time ?? "");
  const since = `the oldest since ${exact(asked - one.longestWaitSeconds * 1000)}`;
  return {
    key: `queue ${one.queue}`,
    title: one.workers
      ? `Queue ${one.queue}: ${jobsWait(one.waiting)} and every worker is drained`
      : `Queue ${one.queue}: ${jobsWait(one.waiting)} and no worker serves it`,
    more: (
      <>
        <a href={href(["queues", one.queue])}>Show its details</a>; {since}.{" "}
        {one.workers > 0 && (
          <>
            Resume one of its <a href={href(["workers"], { queue: one.queue })}>workers</a>, or start another:{" "}
          </>
        )}
        {one.workers === 0 && "Start one: "}
        {start}
      </>
    ),
  };
}

function lines(): readonly Line[] {
  const queues = unserved.value;
  const more = queues.length - QUEUES;
  const found = [
    connection(),
    brokerLine(),
    keys.value === "up" ? null : { key: "keys", title: "Keys cannot be read", more: `${keys.value}.` },
    ...queues.slice(0, QUEUES).map(unservedLine),
    more > 0 && may("queue_list")
      ? { key: "more", title: `${more} more queues have waiting jobs and no worker`, more: <a href={href(["queues"])}>All queues</a> }
      : null,
  ];
  return found.filter((line): line is Line => line !== null);
}

export function Banner(): JSX.Element {
  return (
    <div class="banners" role="status" aria-label="What is wrong now">
      {lines().map((line) => (
        <p key={line.key} class={line.calm ? "banner" : "banner bad"}>
          <strong>{line.title}.</strong> {line.more}
        </p>
      ))}
    </div>
  );
}
