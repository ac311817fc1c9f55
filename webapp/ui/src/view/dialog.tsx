// SPDX-License-Identifier: MIT
// Questions before an act, and one line that tells what came of it.
import { signal } from "@preact/signals";
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { faultOf, type Fault } from "../api/client";
import { FaultNotice } from "./notice";

interface Question {
  readonly title: string;
  readonly body: ComponentChildren;
  /** What the button says: a verb and its count. */
  readonly act: string;
  readonly danger?: boolean;
  /** Does it; a fault keeps the question open. The text is shown afterwards. */
  readonly run: () => Promise<string>;
}

/** Something that has to be read, with nothing to decide. */
type Message = Pick<Question, "title" | "body">;

const question = signal<Question | Message | null>(null);
const fault = signal<Fault | null>(null);
const busy = signal(false);
const said = signal("");

export function ask(asked: Question): void {
  fault.value = null;
  busy.value = false;
  question.value = asked;
}

export function inform(title: string, body: ComponentChildren): void {
  fault.value = null;
  question.value = { title, body };
}

/** Whoever goes elsewhere has not said yes. */
export function dismiss(): void {
  question.value = null;
}

export function tell(text: string): void {
  said.value = text;
  setTimeout(() => {
    if (said.value === text) said.value = "";
  }, 8000);
}

/** Another question may have been asked meanwhile: that one stays. */
async function confirm(asked: Question): Promise<void> {
  busy.value = true;
  fault.value = null;
  try {
    tell(await asked.run());
    if (question.value === asked) question.value = null;
  } catch (error) {
    if (question.value === asked) fault.value = faultOf(error);
    else tell(faultOf(error).message);
  }
  if (question.value === asked || question.value === null) busy.value = false;
}

export function Dialog(props: { title: string; onClose: () => void; children: ComponentChildren }): JSX.Element {
  const self = useRef<HTMLDialogElement>(null);
  useEffect(() => self.current?.showModal(), []);
  return (
    <dialog ref={self} aria-label={props.title} onClose={props.onClose}>
      <h2>{props.title}</h2>
      {props.children}
    </dialog>
  );
}

export function Questions(): JSX.Element {
  const asked = question.value;
  return (
    <>
      <p class={said.value ? "said" : "said quiet"} role="status">
        {said.value}
      </p>
      {asked && (
        <Dialog title={asked.title} onClose={dismiss}>
          <div>{asked.body}</div>
          {fault.value && <FaultNotice fault={fault.value} />}
          <div class="acts">
            <button type="button" onClick={dismiss}>
              {"run" in asked ? "Keep as it is" : "Close"}
            </button>
            {"run" in asked && (
              <button
                type="button"
                class={asked.danger ? "danger" : "main"}
                disabled={busy.value}
                onClick={() => void confirm(asked)}
              >
                {asked.act}
              </button>
            )}
          </div>
        </Dialog>
      )}
    </>
  );
}
