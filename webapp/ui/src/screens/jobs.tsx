// SPDX-License-Identifier: MIT
// Jobs: searched in the filter language, page by page, and acted on many at a time.
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { call } from "../api/client";
import type { Job } from "../generated/contract";
import { useLive } from "../live";
import { adjust, href, place } from "../route";
import { Condition, State } from "../view/state";
import { FilterBox, useCheck } from "../view/filter_box";
import { Empty, Loaded } from "../view/notice";
import { usePages } from "../view/pages";
import { Table, type Column } from "../view/table";
import { Lasted, Time } from "../view/time";
import { ManyActs } from "./job_acts";
import { CancelAll } from "./job_cancel_all";
import { useColumns } from "./job_columns";

const PAGE = 50;
const GROUPS: readonly (readonly [string, string])[] = [
  ["All", ""],
  ["Waiting", "PENDING,QUEUED"],
  ["Running", "PROCESSING_INPUTS,STAGING_INPUTS,STAGING_JOB,SUBMITTING_JOB,RUNNING,ARCHIVING"],
  ["Blocked", "BLOCKED,PAUSED"],
  ["Finished", "FINISHED"],
  ["Failed", "FAILED"],
  ["Cancelled", "CANCELLED"],
];

const columns: readonly Column<Job>[] = [
  { key: "name", head: "Name", wide: true, cell: (job) => <a href={href(["jobs", job.id])}>{job.name}</a> },
  { key: "status", head: "State", cell: (job) => <State of={job.status} /> },
  { key: "condition", head: "Reason", cell: (job) => <Condition of={job.condition} /> },
  { key: "queue", head: "Queue", cell: (job) => job.queue },
  { key: "owner", head: "Owner", cell: (job) => job.owner },
  { key: "app", head: "Application", cell: (job) => (job.appId ? `${job.appId} ${job.appVersion ?? ""}` : "–") },
  { key: "created", head: "Submitted", cell: (job) => <Time at={job.created} /> },
  { key: "took", head: "Took", number: true, cell: (job) => <Lasted from={job.started} to={job.ended} /> },
  { key: "exit", head: "Exit", number: true, cell: (job) => job.exitCode ?? (job.signal ? `signal ${job.signal}` : "–") },
  { key: "attempts", head: "Attempts", number: true, cell: (job) => job.attempts },
  { key: "tags", head: "Tags", cell: (job) => job.tags.join(", ") || "–" },
  { key: "id", head: "Id", cell: (job) => <code>{job.id}</code> },
];
const FIRST = ["name", "status", "condition", "queue", "owner", "created", "took"];

async function checkFilter(text: string, signal: AbortSignal): Promise<readonly string[]> {
  if (text) await call("job_list", { query: { filter: text, limit: 1 }, signal });
  return [];
}

function StateTabs({ status }: { status: string }): JSX.Element {
  return (
    <div class="tabs" role="group" aria-label="State">
      {GROUPS.map(([name, states]) => (
        <button
          key={name}
          type="button"
          aria-pressed={states === status}
          onClick={() => adjust({ status: states || undefined })}
        >
          {name}
        </button>
      ))}
    </div>
  );
}

/** The list of one search; a new search begins at its first page. */
function JobPages({ filter, status, hidden }: { filter: string; status: string; hidden: boolean }): JSX.Element {
  const pages = usePages();
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const [shown, chooser] = useColumns(columns, FIRST);
  const query = { filter, status, hidden: hidden || undefined };
  const live = useLive(JSON.stringify([query, pages.cursor]), (signal) =>
    call("job_list", { query: { ...query, cursor: pages.cursor, limit: PAGE }, signal }),
  );
  const jobs = live.value?.jobs ?? [];
  return (
    <Loaded live={live}>
      {(list) => (
        <>
          <div class="bar">
            <ManyActs jobs={jobs} chosen={chosen} onDone={() => (setChosen(new Set()), live.reload())} />
            <CancelAll search={query} onDone={live.reload} />
            {chooser}
            {pages.control(list.nextCursor)}
          </div>
          <Table
            label="Jobs"
            columns={shown}
            rows={list.jobs}
            idOf={(job) => job.id}
            selection={{ chosen, onChange: setChosen }}
            empty={
              <Empty title={list.nextCursor ? "No job is like this so far: the next page goes on" : "No job is like this"}>
                <p>
                  Choose “All”, make the filter wider, or submit one: <code>sluice run -- echo hello</code>
                </p>
              </Empty>
            }
          />
        </>
      )}
    </Loaded>
  );
}

export function Jobs(): JSX.Element {
  const { query } = place.value;
  const filter = query.get("filter") ?? "";
  const status = query.get("status") ?? "";
  const hidden = query.get("hidden") === "true";
  const [text, setText] = useState(filter);
  const check = useCheck(text, checkFilter);
  const search = (): void => adjust({ filter: text.trim() || undefined });
  return (
    <>
      <h1>Jobs</h1>
      <div class="search">
        <FilterBox
          id="filter"
          label="Filter"
          text={text}
          check={check}
          placeholder="owner = 'anna' AND memoryMB > 16000"
          onText={setText}
          onEnter={search}
        />
        <button type="button" class="main" disabled={Boolean(check?.fault)} onClick={search}>
          Search
        </button>
      </div>
      <div class="bar">
        <StateTabs status={status} />
        <label class="inline">
          <input type="checkbox" checked={hidden} onChange={() => adjust({ hidden: hidden ? undefined : "true" })} />
          hidden ones too
        </label>
      </div>
      <JobPages key={`${filter}\n${status}\n${hidden}`} filter={filter} status={status} hidden={hidden} />
    </>
  );
}
