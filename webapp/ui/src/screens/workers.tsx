// SPDX-License-Identifier: MIT
// The fleet of the tenant.
import type { JSX } from "preact";
import { call } from "../api/client";
import type { Worker } from "../generated/contract";
import { useLive } from "../live";
import { href } from "../route";
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
  { key: "beat", head: "Last beat", number: true, cell: (worker) => `${span(worker.beatAgeSeconds)} ago` },
  { key: "host", head: "Host, process", cell: (worker) => `${worker.host}, ${worker.pid}` },
  { key: "version", head: "Version", cell: (worker) => worker.version },
  { key: "started", head: "Started", cell: (worker) => <Time at={worker.started} /> },
  {
    key: "jobs",
    head: "Jobs",
    cell: (worker) => <a href={href(["jobs"], { filter: `worker = '${worker.id}'` })}>its jobs</a>,
  },
  { key: "acts", head: "Acts", cell: (worker) => <WorkerActs worker={worker} onDone={onDone} /> },
];

/** Live ones first. */
function inOrder(workers: readonly Worker[]): readonly Worker[] {
  return [...workers].sort((a, b) => Number(b.state === "live") - Number(a.state === "live") || a.name.localeCompare(b.name));
}

export function Workers(): JSX.Element {
  const live = useLive("workers", (signal) => call("worker_list", { signal }));
  return (
    <>
      <h1>Workers</h1>
      <Loaded live={live}>
        {({ workers }) => (
          <Table
            label="Workers"
            columns={columnsFor(live.reload)}
            rows={inOrder(workers)}
            idOf={(worker) => worker.id}
            empty={
              <Empty title="No worker serves this tenant">
                <p>
                  Jobs wait until one does: start <code>sluice-worker</code> with a queue of this tenant.
                </p>
              </Empty>
            }
          />
        )}
      </Loaded>
    </>
  );
}
