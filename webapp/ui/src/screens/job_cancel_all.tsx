// SPDX-License-Identifier: MIT
// Cancels whatever a search finds, on all of its pages: counted first, and only if the count still
// holds when it is done.
import type { JSX } from "preact";
import { call, faultOf } from "../api/client";
import { may } from "../api/session";
import type { Count } from "../generated/contract";
import { ask, tell } from "../view/dialog";

export interface Search {
  readonly filter: string;
  readonly status: string;
  readonly hidden: boolean | undefined;
}

function told(count: Count): string {
  return `${count.isMore ? "more than " : ""}${count.count.toLocaleString("en")} job${count.count === 1 ? "" : "s"}`;
}

/** A call takes a part of them; those that cannot be cancelled must not be asked for for ever. */
async function cancelAll(search: Search, expected: number): Promise<string> {
  let done = 0;
  let failed = 0;
  for (let left = expected; left > 0; ) {
    const answer = await call("jobs_cancel", { query: { ...search }, body: { expectedCount: left } });
    done += answer.cancelled + answer.asked;
    failed += answer.failed;
    const remaining = answer.remaining.count;
    if (remaining >= left) break;
    left = remaining;
  }
  return `${done.toLocaleString("en")} were cancelled or asked to end${failed > 0 ? `, ${failed} could not be` : ""}.`;
}

async function count(search: Search, onDone: () => void): Promise<void> {
  try {
    const { matched } = await call("jobs_cancel", { query: { ...search }, body: { dryRun: true } });
    if (matched.count === 0) {
      tell("No job that has not ended is like this.");
      return;
    }
    ask({
      title: `Cancel ${told(matched)}?`,
      body: <p>That is every job of this search that has not ended, on all of its pages. None of them can be taken up again.</p>,
      act: `Cancel ${told(matched)}`,
      danger: true,
      run: async () => {
        const text = await cancelAll(search, matched.count);
        onDone();
        return text;
      },
    });
  } catch (error) {
    tell(faultOf(error).message);
  }
}

export function CancelAll({ search, onDone }: { search: Search; onDone: () => void }): JSX.Element | null {
  if (!may("jobs_cancel")) return null;
  return (
    <button type="button" class="danger" onClick={() => void count(search, onDone)}>
      Cancel all found
    </button>
  );
}
