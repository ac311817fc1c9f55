// SPDX-License-Identifier: MIT
// What webhooks were sent, and what not yet.
import type { JSX } from "preact";
import { call } from "../api/client";
import { mayOnAll, may } from "../api/session";
import type { Delivery } from "../generated/contract";
import { useLive } from "../live";
import { adjust, href, place } from "../route";
import { Details } from "../view/details";
import { ask } from "../view/dialog";
import { Empty, Loaded } from "../view/notice";
import { PAGE, Paged } from "../view/paged";
import { State, words } from "../view/state";
import { Table, type Column } from "../view/table";
import { Time } from "../view/time";

type Attempt = NonNullable<Delivery["attemptLog"]>[number];
type DeliveryState = Delivery["state"];

const STATES: readonly ("" | DeliveryState)[] = ["", "due", "held", "delivered", "dead", "dropped"];
const MEANING: Readonly<Record<DeliveryState, string>> = {
  held: "an earlier event of the job is not delivered yet",
  due: "is sent now, or at the next attempt",
  delivered: "accepted by the receiver",
  dead: "given up",
  dropped: "its webhook was disabled or deleted",
};

function answerOf(row: { httpStatus: number | null; error: string | null }): string {
  return [row.httpStatus, row.error].filter(Boolean).join(", ") || "–";
}

function Hook({ name }: { name: string | null }): JSX.Element {
  if (!name) return <span class="muted">of the job</span>;
  return may("subscription_get") ? <a href={href(["webhooks", name])}>{name}</a> : <>{name}</>;
}

function redeliver(delivery: Delivery, onDone: () => void): void {
  ask({
    title: "Send 1 delivery again?",
    body: (
      <p>
        Its event, {words(delivery.event)}, is sent to {delivery.host ?? "its receiver"} once more, with the same id, beside the order of
        its job.
      </p>
    ),
    act: "Send 1 delivery",
    run: async () => {
      await call("delivery_redeliver", { path: { id: delivery.id } });
      onDone();
      return "The delivery is due now.";
    },
  });
}

function Redeliver({ delivery, onDone }: { delivery: Delivery; onDone: () => void }): JSX.Element | null {
  if (!mayOnAll("delivery_redeliver") || delivery.host === null) return null;
  return (
    <button type="button" onClick={() => redeliver(delivery, onDone)}>
      Send again
    </button>
  );
}

const columns = (reload: () => void): readonly Column<Delivery>[] => [
  { key: "event", head: "Event", cell: (delivery) => <a href={href(["deliveries", delivery.id])}>{words(delivery.event)}</a> },
  { key: "state", head: "State", cell: (delivery) => <span title={MEANING[delivery.state]}><State of={delivery.state} /></span> },
  {
    key: "hook",
    head: "Webhook, receiver",
    cell: (delivery) => (
      <>
        <Hook name={delivery.subscription} /> <span class="muted">{delivery.host}</span>
      </>
    ),
  },
  { key: "job", head: "Job", cell: (delivery) => <a href={href(["jobs", delivery.job])}>{delivery.job.slice(-8)}</a> },
  { key: "attempts", head: "Attempts", number: true, cell: (delivery) => delivery.attempts },
  { key: "answer", head: "Last answer", cell: answerOf },
  { key: "next", head: "Next attempt", cell: (delivery) => <Time at={delivery.nextAttempt} /> },
  { key: "created", head: "Created", cell: (delivery) => <Time at={delivery.created} /> },
  { key: "acts", head: "Actions", cell: (delivery) => <Redeliver delivery={delivery} onDone={reload} /> },
];

function Field({ name, label, value }: { name: string; label: string; value: string }): JSX.Element {
  return (
    <div class="field">
      <label for={name}>{label}</label>
      <input
        id={name}
        type="search"
        value={value}
        onChange={(event) => adjust({ [name]: event.currentTarget.value.trim() || undefined })}
      />
    </div>
  );
}

