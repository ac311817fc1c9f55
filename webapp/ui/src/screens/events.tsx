// SPDX-License-Identifier: MIT
// What happens to jobs, as it happens.
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { Fault } from "../api/client";
import { listen, streamPlace, type ServerEvent } from "../api/sse";
import { states, type EventList } from "../generated/contract";
import { paused, still, STREAM_QUIET_MS } from "../live";
import { adjust, href, place } from "../route";
import { Empty, FaultNotice } from "../view/notice";
import { Condition, JobState, words } from "../view/state";
import { Table, type Column } from "../view/table";
import { Time } from "../view/time";

const KEPT = 200;
const SHOWN_EVERY_MS = 250;
const BACK = 1000; /* numbers of events: there is one sequence for the whole site */
const GONE = 410;

type SiteEvent = EventList["events"][number] & {
  readonly job: string;
  readonly name: string;
  readonly owner: string;
  readonly queue: string;
};

const columns: readonly Column<SiteEvent>[] = [
  { key: "at", head: "When", cell: (event) => <Time at={event.at} /> },
  { key: "job", head: "Job", wide: true, cell: (event) => <a href={href(["jobs", event.job])}>{event.name}</a> },
  { key: "to", head: "State", cell: (event) => <JobState of={event.to} /> },
  { key: "kind", head: "What", cell: (event) => words(event.kind) },
  { key: "condition", head: "Reason", cell: (event) => <Condition of={event.condition} /> },
  { key: "queue", head: "Queue", cell: (event) => event.queue },
  { key: "by", head: "By", cell: (event) => event.actor ?? (event.worker ? `worker …${event.worker.slice(-8)}` : "–") },
  { key: "seq", head: "Number", number: true, cell: (event) => event.seq },
];

interface Shown {
  readonly events: readonly SiteEvent[];
  readonly fault: Fault | null;
}

/** The id so many numbers ago; "" if that cannot be found out: it begins now then. */
async function placeBefore(options: { query: Record<string, string>; signal: AbortSignal }, back: number): Promise<string> {
  try {
    return String(Math.max(0, (await streamPlace("events", options)) - back));
  } catch {
    return "";
  }
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
    const begin = async (back: number): Promise<void> => {
      const options = { query, signal: abort.signal };
      if (!cursor.current.id && back > 0) cursor.current.id = await placeBefore(options, back);
      const onState = (fault: Fault | null): void => {
        if (fault?.status !== GONE) return setShown((old) => ({ ...old, fault }));
        cursor.current.id = ""; // what was before is removed
        void begin(0);
      };
      await listen("events", { ...options, quietMs: STREAM_QUIET_MS }, { onEvent, onState }, cursor.current);
    };
    void begin(BACK);
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
        <label for="type">New state</label>
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
          <Empty title={paused.value ? "Paused" : "Nothing of this kind has happened lately"}>
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
      <p class="lead">What happened to jobs lately and what happens now, newest first; the last {KEPT} are shown.</p>
      <Chooser {...chosen} />
      <Stream key={JSON.stringify(chosen)} {...chosen} />
    </>
  );
}
