// SPDX-License-Identifier: MIT
// Every move of a job, and why.
import type { JSX } from "preact";
import type { EventList } from "../generated/contract";
import { State, words } from "../view/state";
import { Time } from "../view/time";

type JobEvent = EventList["events"][number];

function told(event: JobEvent): string {
  return [
    event.condition && words(event.condition),
    event.detail,
    event.actor && `by ${event.actor}`,
    event.worker && `on worker ${event.worker.slice(0, 8)}`,
    event.epoch > 1 && `message ${event.epoch}`,
  ]
    .filter(Boolean)
    .join(", ");
}

export function Timeline({ events }: { events: readonly JobEvent[] }): JSX.Element {
  return (
    <ol class="timeline" tabIndex={0} aria-label="History">
      {events.map((event) => (
        <li key={event.seq}>
          <State of={event.to} />
          {event.from === event.to && <span class="muted"> {words(event.kind)}</span>} <Time at={event.at} />
          {told(event) && <p class="muted">{told(event)}</p>}
        </li>
      ))}
    </ol>
  );
}
