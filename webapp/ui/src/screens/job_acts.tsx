// SPDX-License-Identifier: MIT
// What can be done to a job, or to many: one table, offered as the role and the states allow.
import type { JSX } from "preact";
import { call } from "../api/client";
import { mayOn } from "../api/session";
import { ended, type Job } from "../generated/contract";
import { go } from "../route";
import { ask } from "../view/dialog";

type JobAct = "job_cancel" | "job_resubmit" | "job_hide" | "job_unhide";

interface Act {
  readonly route: JobAct;
  readonly verb: string;
  readonly done: string;
  /** What comes of it, for one and for many. */
  readonly means: string;
  readonly danger?: boolean;
  readonly fits: (job: Job) => boolean;
}

const hasEnded = (job: Job): boolean => ended.includes(job.status);

const acts: readonly Act[] = [
  {
    route: "job_cancel",
    verb: "Cancel",
    done: "asked to end",
    means: "Cancelled jobs cannot be resumed.",
    danger: true,
    fits: (job) => !hasEnded(job) && !job.cancelRequested,
  },
  {
    route: "job_resubmit",
    verb: "Resubmit",
    done: "resubmitted",
    means: "The same request is submitted again as a new job; this one stays as it is.",
    fits: hasEnded,
  },
  {
    route: "job_hide",
    verb: "Hide",
    done: "hidden",
    means: "It is left out of lists; “Include hidden” shows it.",
    fits: (job) => hasEnded(job) && job.visible,
  },
  { route: "job_unhide", verb: "Show again", done: "shown again", means: "It is in lists again.", fits: (job) => !job.visible },
];

const AT_ONCE = 4;

function counted(count: number): string {
  return `${count} job${count === 1 ? "" : "s"}`;
}

/** A few at a time; the first fault stops it. */
async function actOn(act: Act, jobs: readonly Job[]): Promise<readonly Job[]> {
  const made: Job[] = [];
  const left = [...jobs];
  const worker = async (): Promise<void> => {
    for (let job = left.shift(); job; job = left.shift()) made.push(await call(act.route, { path: { id: job.id } }));
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  return made;
}

function Names({ jobs }: { jobs: readonly Job[] }): JSX.Element {
  const more = jobs.length - 5;
  return (
    <ul class="plain">
      {jobs.slice(0, 5).map((job) => (
        <li key={job.id}>
          {job.name}{" "}
          <span class="muted">
            of {job.owner}, queue {job.queue}
          </span>
        </li>
      ))}
      {more > 0 && <li class="muted">and {more} more</li>}
    </ul>
  );
}

function question(act: Act, jobs: readonly Job[], onDone: (made: readonly Job[]) => void): void {
  ask({
    title: `${act.verb} ${counted(jobs.length)}?`,
    body: (
      <>
        <Names jobs={jobs} />
        <p>{act.means}</p>
      </>
    ),
    act: `${act.verb} ${counted(jobs.length)}`,
    danger: act.danger ?? false,
    run: async () => {
      const made = await actOn(act, jobs);
      onDone(made);
      return `${counted(jobs.length)} ${act.done}.`;
    },
  });
}

export function ManyActs({ jobs, chosen, onDone }: { jobs: readonly Job[]; chosen: ReadonlySet<string>; onDone: () => void }): JSX.Element {
  const selected = jobs.filter((job) => chosen.has(job.id));
  return (
    <div class="acts" role="group" aria-label="Selected jobs">
      <span class="number muted">
        {selected.length > 0 ? `${counted(selected.length)} selected` : `${counted(jobs.length)} on this page`}
      </span>
      {acts.map((act) => {
        const fitting = selected.filter((job) => act.fits(job) && mayOn(act.route, job.owner));
        return (
          fitting.length > 0 && (
            <button key={act.route} type="button" class={act.danger ? "danger" : ""} onClick={() => question(act, fitting, onDone)}>
              {act.verb} {fitting.length}
            </button>
          )
        );
      })}
    </div>
  );
}

export function JobActs({ job, onDone }: { job: Job; onDone: () => void }): JSX.Element {
  const finish = (act: Act) => (made: readonly Job[]) => {
    const [first] = made;
    if (act.route === "job_resubmit" && first) go(["jobs", first.id]);
    onDone();
  };
  return (
    <div class="acts">
      {acts
        .filter((act) => act.fits(job) && mayOn(act.route, job.owner))
        .map((act) => (
          <button key={act.route} type="button" class={act.danger ? "danger" : ""} onClick={() => question(act, [job], finish(act))}>
            {act.verb}
          </button>
        ))}
    </div>
  );
}
