// SPDX-License-Identifier: MIT
// What can be done to dead messages, one or many; confirmed with their count.
import type { JSX } from "preact";
import { call, faultOf } from "../api/client";
import { mayOnAll } from "../api/session";
import type { DeadMessage, DeadReplay } from "../generated/contract";
import { ask } from "../view/dialog";

interface Act {
  readonly route: "dead_replay" | "dead_discard";
  readonly verb: string;
  readonly done: string;
  readonly effect: string;
  readonly danger?: boolean;
  readonly fits: (message: DeadMessage) => boolean;
}

const acts: readonly Act[] = [
  {
    route: "dead_replay",
    verb: "Replay",
    done: "published again",
    effect: "Each is published again to where it was meant for, with the body that it had.",
    fits: (message) => message.state !== "replaying",
  },
  {
    route: "dead_discard",
    verb: "Discard",
    done: "discarded",
    effect: "They are marked as done with, and stay in the list of discarded ones.",
    danger: true,
    fits: (message) => message.state !== "discarded",
  },
];

const AT_ONCE = 4;

const counted = (count: number): string => `${count} message${count === 1 ? "" : "s"}`;

/** A few at a time. One that is refused does not stop the others; the first reason is told. */
async function actOn(act: Act, messages: readonly DeadMessage[]): Promise<string> {
  const left = [...messages];
  const faults: string[] = [];
  const worker = async (): Promise<void> => {
    for (let message = left.shift(); message; message = left.shift()) {
      try {
        await call(act.route, { path: { id: message.id } });
      } catch (error) {
        faults.push(faultOf(error).message);
      }
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  const done = messages.length - faults.length;
  return `${counted(done)} ${act.done}${faults.length > 0 ? `, ${faults.length} not: ${faults[0] ?? ""}` : ""}.`;
}

function question(act: Act, messages: readonly DeadMessage[], onDone: () => void): void {
  ask({
    title: `${act.verb} ${counted(messages.length)}?`,
    body: <p>{act.effect}</p>,
    act: `${act.verb} ${counted(messages.length)}`,
    danger: act.danger ?? false,
    run: async () => {
      const text = await actOn(act, messages);
      onDone();
      return text;
    },
  });
}

export function ManyDeadActs(props: { messages: readonly DeadMessage[]; chosen: ReadonlySet<string>; onDone: () => void }): JSX.Element {
  const selected = props.messages.filter((message) => props.chosen.has(message.id));
  return (
    <div class="acts" role="group" aria-label="Selected messages">
      <span class="number muted">
        {selected.length > 0 ? `${counted(selected.length)} selected` : `${counted(props.messages.length)} on this page`}
      </span>
      {acts.map((act) => {
        const fitting = selected.filter((message) => act.fits(message) && mayOnAll(act.route));
        return (
          fitting.length > 0 && (
            <button key={act.route} type="button" class={act.danger ? "danger" : ""} onClick={() => question(act, fitting, props.onDone)}>
              {act.verb} {fitting.length}
            </button>
          )
        );
      })}
    </div>
  );
}

function bodyOf(text: string): DeadReplay {
  return { body: JSON.parse(text) } as DeadReplay;
}

/** For the one that is shown. edited: the body as it was changed; null: as it was. */
export function DeadActs(props: { message: DeadMessage; edited: string | null; onDone: () => void }): JSX.Element {
  const { message, edited, onDone } = props;
  const where = message.routingKey ?? message.queue ?? "where it was meant for";
  const replay = (): void =>
    ask({
      title: "Replay 1 message?",
      body: (
        <p>
          It is published again to {where}, {edited === null ? "with the body that it had" : "with the body as you changed it"}.
        </p>
      ),
      act: "Replay 1 message",
      run: async () => {
        await call("dead_replay", { path: { id: message.id }, body: edited === null ? undefined : bodyOf(edited) });
        onDone();
        return "The message was published again.";
      },
    });
  return (
    <div class="acts">
      {acts
        .filter((act) => act.fits(message) && mayOnAll(act.route))
        .map((act) => (
          <button
            key={act.route}
            type="button"
            class={act.danger ? "danger" : ""}
            onClick={() => (act.route === "dead_replay" ? replay() : question(act, [message], onDone))}
          >
            {act.verb}
          </button>
        ))}
    </div>
  );
}