export function Deliveries(): JSX.Element {
  const { query } = place.value;
  const search = { subscription: query.get("subscription") ?? "", job: query.get("job") ?? "", state: query.get("state") ?? "" };
  return (
    <>
      <h1>Deliveries</h1>
      <p class="lead">What webhooks were sent, and what not yet, newest first.</p>
      <div class="fields">
        <Field name="subscription" label="Webhook" value={search.subscription} />
        <Field name="job" label="Id of a job" value={search.job} />
      </div>
      <div class="tabs" role="group" aria-label="State">
        {STATES.map((one) => (
          <button
            key={one}
            type="button"
            aria-pressed={one === search.state}
            title={one ? MEANING[one] : ""}
            onClick={() => adjust({ state: one || undefined })}
          >
            {one ? one.charAt(0).toUpperCase() + one.slice(1) : "All"}
          </button>
        ))}
      </div>
      <Paged
        key={JSON.stringify(search)}
        label="Deliveries"
        words={["Newer", "Older"]}
        load={async (cursor, signal) => {
          const { deliveries, nextCursor } = await call("delivery_list", { query: { ...search, cursor, limit: PAGE }, signal });
          return { rows: deliveries, next: nextCursor };
        }}
        columns={columns}
        idOf={(delivery) => delivery.id}
        empty={
          <Empty title="No matching deliveries">
            <p>Events are delivered when somebody subscribes: see Webhooks, or subscriptions of a job.</p>
          </Empty>
        }
      />
    </>
  );
}

const attemptColumns: readonly Column<Attempt>[] = [
  { key: "attempt", head: "Attempt", number: true, cell: (attempt) => attempt.attempt },
  { key: "at", head: "When", cell: (attempt) => <Time at={attempt.at} /> },
  { key: "took", head: "Took", number: true, cell: (attempt) => `${attempt.tookMs.toLocaleString("en")} ms` },
  { key: "answer", head: "Answer", wide: true, cell: answerOf },
];

function Body({ delivery, reload }: { delivery: Delivery; reload: () => void }): JSX.Element {
  return (
    <>
      <div class="bar">
        <h1>Delivery: {words(delivery.event)}</h1>
        <State of={delivery.state} />
        <div class="acts">
          <Redeliver delivery={delivery} onDone={reload} />
        </div>
      </div>
      <Details
        of={[
          ["State", MEANING[delivery.state], true],
          ["Webhook", <Hook name={delivery.subscription} />],
          ["Receiver", delivery.host],
          ["Job", <a href={href(["jobs", delivery.job])}>{delivery.job}</a>, true],
          ["Last answer", answerOf(delivery), true],
          ["Attempts", delivery.attempts],
          ["Created", <Time at={delivery.created} />],
          ["Next attempt", delivery.nextAttempt && <Time at={delivery.nextAttempt} />],
          ["Ended", delivery.ended && <Time at={delivery.ended} />],
          ["Id", <code>{delivery.id}</code>, true],
        ]}
      />
      <h2>Newest attempts</h2>
      <Table
        label="Newest attempts"
        columns={attemptColumns}
        rows={delivery.attemptLog ?? []}
        idOf={(attempt) => String(attempt.attempt)}
        empty={<p class="muted">It was not sent yet.</p>}
      />
      <h2>Body</h2>
      <pre class="text" tabIndex={0} aria-label="Body" role="region">
        {JSON.stringify(delivery.body ?? null, null, 2)}
      </pre>
    </>
  );
}

export function DeliveryScreen({ id }: { id: string }): JSX.Element {
  const live = useLive(id, (signal) => call("delivery_get", { path: { id }, signal }));
  return (
    <>
      <p class="trail">
        <a href={href(["deliveries"])}>Deliveries</a>
      </p>
      <Loaded live={live}>{(delivery) => <Body delivery={delivery} reload={live.reload} />}</Loaded>
    </>
  );
}
