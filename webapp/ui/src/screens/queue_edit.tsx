// SPDX-License-Identifier: MIT
// One queue: what it takes. Its filter is checked while it is written.
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { call, faultOf, type Fault } from "../api/client";
import { may } from "../api/session";
import { ended, states, type Queue, type QueuePut } from "../generated/contract";
import { useLive } from "../live";
import { go, href } from "../route";
import { Details } from "../view/details";
import { ask, tell } from "../view/dialog";
import { NumberField } from "../view/fields";
import { FilterBox, useCheck } from "../view/filter_box";
import { FaultNotice, Loaded } from "../view/notice";
import { State } from "../view/state";
import { Time } from "../view/time";
import { longestWait, MESSAGES, served, waitingOf, workersOf } from "./queues";

export const NEW = "+"; /* no queue is called so */

/** Above all others, in steps of ten: a new queue with a filter is tried before what is there. */
function freePriority(queues: readonly Queue[]): number {
  const most = Math.max(0, ...queues.map((queue) => queue.priority));
  return Math.floor(most / 10) * 10 + 10;
}

function bodyOf(queue: Queue | null, priority: number): QueuePut {
  return {
    priority: queue?.priority ?? priority,
    filter: queue?.filter ?? null,
    enabled: queue?.enabled ?? true,
    maxMinutes: queue?.maxMinutes ?? null,
    description: queue?.description ?? "",
    queueType: queue?.queueType ?? "quorum",
  };
}

function Fields({ body, onBody, isNew }: { body: QueuePut; onBody: (body: QueuePut) => void; isNew: boolean }): JSX.Element {
  return (
    <div class="fields">
      <NumberField
        id="priority"
        label="Priority (higher is tried first)"
        value={body.priority}
        onValue={(priority) => onBody({ ...body, priority: priority ?? 0 })}
      />
      <NumberField
        id="minutes"
        label="Longest job in minutes"
        value={body.maxMinutes}
        onValue={(maxMinutes) => onBody({ ...body, maxMinutes })}
      />
      <div class="field">
        <label for="type">Type{isNew ? "" : " (fixed once it is made)"}</label>
        <select
          id="type"
          disabled={!isNew}
          value={body.queueType ?? "quorum"}
          onChange={(event) => onBody({ ...body, queueType: event.currentTarget.value === "classic" ? "classic" : "quorum" })}
        >
          <option value="quorum">quorum: outlives a lost broker node</option>
          <option value="classic">classic: for long jobs on one broker</option>
        </select>
      </div>
      <div class="field whole">
        <label for="description">Description</label>
        <input
          id="description"
          value={body.description ?? ""}
          onInput={(event) => onBody({ ...body, description: event.currentTarget.value })}
        />
      </div>
      <label class="inline">
        <input type="checkbox" checked={body.enabled ?? true} onChange={() => onBody({ ...body, enabled: !body.enabled })} />
        enabled: takes jobs
      </label>
    </div>
  );
}

function Editor(props: { queue: Queue | null; priority?: number; onDone: () => void }): JSX.Element {
  const { queue, onDone } = props;
  const [name, setName] = useState(queue?.name ?? "");
  const [body, setBody] = useState(() => bodyOf(queue, props.priority ?? 10));
  const [version, setVersion] = useState(queue?.version);
  const [fault, setFault] = useState<Fault | null>(null);
  const check = useCheck(
    body.filter ?? "",
    async (_text, signal) =>
      (await call("queue_check", { path: { name: name || "new" }, body, signal })).warnings,
    `${name} ${body.priority}`,
  );
  const save = async (): Promise<void> => {
    try {
      const headers: Record<string, string> = queue ? { "If-Match": `"${version}"` } : { "If-None-Match": "*" };
      const saved = await call("queue_put", { path: { name }, body, headers });
      setFault(null);
      setVersion(saved.version);
      const warnings = saved.warnings ?? [];
      tell(`Queue ${name} is saved and counts from now on.${warnings.length ? ` ${warnings.join("; ")}.` : ""}`);
      if (queue) onDone();
      else go(["queues", name]);
    } catch (error) {
      setFault(faultOf(error));
    }
  };
  return (
    <section class="form">
      {!queue && (
        <div class="field">
          <label for="name">Name; letters, digits, “.”, “_” and “-”</label>
          <input id="name" value={name} onInput={(event) => setName(event.currentTarget.value)} />
        </div>
      )}
      <FilterBox
        id="filter"
        label="Filter: the jobs for which it is true come here"
        text={body.filter ?? ""}
        check={check}
        placeholder="memoryMB > 16000 AND 'gpu' IN tags"
        onText={(text) => setBody({ ...body, filter: text || null })}
      />
      <Fields body={body} onBody={setBody} isNew={queue === null} />
      {fault && <FaultNotice fault={fault} />}
      <div class="acts">
        <button type="button" class="main" disabled={!name || Boolean(check?.fault)} onClick={() => void save()}>
          Save
        </button>
      </div>
    </section>
  );
}

