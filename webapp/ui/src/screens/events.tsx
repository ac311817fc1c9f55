// SPDX-License-Identifier: MIT
// What happens to jobs, as it happens.
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { Fault } from "../api/client";
import { listen, type ServerEvent } from "../api/sse";
import { states, type EventList } from "../generated/contract";
import { paused, still } from "../live";
import { adjust, href, place } from "../route";
import { Empty, FaultNotice } from "../view/notice";
import { Condition, State, words } from "../view/state";
import { Table, type Column } from "../view/table";
import { Time } from "../view/time";

const KEPT = 200;
const SHOWN_EVERY_MS = 250;

type SiteEvent = EventList["events"][number] & {
  readonly job: string;
  readonly name: string;
  readonly owner: string;
  readonly queue: string;
};

const columns: readonly Column<SiteEvent>[] = [
  { key: "at", head: "When", cell: (event) => <Time at={event.at} /> },
  { key: "job", head: "Job", wide: true, cell: (event) => <a href={href(["jobs", event.job])}>{event.name}</a> },
  { key: "to", head: "State", cell: (event) => <State of={event.to} /> },
  { key: "kind", head: "What", cell: (event) => words(event.kind) },
  { key: "condition", head: "Reason", cell: (event) => <Condition of={event.condition} /> },
  { key: "queue", head: "Queue", cell: (event) => event.queue },
  { key: "by", head: "By", cell: (event) => event.actor ?? (event.worker ? `worker ${event.worker.slice(-8)}` : "–") },
  { key: "seq", head: "Number", number: true, cell: (event) => event.seq },
];

interface Shown {
  readonly events: readonly SiteEvent[];
  readonly fault: Fault | null;
}

/** The newest first. Taken up again behind the last one after a pause. */
function useEvents(type: string, queue: string, job: string): Shown {
  const [shown, setShown] = useState<Shown>({ events: [], fault: null });
  const cursor = useRef({ id: "" });
  const isStill = still.value;
  useEffect(() => {
    if (isStill) return undefined;
    const abort = new AbortController();
    let fresh: SiteEvent[] = [];
    const show = setInterval(() => {
      if (fresh.length === 0) return;
      const more = fresh.reverse();
      fresh = [];
      setShown((old) => ({ ...old, events: [...more, ...old.events].slice(0, KEPT) }));
    }, SHOWN_EVERY_MS);
    const onEvent = (event: ServerEvent): void => {
      if (event.type === "job") fresh.push(JSON.parse(event.data) as SiteEvent);
    };
    const query = { type, queue, job };
    const onState = (fault: Fault | null): void => setShown((old) => ({ ...old, fault }));
    void listen("events", { query, signal: abort.signal }, { onEvent, onState }, cursor.current);
    return () => {
      abort.abort();
      clearInterval(show);
    };
  }, [type, queue, job, isStill]);
  return shown;
}

function Chooser({ type, queue, job }: { type: string; queue: string; job: string }): JSX.Element {
  return (
    <div class="fields">
      <div class="field">
        <label for="type">State that it leads to</label>
        <select id="type" value={type} onChange={(event) => adjust({ type: event.currentTarget.value || undefined })}>
          <option value="">every state</option>
          {states.map((state) => (
            <option key={state} value={state}>
              {words(state)}
            </option>
          ))}
        </select>
      </div>
      <div class="field">
        <label for="queue">Queue</label>
        <input id="queue" type="search" value={queue} onChange={(event) => adjust({ queue: event.currentTarget.value || undefined })} />
      </div>
      <div class="field">
        <label for="job">Id of a job</label>
        <input id="job" type="search" value={job} onChange={(event) => adjust({ job: event.currentTarget.value.trim() || undefined })} />
      </div>
    </div>
  );
}

function Stream(props: { type: string; queue: string; job: string }): JSX.Element {
  const { events, fault } = useEvents(props.type, props.queue, props.job);
  return (
    <>
      {fault && <FaultNotice fault={fault} />}
      <Table
        label="Events"
        columns={columns}
        rows={events}
        idOf={(event) => String(event.seq)}
        empty={
          <Empty title={paused.value ? "Paused" : "Nothing has happened since you came"}>
            <p>{paused.value ? "Press “Paused” to go on." : "Events appear here as they happen."}</p>
          </Empty>
        }
      />
    </>
  );
}

export function Events(): JSX.Element {
  const { query } = place.value;
  const chosen = { type: query.get("type") ?? "", queue: query.get("queue") ?? "", job: query.get("job") ?? "" };
  return (
    <>
      <h1>Events</h1>
      <p class="lead">What happens to jobs, newest first; the last {KEPT} are shown.</p>
      <Chooser {...chosen} />
      <Stream key={JSON.stringify(chosen)} {...chosen} />
    </>
  );
}
