// SPDX-License-Identifier: MIT
// Messages that the broker could not deliver.
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { call } from "../api/client";
import { mayOnAll } from "../api/session";
import type { DeadMessage } from "../generated/contract";
import { useLive } from "../live";
import { adjust, href, place } from "../route";
import { Empty, Loaded } from "../view/notice";
import { usePages } from "../view/pages";
import { Size } from "../view/size";
import { State, words } from "../view/state";
import { Table, type Column } from "../view/table";
import { Time } from "../view/time";
import { ManyDeadActs } from "./dead_acts";

const PAGE = 50;
const STATES = ["", "open", "settled", "replayed", "discarded"];

export function originOf(message: DeadMessage): string {
  const from = message.source === "dead" ? "given up by" : "no queue for";
  return `${from} ${message.queue ?? message.routingKey ?? message.exchange ?? "an unknown queue"}`;
}

const columns: readonly Column<DeadMessage>[] = [
  {
    key: "origin",
    head: "Origin",
    wide: true,
    cell: (message) => <a href={href(["dead", message.id])}>{originOf(message)}</a>,
  },
  { key: "state", head: "State", cell: (message) => <State of={message.state} /> },
  { key: "reason", head: "Reason", cell: (message) => words(message.reason) },
  { key: "outcome", head: "What was done", cell: (message) => (message.outcome ?? "–").replaceAll("-", " ") },
  {
    key: "job",
    head: "Job",
    cell: (message) => (message.job ? <a href={href(["jobs", message.job])}>{message.job.slice(-8)}</a> : "–"),
  },
  { key: "seen", head: "Seen", number: true, cell: (message) => message.seen },
  { key: "size", head: "Size", number: true, cell: (message) => <Size of={message.sizeBytes} /> },
  { key: "last", head: "Last seen", cell: (message) => <Time at={message.lastSeen} /> },
];

function Messages({ state }: { state: string }): JSX.Element {
  const pages = usePages();
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const live = useLive(`${state} ${pages.cursor}`, (signal) =>
    call("dead_list", { query: { state, cursor: pages.cursor, limit: PAGE }, signal }),
  );
  return (
    <Loaded live={live}>
      {({ deadMessages, nextCursor }) => (
        <>
          <div class="bar">
            <ManyDeadActs messages={deadMessages} chosen={chosen} onDone={() => (setChosen(new Set()), live.reload())} />
            {(nextCursor || pages.cursor) && pages.control(nextCursor)}
          </div>
          <Table
            label="Dead messages"
            columns={columns}
            rows={deadMessages}
            idOf={(message) => message.id}
            selection={mayOnAll("dead_discard") ? { chosen, onChange: setChosen } : undefined}
            empty={
              <Empty title={state ? `No message is ${state}` : "Every message was delivered"}>
                <p>{state ? "Choose “All” for the others." : "Nothing needs to be done."}</p>
              </Empty>
            }
          />
        </>
      )}
    </Loaded>
  );
}

export function DeadMessages(): JSX.Element {
  const state = place.value.query.get("state") ?? "";
  return (
    <>
      <h1>Dead messages</h1>
      <p class="lead">Messages that the broker could not deliver. None is lost: each is kept here, with what was done about its job.</p>
      <div class="tabs" role="group" aria-label="State">
        {STATES.map((one) => (
          <button key={one} type="button" aria-pressed={one === state} onClick={() => adjust({ state: one || undefined })}>
            {one ? one[0]?.toUpperCase() + one.slice(1) : "All"}
          </button>
        ))}
      </div>
      <Messages key={state} state={state} />
    </>
  );
}
