// SPDX-License-Identifier: MIT
// What an operator does to a group of blocked jobs; each is confirmed with the count of its jobs.
import type { JSX } from "preact";
import { call } from "../api/client";
import { mayOnAll } from "../api/session";
import type { Recovery } from "../generated/contract";
import { ask, tell } from "../view/dialog";
import { faultOf } from "../api/client";
import { CauseSwitch } from "./recovery_cause";
import { jobs, waitsFor } from "./recovery_text";

async function check(group: Recovery): Promise<void> {
  try {
    await call("recovery_check", { path: { id: group.id } });
    tell("It is being checked now.");
  } catch (error) {
    tell(faultOf(error).message);
  }
}

function release(group: Recovery, onDone: () => void): void {
  ask({
    title: `Release ${jobs(group.blocked)}?`,
    body: (
      <p>
        They wait for {waitsFor(group)}. They are released without a check: one at first, then more and more at a time. Jobs
        that are blocked by the same cause again come back here.
      </p>
    ),
    act: `Release ${jobs(group.blocked)}`,
    run: async () => {
      await call("recovery_release", { path: { id: group.id } });
      onDone();
      return `${jobs(group.blocked)} are released.`;
    },
  });
}

function fail(group: Recovery, onDone: () => void): void {
  ask({
    title: `Give ${jobs(group.blocked)} up?`,
    body: <p>They wait for {waitsFor(group)}. They end as failed, which is final; each can be resubmitted.</p>,
    act: `Fail ${jobs(group.blocked)}`,
    danger: true,
    run: async () => {
      await call("recovery_fail", { path: { id: group.id } });
      onDone();
      return `${jobs(group.blocked)} end as failed.`;
    },
  });
}

export function RecoveryActs({ group, onDone }: { group: Recovery; onDone: () => void }): JSX.Element | null {
  if (!mayOnAll("recovery_check")) return null;
  return (
    <div class="acts">
      <CauseSwitch cause={group} onDone={onDone} />
      <button type="button" onClick={() => void check(group).then(onDone)}>
        Check now
      </button>
      <button type="button" disabled={group.blocked === 0} onClick={() => release(group, onDone)}>
        Release
      </button>
      <button type="button" class="danger" disabled={group.blocked === 0} onClick={() => fail(group, onDone)}>
        Fail
      </button>
    </div>
  );
}
