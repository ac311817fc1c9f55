// SPDX-License-Identifier: MIT
// One group of blocked jobs: what is away, how that was found out, whom it holds.
import type { JSX } from "preact";
import { call } from "../api/client";
import type { Recovery } from "../generated/contract";
import { useLive } from "../live";
import { href } from "../route";
import { Details } from "../view/details";
import { Empty, Loaded } from "../view/notice";
import { usePages } from "../view/pages";
import { Condition, State, words } from "../view/state";
import { Table, type Column } from "../view/table";
import { Time } from "../view/time";
import { RecoveryActs } from "./recovery_acts";
import { CauseLink } from "./recovery_cause";
import { jobs, waitsFor } from "./recovery_text";
import { resultOf } from "./recovery";

const PAGE = 50;
type BlockedJob = NonNullable<Recovery["jobs"]>[number];

const columns: readonly Column<BlockedJob>[] = [
  { key: "name", head: "Name", wide: true, cell: (job) => <a href={href(["jobs", job.id])}>{job.name}</a> },
  { key: "owner", head: "Owner", cell: (job) => job.owner },
  { key: "resume", head: "Resumes as", cell: (job) => <State of={job.resumeStatus} /> },
  { key: "blocked", head: "Blocked", cell: (job) => <Time at={job.blocked} /> },
];

function Facts({ group }: { group: Recovery }): JSX.Element {
  return (
    <Details
      of={[
        ["Cause", <Condition of={group.condition} />],
        ["Waits for", <CauseLink cause={group} />],
        ["Jobs", group.blocked.toLocaleString("en")],
        ["Since", <Time at={group.since} />],
        ["Last check", <Time at={group.lastCheck} />],
        ["Result", resultOf(group), true],
        ["Next check", <Time at={group.nextCheck} />],
        ["Checks", `${group.tests}, ${group.tries} failed since it was resolved the last time`, true],
        ["Policy", <code>{group.policy}</code>, true],
        ["Tester", <code>{`${group.tester} ${JSON.stringify(group.params)}`}</code>, true],
        ["Released so far", jobs(group.released)],
        ["Id", <code>{group.id}</code>, true],
      ]}
    />
  );
}

function History({ group }: { group: Recovery }): JSX.Element {
  const history = group.history ?? [];
  if (history.length === 0) return <p class="muted">It has not been checked yet.</p>;
  return (
    <ol class="timeline" tabIndex={0} aria-label="Checks">
      {history.map((test) => (
        <li key={test.test}>
          <Time at={test.at} /> {words(test.result)}
          {test.detail && <span class="muted">: {test.detail}</span>}
        </li>
      ))}
    </ol>
  );
}

export function RecoveryGroup({ id }: { id: string }): JSX.Element {
  const pages = usePages(["Back", "Next"]);
  const live = useLive(`${id} ${pages.cursor}`, (signal) =>
    call("recovery_get", { path: { id }, query: { limit: PAGE, cursor: pages.cursor }, signal }),
  );
  return (
    <>
      <p class="trail">
        <a href={href(["recovery"])}>Recovery</a>
      </p>
      <Loaded live={live}>
        {(group) => (
          <>
            <div class="bar">
              <h1>Waits for {waitsFor(group)}</h1>
              <RecoveryActs group={group} onDone={live.reload} />
            </div>
            <div class="columns">
              <section>
                <h2>What is unavailable</h2>
                <Facts group={group} />
              </section>
              <section>
                <h2>Checks</h2>
                <History group={group} />
              </section>
            </div>
            <div class="bar">
              <h2>Its jobs</h2>
              {pages.control(group.nextCursor ?? null)}
            </div>
            <Table
              label="Jobs of this group"
              columns={columns}
              rows={group.jobs ?? []}
              idOf={(job) => job.id}
              empty={
                <Empty title="No job waits here any more">
                  <p>The group is kept for a while, with its history.</p>
                </Empty>
              }
            />
          </>
        )}
      </Loaded>
    </>
  );
}
