// SPDX-License-Identifier: MIT
// The fleet of the tenant.
import type { JSX } from "preact";
import { call } from "../api/client";
import type { Worker } from "../generated/contract";
import { useLive } from "../live";
import { href, place } from "../route";
import { Empty, Loaded } from "../view/notice";
import { State } from "../view/state";
import { Table, type Column } from "../view/table";
import { span, Time } from "../view/time";
import { WorkerActs } from "./worker_acts";

const columnsFor = (onDone: () => void): readonly Column<Worker>[] => [
  { key: "name", head: "Worker", cell: (worker) => worker.name },
  { key: "state", head: "State", cell: (worker) => <State of={worker.draining && worker.state === "live" ? "draining" : worker.state} /> },
  { key: "queue", head: "Queue", cell: (worker) => <a href={href(["queues", worker.queue])}>{worker.queue}</a> },
  { key: "slots", head: "Slots busy", number: true, cell: (worker) => `${worker.busy} of ${worker.slots}` },
  { key: "beat", head: "Last heartbeat", number: true, cell: (worker) => `${span(worker.beatAgeSeconds)} ago` },
  { key: "host", head: "Host, process", cell: (worker) => `${worker.host}, ${worker.pid}` },
  { key: "version", head: "Version", cell: (worker) => worker.version },
  { key: "started", head: "Started", cell: (worker) => <Time at={worker.started} /> },
  {
    key: "jobs",
    head: "Jobs",
    cell: (worker) => <a href={href(["jobs"], { filter: `worker = '${worker.id}'` })}>its jobs</a>,
  },
  { key: "acts", head: "Actions", cell: (worker) => <WorkerActs worker={worker} onDone={onDone} /> },
];

/** Live ones first. */
function inOrder(workers: readonly Worker[]): readonly Worker[] {
  return [...workers].sort((a, b) => Number(b.state === "live") - Number(a.state === "live") || a.name.localeCompare(b.name));
}

/** Those of one queue, or the one that a job names, if the address says so. */
function chosen(workers: readonly Worker[]): readonly Worker[] {
  const queue = place.value.query.get("queue");
  const id = place.value.query.get("worker");
  return workers.filter((worker) => (!queue || worker.queue === queue) && (!id || worker.id === id));
}

function Chosen(): JSX.Element | null {
  const { query } = place.value;
  const queue = query.get("queue");
  if (!queue && !query.get("worker")) return null;
  return (
    <p class="lead">
      {queue ? `Only those of queue ${queue}.` : "Only the one that the job names."} <a href={href(["workers"])}>Show all</a>
    </p>
  );
}

export function Workers(): JSX.Element {
  const live = useLive("workers", (signal) => call("worker_list", { signal }));
  const narrowed = place.value.query.has("queue") || place.value.query.has("worker");
  return (
    <>
      <h1>Workers</h1>
      <Chosen />
      <Loaded live={live}>
        {({ workers }) => (
          <Table
            label="Workers"
            columns={columnsFor(live.reload)}
            rows={inOrder(chosen(workers))}
            idOf={(worker) => worker.id}
            empty={
              narrowed ? (
                <Empty title="No such worker">
                  <p>None has lived here within the last hour. “Show all” has the others.</p>
                </Empty>
              ) : (
                <Empty title="No worker serves this tenant">
                  <p>
                    Jobs wait until one does: start <code>sluice-worker</code> with a queue of this tenant.
                  </p>
                </Empty>
              )
            }
          />
        )}
      </Loaded>
    </>
  );
}