function remove(queue: Queue): void {
  ask({
    title: `Delete queue ${queue.name}?`,
    body: <p>New jobs that its filter would have taken go to the next queue whose filter is true.</p>,
    act: "Delete 1 queue",
    danger: true,
    run: async () => {
      await call("queue_delete", { path: { name: queue.name }, headers: { "If-Match": `"${queue.version}"` } });
      go(["queues"]);
      return `Queue ${queue.name} was deleted.`;
    },
  });
}

const LIVE = states.filter((state) => !ended.includes(state)).join(",");

/** Offered when no job is on it: otherwise it would be refused. */
function Delete({ queue }: { queue: Queue }): JSX.Element {
  const jobs = useLive(`on ${queue.name}`, (signal) =>
    call("job_list", { query: { queue: queue.name, status: LIVE, hidden: true, limit: 1 }, signal }),
  );
  const used = jobs.value === undefined || jobs.value.jobs.length > 0 || jobs.value.nextCursor !== null;
  return (
    <div class="acts">
      {used && (
        <a class="muted" href={href(["jobs"], { filter: `queue = '${queue.name}'`, status: LIVE, hidden: "true" })}>
          Jobs that have not ended are on it
        </a>
      )}
      <button type="button" class="danger" disabled={used} onClick={() => remove(queue)}>
        Delete
      </button>
    </div>
  );
}

function Facts({ queue }: { queue: Queue }): JSX.Element {
  return (
    <Details
      of={[
        ["Jobs waiting", waitingOf(queue)],
        ["Jobs", <a href={href(["jobs"], { filter: `queue = '${queue.name}'` })}>all of this queue</a>],
        ["Workers", workersOf(queue)],
        ["Messages in the broker", <span title={MESSAGES}>{queue.depth ?? "unknown: the broker cannot be asked"}</span>],
        ["Longest wait", longestWait(queue)],
        ["Slots busy", `${queue.busy} of ${queue.slots}`],
        ["Consumers", queue.consumers],
        ["Filter", !may("queue_put") && queue.filter && <code>{queue.filter}</code>],
        ["Priority", !may("queue_put") && queue.priority],
        ["Version", queue.version],
        ["Made", <Time at={queue.created} />],
        ["Changed", <Time at={queue.updated} />],
      ]}
    />
  );
}

function Existing({ name }: { name: string }): JSX.Element {
  const live = useLive(name, (signal) => call("queue_get", { path: { name }, signal }));
  return (
    <Loaded live={live}>
      {(queue) => (
        <>
          <div class="bar">
            <h1>Queue {queue.name}</h1>
            <State of={queue.enabled ? "enabled" : "disabled"} />
            <State of={served(queue)} />
            {may("queue_delete") && !queue.isDefault && <Delete queue={queue} />}
          </div>
          <Facts queue={queue} />
          {may("queue_put") && <Editor queue={queue} onDone={live.reload} />}
        </>
      )}
    </Loaded>
  );
}

function NewQueue(): JSX.Element {
  const live = useLive("priorities", (signal) => call("queue_list", { signal }));
  return (
    <Loaded live={live}>
      {({ queues }) => <Editor queue={null} priority={freePriority(queues)} onDone={() => undefined} />}
    </Loaded>
  );
}

export function QueueScreen({ id }: { id: string }): JSX.Element {
  return (
    <>
      <p class="trail">
        <a href={href(["queues"])}>Queues</a>
      </p>
      {id === NEW && may("queue_put") ? (
        <>
          <h1>New queue</h1>
          <NewQueue />
        </>
      ) : (
        <Existing name={id} />
      )}
    </>
  );
}
