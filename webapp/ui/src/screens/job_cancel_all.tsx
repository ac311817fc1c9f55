// SPDX-License-Identifier: MIT
// Cancels whatever a search finds, on all of its pages. The jobs are listed first; those ids are what
// is confirmed, and nothing else is acted on.
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { call, faultOf } from "../api/client";
import { may, mayOnAll } from "../api/session";
import type { JobsCancelResult } from "../generated/contract";
import { place } from "../route";
import { queryOf, statusText, type Search } from "../search";
import { Details } from "../view/details";
import { ask, inform, tell } from "../view/dialog";

type Found = NonNullable<JobsCancelResult["found"]>;

interface Preview {
  readonly jobs: Found;
  readonly more: boolean;
}

const MOST = 10_000; /* jobs of one act */
const AT_ONCE = 1000; /* ids that a call takes */
const SAMPLE = 5;

function counted(count: number): string {
  return `${count.toLocaleString("en")} job${count === 1 ? "" : "s"}`;
}

async function preview(search: Search): Promise<Preview> {
  const jobs: Found[number][] = [];
  let cursor: string | null | undefined;
  do {
    const answer: JobsCancelResult = await call("jobs_cancel", {
      query: { ...queryOf(search), cursor: cursor ?? undefined },
      body: { dryRun: true },
    });
    jobs.push(...(answer.found ?? []));
    cursor = answer.nextCursor;
  } while (cursor && jobs.length < MOST);
  return { jobs, more: Boolean(cursor) };
}

/** A call may have time for some of its ids only: the first ones. */
async function cancelAll(jobs: Found): Promise<string> {
  let done = 0;
  let ended = 0;
  let failed = 0;
  for (let at = 0; at < jobs.length; ) {
    const ids = jobs.slice(at, at + AT_ONCE).map((job) => job.id);
    const answer = await call("jobs_cancel", { body: { ids } });
    const over = answer.failures.filter((one) => one.problem.status === 409).length;
    const looked = ids.length - answer.remaining.count;
    done += answer.cancelled + answer.asked;
    ended += over;
    failed += answer.failed - over;
    if (looked === 0) return `${counted(done)} cancelled; the service had no time for the other ${counted(jobs.length - at)}.`;
    at += looked;
  }
  const rest = [ended > 0 && `${ended} had ended before`, failed > 0 && `${failed} could not be cancelled`].filter(Boolean);
  return `${counted(done)} cancelled or asked to end${rest.length > 0 ? `; ${rest.join(", ")}` : ""}.`;
}

function Sample({ jobs }: { jobs: Found }): JSX.Element {
  const more = jobs.length - SAMPLE;
  return (
    <ul class="plain sample">
      {jobs.slice(0, SAMPLE).map((job) => (
        <li key={job.id}>
          {job.name} <span class="muted">of {job.owner}</span>
        </li>
      ))}
      {more > 0 && <li class="muted">and {more.toLocaleString("en")} more</li>}
    </ul>
  );
}

function Body({ search, found }: { search: Search; found: Preview }): JSX.Element {
  return (
    <>
      <Details
        of={[
          ["Filter", search.text ? <code>{search.text}</code> : "none: every job", true],
          ["State", search.status ? statusText(search.status) : "every state that is not the end", true],
          ["Hidden jobs", search.hidden && "included"],
          ["Whose", mayOnAll("jobs_cancel") ? null : "only your own"],
        ]}
      />
      <Sample jobs={found.jobs} />
      <p>
        {found.more && "The search finds more; these are the oldest. "}
        Exactly these jobs are cancelled, on all pages of the list; later ones are not. Cancelled jobs cannot be resumed.
      </p>
    </>
  );
}

async function question(search: Search, onDone: () => void): Promise<void> {
  const asked = place.value;
  try {
    const found = await preview(search);
    if (place.value !== asked) return; // it would ask about another screen
    if (found.jobs.length === 0) {
      inform("Nothing to cancel", <p>No job of this search is still waiting or running.</p>);
      return;
    }
    ask({
      title: `Cancel ${counted(found.jobs.length)}?`,
      body: <Body search={search} found={found} />,
      act: `Cancel ${counted(found.jobs.length)}`,
      danger: true,
      run: async () => {
        const text = await cancelAll(found.jobs);
        onDone();
        return text;
      },
    });
  } catch (error) {
    tell(faultOf(error).message);
  }
}

/** ready: the list is what the search box says. */
export function CancelAll(props: { search: Search; ready: boolean; onDone: () => void }): JSX.Element | null {
  const { search, ready, onDone } = props;
  const [busy, setBusy] = useState(false);
  if (!may("jobs_cancel")) return null;
  const press = async (): Promise<void> => {
    setBusy(true);
    await question(search, onDone);
    setBusy(false);
  };
  return (
    <button
      type="button"
      class="danger"
      disabled={busy || !ready}
      title={ready ? undefined : "Search first: the box and the list differ"}
      onClick={() => void press()}
    >
      Cancel all found
    </button>
  );
}
