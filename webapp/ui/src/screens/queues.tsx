// SPDX-License-Identifier: MIT
// Queues in the order in which they are tried, and which of them would take a request.
import type { JSX } from "preact";
import { call } from "../api/client";
import { may } from "../api/session";
import type { Queue } from "../generated/contract";
import { useLive } from "../live";
import { href } from "../route";
import { Empty, Loaded } from "../view/notice";
import { State } from "../view/state";
import { Table, type Column } from "../view/table";
import { span } from "../view/time";
import { Explain } from "./explain";
import { NEW } from "./queue_edit";

export function longestWait(queue: Queue): string {
  if (queue.longestWaitSeconds === null) return "–";
  return `${queue.longestWaitIsBound ? "below " : ""}${span(queue.longestWaitSeconds)}`;
}

/** Whether somebody takes its jobs: a word, and bad only if jobs wait for nobody. */
export function served(queue: Queue): string {
  if (queue.takers > 0) return "served";
  const why = queue.workers > 0 ? "all drained" : "no worker";
  return queue.waiting.count > 0 ? why : `${why}, nothing waits`;
}

export function waitingOf(queue: Queue): JSX.Element {
  const { count, isMore } = queue.waiting;
  return (
    <a href={href(["jobs"], { filter: `queue = '${queue.name}'`, status: "PENDING,QUEUED" })}>
      {count.toLocaleString("en")}
      {isMore && "+"}
    </a>
  );
}

export function workersOf(queue: Queue): JSX.Element {
  return (
    <a href={href(["workers"], { queue: queue.name })}>
      {queue.takers === queue.workers ? queue.workers : `${queue.takers} of ${queue.workers} take jobs`}
    </a>
  );
}

export const MESSAGES = "Messages in the broker: of waiting jobs, and of jobs that have ended since, until a worker looks at them.";

const columns: readonly Column<Queue>[] = [
  { key: "priority", head: "Priority", number: true, cell: (queue) => queue.priority },
  { key: "name", head: "Queue", cell: (queue) => <a href={href(["queues", queue.name])}>{queue.name}</a> },
  {
    key: "filter",
    head: "Filter",
    wide: true,
    cell: (queue) =>
      queue.filter ? (
        <code>{queue.filter}</code>
      ) : (
        <span class="muted">{queue.isDefault ? "takes what no other takes" : "none: takes nothing"}</span>
      ),
  },
  { key: "state", head: "State", cell: (queue) => <State of={queue.enabled ? "enabled" : "disabled"} /> },
  { key: "served", head: "Served", cell: (queue) => <State of={served(queue)} /> },
  { key: "waiting", head: "Jobs waiting", number: true, cell: waitingOf },
  { key: "wait", head: "Longest wait", number: true, cell: longestWait },
  { key: "slots", head: "Slots busy", number: true, cell: (queue) => `${queue.busy} of ${queue.slots}` },
  { key: "workers", head: "Workers", number: true, cell: workersOf },
  { key: "depth", head: "Messages", title: MESSAGES, number: true, cell: (queue) => queue.depth ?? "unknown" },
  { key: "consumers", head: "Consumers", number: true, cell: (queue) => queue.consumers ?? "unknown" },
  { key: "type", head: "Type", cell: (queue) => queue.queueType },
];

export function Queues(): JSX.Element {
  const live = useLive("queues", (signal) => call("queue_list", { signal }));
  return (
    <>
      <div class="bar">
        <h1>Queues</h1>
        {may("queue_put") && (
          <a class="button" href={href(["queues", NEW])}>
            New queue
          </a>
        )}
      </div>
      <p class="lead">The first whose filter is true takes the job.</p>
      <Loaded live={live}>
        {({ queues }) => (
          <Table
            label="Queues"
            columns={columns}
            rows={queues}
            idOf={(queue) => queue.name}
            empty={<Empty title="There is no queue" />}
          />
        )}
      </Loaded>
      {may("queue_explain") && <Explain />}
    </>
  );
}
