// SPDX-License-Identifier: MIT
// The state of a thing as a word with a colour; the word alone tells it.
import type { JSX } from "preact";
import { conditions } from "../generated/contract";

type Tone = "wait" | "work" | "stop" | "good" | "bad" | "off";

const TONES: Readonly<Record<string, Tone>> = {
  PENDING: "wait",
  QUEUED: "wait",
  PAUSED: "stop",
  BLOCKED: "stop",
  RUNNING: "work",
  ARCHIVING: "work",
  PROCESSING_INPUTS: "work",
  STAGING_INPUTS: "work",
  STAGING_JOB: "work",
  SUBMITTING_JOB: "work",
  FINISHED: "good",
  CANCELLED: "off",
  FAILED: "bad",
  open: "stop",
  settled: "good",
  replaying: "work",
  replayed: "good",
  discarded: "off",
  live: "good",
  draining: "stop",
  stopped: "off",
  replaced: "off",
  dead: "bad",
  held: "wait",
  due: "work",
  delivered: "good",
  dropped: "off",
  done: "good",
  refused: "stop",
  failed: "bad",
  enabled: "good",
  disabled: "stop",
  "leader active": "good",
  "no leader": "bad",
  served: "good",
  "no worker": "bad",
  "all drained": "bad",
  "no worker, nothing waits": "stop",
  "all drained, nothing waits": "stop",
  unknown: "stop",
  up: "good",
  blocked: "stop",
  down: "bad",
  TRUE: "good",
  FALSE: "off",
  UNKNOWN: "stop",
};

/** What a job does, in a word: several states of it are one to those who wait for it. */
const JOB_WORDS: Readonly<Record<string, string>> = {
  PENDING: "waiting",
  QUEUED: "waiting",
  PROCESSING_INPUTS: "running",
  STAGING_INPUTS: "running",
  STAGING_JOB: "running",
  SUBMITTING_JOB: "running",
  ARCHIVING: "running",
};

export function jobWord(state: string): string {
  return JOB_WORDS[state] ?? words(state);
}

/** The word, and the state itself where that says more. */
export function JobState({ of }: { of: string }): JSX.Element {
  const word = jobWord(of);
  return (
    <>
      <span class={`state ${TONES[of] ?? "off"}`} title={of}>
        {word}
      </span>
      {word === "running" && of !== "RUNNING" && <span class="muted"> {words(of)}</span>}
    </>
  );
}

export function words(name: string): string {
  return name.toLowerCase().replaceAll("_", " ");
}

export function State({ of }: { of: string }): JSX.Element {
  return <span class={`state ${TONES[of] ?? "off"}`}>{words(of)}</span>;
}

/** A condition with what it means. */
export function Condition({ of }: { of: string | null }): JSX.Element {
  if (!of) return <span class="muted">–</span>;
  return <span title={conditions[of] ?? ""}>{words(of)}</span>;
}
