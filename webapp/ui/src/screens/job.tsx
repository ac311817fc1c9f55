// SPDX-License-Identifier: MIT
// One job: why it is where it is, how it came there, what it writes.
import type { JSX } from "preact";
import { call, callAll, faultOf, fetchPath } from "../api/client";
import { ended, type EventList, type FileList, type Job, type Why } from "../generated/contract";
import { useLive } from "../live";
import { href } from "../route";
import { Details, type Detail } from "../view/details";
import { tell } from "../view/dialog";
import { Loaded } from "../view/notice";
import { Size } from "../view/size";
import { Condition, JobState, State, words } from "../view/state";
import { Lasted, span, Time } from "../view/time";
import { JobActs } from "./job_acts";
import { JobOutput, saveAs } from "./job_output";
import { CauseLink } from "./recovery_cause";
import { Timeline, WorkerLink, type Names } from "./job_timeline";

const EVENTS = 200;

interface Whole {
  readonly job: Job;
  readonly why: Why;
  readonly events: EventList["events"];
  readonly names: Names;
}

async function load(id: string, signal: AbortSignal): Promise<Whole> {
  const path = { id };
  const [job, why, events, fleet] = await Promise.all([
    call("job_get", { path, signal }),
    call("job_why", { path, signal }),
    call("job_events", { path, query: { limit: EVENTS }, signal }),
    call("worker_list", { signal }),
  ]);
  return { job, why, events: events.events, names: new Map(fleet.workers.map((one) => [one.id, `${one.name} of ${one.host}`])) };
}

function facts(job: Job, names: Names): readonly Detail[] {
  return [
    ["State", words(job.status)],
    ["Queue", <a href={href(["queues", job.queue])}>{job.queue}</a>],
    ["Owner", job.owner],
    ["Application", job.appId && <a href={href(["apps", job.appId, job.appVersion ?? ""])}>{`${job.appId} ${job.appVersion ?? ""}`}</a>],
    ["System", job.systemId && <a href={href(["systems", job.systemId])}>{job.systemId}</a>],
    ["Reason", job.condition && <Condition of={job.condition} />],
    ["Detail", job.reason, true],
    ["Exit", job.exitCode ?? (job.signal ? `signal ${job.signal}` : null)],
    ["Submitted", <Time at={job.created} full />],
    ["Started", job.started && <Time at={job.started} full />],
    ["Ended", job.ended && <Time at={job.ended} full />],
    ["Took", job.started && <Lasted from={job.started} to={job.ended} />],
    ["Limit", span(job.maxSeconds)],
    ["Attempts", job.losses > 0 ? `${job.attempts}, and ${job.losses} lost with their worker` : job.attempts],
    ["Resources", `${job.nodeCount} × ${job.coresPerNode} cores${job.memoryMB ? `, ${job.memoryMB} MB` : ""}`],
    ["Tags", job.tags.join(", ")],
    ["Worker", job.worker && <WorkerLink id={job.worker} names={names} />],
    ["Id", <code>{job.id}</code>, true],
  ];
}

function Reason({ whole }: { whole: Whole }): JSX.Element {
  const blocked = whole.why.data.blocked;
  return (
    <p class="why">
      {whole.why.why}
      {blocked && (
        <>
          {" "}
          <CauseLink cause={blocked} /> <a href={href(["recovery", blocked.recovery])}>The group that holds it</a>
        </>
      )}
    </p>
  );
}

function Files({ job }: { job: Job }): JSX.Element {
  const live = useLive(job.id + job.status, (signal) =>
    callAll("job_files", { path: { id: job.id }, signal }, (page) => page.files),
  );
  const save = async ({ href, path }: FileList["files"][number]): Promise<void> => {
    try {
      saveAs(await (await fetchPath(href)).blob(), path.split("/").pop() ?? path);
    } catch (error) {
      tell(faultOf(error).message);
    }
  };
  return (
    <Loaded live={live}>
      {(files) =>
        files.length === 0 ? (
          <p class="muted">{ended.includes(job.status) ? "Nothing was archived." : "Files are archived when it has ended."}</p>
        ) : (
          <ul class="plain">
            {files.map((file) => (
              <li key={file.path}>
                <button type="button" class="link" onClick={() => void save(file)}>
                  {file.path}
                </button>{" "}
                <span class="muted">
                  <Size of={file.bytes} />
                </span>
              </li>
            ))}
          </ul>
        )
      }
    </Loaded>
  );
}

function Body({ whole, reload }: { whole: Whole; reload: () => void }): JSX.Element {
  const { job } = whole;
  return (
    <>
      <p class="trail">
        <a href={href(["jobs"])}>Jobs</a>
      </p>
      <div class="bar">
        <h1>{job.name}</h1>
        <JobState of={job.status} />
        {!job.visible && <State of="hidden" />}
        <JobActs job={job} onDone={reload} />
      </div>
      <Reason whole={whole} />
      <div class="columns">
        <section>
          <h2>About it</h2>
          <Details of={facts(job, whole.names)} />
        </section>
        <section>
          <h2>History</h2>
          <Timeline events={whole.events} names={whole.names} />
        </section>
      </div>
      <JobOutput job={job} />
      <div class="columns">
        <section>
          <h2>Request</h2>
          <pre class="text" tabIndex={0}>
            {JSON.stringify(job.request, null, 2)}
          </pre>
        </section>
        <section>
          <h2>Files</h2>
          <Files job={job} />
        </section>
      </div>
    </>
  );
}

export function JobScreen({ id }: { id: string }): JSX.Element {
  const live = useLive(id, (signal) => load(id, signal));
  return <Loaded live={live}>{(whole) => <Body whole={whole} reload={live.reload} />}</Loaded>;
}
