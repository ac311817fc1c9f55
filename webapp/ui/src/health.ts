// SPDX-License-Identifier: MIT
// Whether the service answers, what it says of its servers, and what needs somebody. It is asked on
// every screen, apart from what the screen shows: a screen that waits for an answer says so.
import { computed, signal } from "@preact/signals";
import { call } from "./api/client";
import type { Health, Overview } from "./generated/contract";
import { paused, shown, still } from "./live";
import { now } from "./view/time";

// Together well below the ten seconds after which data counts as old.
const READY_EVERY_MS = 2000;
const READY_WITHIN_MS = 3000;
const LOOK_EVERY_MS = 4000;
const LOOK_WITHIN_MS = 8000;
export const OLD_MS = 10_000;

type Reasons = NonNullable<Health["reasons"]>;

/** The last thing known of the service; reasons null: it does not answer. */
interface Contact {
  readonly reasons: Reasons | null;
  /** When it last answered, or when it was first asked (ms). */
  readonly since: number;
}

const contact = signal<Contact | undefined>(undefined);
/** The last look at the tenant; undefined: none yet, or it is not known to hold. */
export const attention = signal<Overview | undefined>(undefined);

export const lost = computed(() => (contact.value && !contact.value.reasons ? contact.value.since : null));
const reasons = computed(() => contact.value?.reasons ?? null);

/** "up", what is wrong, or "unknown". */
export const database = computed(() => reasons.value?.database ?? "unknown");
export const broker = computed(() => reasons.value?.broker ?? "unknown");
export const keys = computed(() => reasons.value?.keys ?? "up");
const databaseDown = computed(() => reasons.value !== null && database.value !== "up");

/** Of what is on the screen, the time of the oldest part (ms); null: nothing is. */
export const oldest = computed(() => {
  const times = [...shown.value.values()].map((one) => one.at);
  return times.length > 0 ? Math.min(...times) : null;
});
const failing = computed(() => [...shown.value.values()].some((one) => one.failing));
export const isOld = computed(() => oldest.value !== null && now.value - oldest.value > OLD_MS);

export type Freshness = "Live" | "Paused" | "Stale" | "Offline";
export const freshness = computed<Freshness>(() => {
  if (paused.value) return "Paused";
  if (lost.value !== null) return "Offline";
  return databaseDown.value || failing.value || isOld.value ? "Stale" : "Live";
});

/** Queues with waiting jobs that nobody takes; none while that is not known. */
export const unserved = computed(() => attention.value?.unserved ?? []);

async function askReady(stop: AbortSignal): Promise<void> {
  const within = AbortSignal.any([stop, AbortSignal.timeout(READY_WITHIN_MS)]);
  try {
    const answer = (await (await fetch("/readyz", { signal: within, cache: "no-store" })).json()) as Health;
    if (answer.reasons) contact.value = { reasons: answer.reasons, since: Date.now() };
  } catch {
    if (!stop.aborted) contact.value = { reasons: null, since: contact.value?.since ?? Date.now() };
  }
  // What was seen before says nothing about now.
  if (lost.value !== null || databaseDown.value) attention.value = undefined;
}

async function look(stop: AbortSignal): Promise<void> {
  try {
    const signal = AbortSignal.any([stop, AbortSignal.timeout(LOOK_WITHIN_MS)]);
    const seen = await call("overview", { query: { minutes: 1 }, signal });
    if (lost.value === null && !databaseDown.value) attention.value = seen;
  } catch {
    if (!stop.aborted) attention.value = undefined;
  }
}

function rest(ms: number, stop: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      clearTimeout(timer);
      for (const name of ["online", "offline"]) removeEventListener(name, end);
      stop.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    for (const name of ["online", "offline"]) addEventListener(name, end);
    stop.addEventListener("abort", end);
  });
}

async function again(ask: (stop: AbortSignal) => Promise<void>, ms: number, stop: AbortSignal): Promise<void> {
  while (!stop.aborted) {
    if (!still.value) await ask(stop);
    await rest(ms, stop);
  }
}

/** To be started once for a session; the answer ends it. */
export function watchHealth(): () => void {
  const abort = new AbortController();
  contact.value = undefined;
  attention.value = undefined;
  void again(askReady, READY_EVERY_MS, abort.signal);
  void again(look, LOOK_EVERY_MS, abort.signal);
  return () => abort.abort();
}
