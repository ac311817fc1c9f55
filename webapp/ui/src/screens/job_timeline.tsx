// SPDX-License-Identifier: MIT
// The moves of a job, and why: those that change what it does, or every one.
import type { ComponentChildren, JSX } from "preact";
import { useState } from "preact/hooks";
import type { EventList } from "../generated/contract";
import { href } from "../route";
import { JobState, jobWord, words } from "../view/state";
import { Time } from "../view/time";

type JobEvent = EventList["events"][number];
/** Names of workers by their ids, as far as they are known. */
export type Names = ReadonlyMap<string, string>;

/** The end of the id tells workers apart; its beginning is a time. */
export function workerText(id: string, names: Names): string {
  return names.get(id) ?? `…${id.slice(-8)}`;
}

export function WorkerLink({ id, names }: { id: string; names: Names }): JSX.Element {
  return (
    <a href={href(["workers"], { worker: id })} title={id}>
      {workerText(id, names)}
    </a>
  );
}

function notes(event: JobEvent, names: Names): readonly ComponentChildren[] {
  return [
    event.condition && words(event.condition),
    event.detail,
    event.actor && `by ${event.actor}`,
    event.worker && (
      <>
        on worker <WorkerLink id={event.worker} names={names} />
      </>
    ),
    event.epoch > 1 && `message ${event.epoch}`,
  ].filter(Boolean);
}

/** It changes what the job does, or says something that the others do not. */
function matters(event: JobEvent, before: JobEvent | undefined): boolean {
  return !before || jobWord(before.to) !== jobWord(event.to) || Boolean(event.condition || event.detail || event.actor);
}

function Step({ event, names }: { event: JobEvent; names: Names }): JSX.Element {
  const said = notes(event, names);
  return (
    <li>
      <JobState of={event.to} />
      {event.from === event.to && <span class="muted"> {words(event.kind)}</span>} <Time at={event.at} />
      {said.length > 0 && (
        <p class="muted">
          {said.map((note, index) => (
            <span key={index}>
              {index > 0 && ", "}
              {note}
            </span>
          ))}
        </p>
      )}
    </li>
  );
}

export function Timeline({ events, names }: { events: readonly JobEvent[]; names: Names }): JSX.Element {
  const [all, setAll] = useState(false);
  const main = events.filter((event, index) => matters(event, events[index - 1]));
  return (
    <>
      <ol class="timeline" tabIndex={0} aria-label="History">
        {(all ? events : main).map((event) => (
          <Step key={event.seq} event={event} names={names} />
        ))}
      </ol>
      {main.length < events.length && (
        <p>
          <button type="button" class="link" aria-expanded={all} onClick={() => setAll(!all)}>
            {all ? "Show the main steps only" : `Show all ${events.length} steps`}
          </button>
        </p>
      )}
    </>
  );
}
