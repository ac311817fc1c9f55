// SPDX-License-Identifier: MIT
// Jobs: searched in the filter language, page by page, and acted on many at a time.
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { call } from "../api/client";
import type { Job } from "../generated/contract";
import { useLive } from "../live";
import { adjust, go, href, place } from "../route";
import { filterOf, isJobId, isWords, queryOf, STATE_GROUPS, statusText, type Search } from "../search";
import { Condition, JobState } from "../view/state";
import { FilterBox, useCheck } from "../view/filter_box";
import { Empty, Loaded } from "../view/notice";
import { usePages } from "../view/pages";
import { Table, type Column } from "../view/table";
import { Lasted, Time } from "../view/time";
import { ManyActs } from "./job_acts";
import { CancelAll } from "./job_cancel_all";
import { useColumns } from "./job_columns";

const PAGE = 50;
const columns: readonly Column<Job>[] = [
  { key: "name", head: "Name", wide: true, cell: (job) => <a href={href(["jobs", job.id])}>{job.name}</a> },
  { key: "status", head: "State", cell: (job) => <JobState of={job.status} /> },
  { key: "condition", head: "Reason", cell: (job) => <Condition of={job.condition} /> },
  { key: "queue", head: "Queue", clip: true, cell: (job) => job.queue },
  { key: "owner", head: "Owner", clip: true, cell: (job) => job.owner },
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
  const filter = filterOf(text);
  if (filter && !isJobId(text)) await call("job_list", { query: { filter, limit: 1 }, signal });
  return [];
}

function StateTabs({ status }: { status: string }): JSX.Element {
  const isGroup = STATE_GROUPS.some(([, states]) => states === status);
  const groups = isGroup ? STATE_GROUPS : [...STATE_GROUPS, [statusText(status), status] as const];
  return (
    <div class="tabs" role="group" aria-label="State">
      {groups.map(([name, states]) => (
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

function NoJobs({ more }: { more: boolean }): JSX.Element {
  return (
    <Empty title={more ? "No matching jobs so far: the next page goes on" : "No matching jobs"}>
      <p>
        Choose “All”, make the filter wider, or submit one: <code>sluice run -- echo hello</code>
      </p>
    </Empty>
  );
}

/** The list of one search; a new search begins at its first page. */
function JobPages({ search, ready }: { search: Search; ready: boolean }): JSX.Element {
  const pages = usePages();
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const [shown, chooser] = useColumns(columns, FIRST);
  const query = queryOf(search);
  const live = useLive(JSON.stringify([query, pages.cursor]), (signal) =>
    call("job_list", { query: { ...query, cursor: pages.cursor, limit: PAGE }, signal }),
  );
  const jobs = live.value?.jobs ?? [];
  if (live.fault?.problem.position) return <p class="muted">No list: the filter has a mistake, which is shown above.</p>;
  return (
    <Loaded live={live}>
      {(list) => (
        <>
          <div class="bar">
            <ManyActs jobs={jobs} chosen={chosen} onDone={() => (setChosen(new Set()), live.reload())} />
            <CancelAll search={search} ready={ready} onDone={live.reload} />
            {chooser}
            {pages.control(list.nextCursor)}
          </div>
          <Table
            label="Jobs"
            columns={shown}
            rows={list.jobs}
            idOf={(job) => job.id}
            selection={{ chosen, onChange: setChosen }}
            empty={<NoJobs more={Boolean(list.nextCursor)} />}
          />
        </>
      )}
    </Loaded>
  );
}

/** What is typed belongs to the search that was in force then: another one is in the box at once. */
function useDraft(text: string): [string, (typed: string) => void] {
  const [draft, setDraft] = useState({ of: text, typed: text });
  if (draft.of !== text) setDraft({ of: text, typed: text });
  return [draft.of === text ? draft.typed : text, (typed) => setDraft({ of: text, typed })];
}

function goodText(text: string): JSX.Element | string {
  if (isJobId(text)) return "This is the id of a job: Search opens it.";
  if (!isWords(text)) return "This filter is valid.";
  return (
    <>
      Jobs with this in their name, or as owner, queue, application or tag: <code>{filterOf(text)}</code>
    </>
  );
}

export function Jobs(): JSX.Element {
  const { query } = place.value;
  const text = query.get("filter") ?? "";
  const search: Search = { text, status: query.get("status") ?? "", hidden: query.get("hidden") === "true" };
  const [draft, setDraft] = useDraft(text);
  const check = useCheck(draft, checkFilter);
  const ready = draft.trim() === text;
  const run = (): void => {
    if (check?.fault) return;
    if (isJobId(draft)) go(["jobs", draft.trim().toLowerCase()]);
    else adjust({ filter: draft.trim() || undefined });
  };
  return (
    <>
      <h1>Jobs</h1>
      <div class="search">
        <FilterBox
          id="filter"
          label="Search: words, the id of a job, or a filter"
          text={draft}
          check={check}
          placeholder="align, or owner = 'anna' AND memoryMB > 16000"
          good={goodText(draft)}
          onText={setDraft}
          onEnter={run}
        />
        <button type="button" class="main" disabled={Boolean(check?.fault)} onClick={run}>
          Search
        </button>
      </div>
      {!ready && (
        <p class="pending" role="status">
          Not searched yet. The list is still that of {text ? <code>{text}</code> : "no filter"}.{" "}
          <button type="button" class="link" onClick={() => setDraft(text)}>
            Undo
          </button>
        </p>
      )}
      <div class="bar">
        <StateTabs status={search.status} />
        <label class="inline">
          <input type="checkbox" checked={search.hidden} onChange={() => adjust({ hidden: search.hidden ? undefined : "true" })} />
          Include hidden
        </label>
      </div>
      <JobPages key={JSON.stringify(search)} search={search} ready={ready} />
    </>
  );
}
