// SPDX-License-Identifier: MIT
// How the tenant does, at a glance.
import type { ComponentChildren, JSX } from "preact";
import { useMemo } from "preact/hooks";
import { call } from "../api/client";
import { may } from "../api/session";
import type { Count, Overview as Facts } from "../generated/contract";
import { broker, database } from "../health";
import { useLive } from "../live";
import { href } from "../route";
import { STATE_GROUPS } from "../search";
import { jobsWait } from "../view/banner";
import { Chart, type Line } from "../view/chart";
import { Loaded } from "../view/notice";
import { Condition, JobState, jobWord, State } from "../view/state";
import { span, Time } from "../view/time";

const MINUTES = 60;

function counted(count: Count): string {
  return `${count.count.toLocaleString("en")}${count.isMore ? "+" : ""}`;
}

function Tile({ title, children }: { title: string; children: ComponentChildren }): JSX.Element {
  return (
    <section class="tile">
      <h2>{title}</h2>
      {children}
    </section>
  );
}

function Rates({ rates }: { rates: Facts["rates"] }): JSX.Element {
  // Made anew only when a minute has changed: the chart keeps its cursor.
  const key = JSON.stringify(rates);
  const [times, lines] = useMemo((): [number[], Line[]] => {
    const line = (name: keyof Facts["rates"][number], colour: string, dash: readonly number[] = []): Line => ({
      name,
      colour,
      dash,
      values: rates.map((row) => Number(row[name])),
    });
    return [
      rates.map((row) => Date.parse(row.minute) / 1000),
      [
        line("accepted", "--chart-1"),
        line("started", "--chart-3", [8, 4]),
        line("finished", "--chart-2"),
        line("failed", "--bad", [4, 2]),
        line("cancelled", "--off", [2, 4]),
      ],
    ];
  }, [key]);
  const last = rates.at(-2) ?? rates.at(-1);
  const told = last
    ? `In the last whole minute ${last.accepted} were accepted, ${last.started} started, ` +
      `${last.finished} finished, ${last.failed} failed and ${last.cancelled} were cancelled.`
    : "No minute has been counted yet.";
  return (
    <section class="card">
      <h2>Jobs per minute</h2>
      <Chart label={`Jobs per minute over the last hour. ${told}`} times={times} lines={lines} />
      <p class="muted">{told}</p>
    </section>
  );
}

function JobTile(props: {
  title: string;
  job: Facts["longestWaiting"] | Facts["longestRunning"];
  limit?: number | undefined;
}): JSX.Element {
  const { title, job, limit } = props;
  return (
    <Tile title={title}>
      {job ? (
        <>
          <p class="figure">
            {span(job.seconds)}
            {limit !== undefined && <span class="muted"> of {span(limit)}</span>}
          </p>
          <p>
            <a href={href(["jobs", job.id])}>{job.name}</a> <span class="muted">of {job.owner}, queue {job.queue}</span>
          </p>
        </>
      ) : (
        <p class="figure muted">none</p>
      )}
    </Tile>
  );
}

interface Sum {
  readonly count: Count;
  readonly states: readonly string[];
  readonly first: string;
}

/** What jobs do, in a word; RUNNING stands for the steps around it. */
function byWord(jobs: Facts["jobs"]): ReadonlyMap<string, Sum> {
  const sums = new Map<string, Sum>();
  for (const [state, { count, isMore }] of Object.entries(jobs)) {
    const word = jobWord(state);
    const old = sums.get(word);
    sums.set(word, {
      count: { count: (old?.count.count ?? 0) + count, isMore: isMore || (old?.count.isMore ?? false) },
      states: [...(old?.states ?? []), state],
      first: word === "running" ? "RUNNING" : (old?.first ?? state),
    });
  }
  return sums;
}

/** The tab of jobs that has them, if it has no others. */
function groupOf(states: readonly string[]): string {
  const same = (list: string): boolean => list.split(",").sort().join() === [...states].sort().join();
  return STATE_GROUPS.find(([, list]) => same(list))?.[1] ?? states.join(",");
}

function States({ jobs }: { jobs: Facts["jobs"] }): JSX.Element {
  const rows = [...byWord(jobs)].filter(([, { count }]) => count.count > 0);
  return (
    <Tile title="Jobs not ended">
      {rows.length === 0 && <p class="figure muted">none</p>}
      <ul class="plain pairs">
        {rows.map(([word, { count, states, first }]) => (
          <li key={word}>
            <a href={href(["jobs"], { status: groupOf(states) })} aria-label={`${counted(count)} ${word}`}>
              <span class="plain-state">
                <JobState of={first} />
              </span>
            </a>
            <span class="number">{counted(count)}</span>
          </li>
        ))}
      </ul>
    </Tile>
  );
}

function Blocked({ blocked }: { blocked: Facts["blocked"] }): JSX.Element {
  return (
    <Tile title="Blocked, by cause">
      {blocked.length === 0 && <p class="figure muted">none</p>}
      <ul class="plain pairs">
        {blocked.map((row) => (
          <li key={row.condition}>
            <a href={href(["recovery"])}>
              <Condition of={row.condition} />
            </a>
            <span class="number">
              {row.jobs.toLocaleString("en")} <span class="muted">since </span>
              <Time at={row.since} />
            </span>
          </li>
        ))}
      </ul>
    </Tile>
  );
}

/** What was read is believed only while the service answers. */
function stateOf(now: string): string {
  return now.split(":")[0] ?? now;
}

function Workers({ facts }: { facts: Facts }): JSX.Element {
  const { unserved, health } = facts;
  return (
    <>
      {health.workers.length === 0 && (
        <li>
          <span>Workers</span>
          <State of={unserved.length > 0 ? "no worker" : "no worker, nothing waits"} />
        </li>
      )}
      {health.workers.map((row) => (
        <li key={row.version}>
          <span>Workers {row.version}</span>
          <span class="number">
            {row.workers}, {row.busy} of {row.slots} slots busy
          </span>
        </li>
      ))}
      {unserved.map((one) => (
        <li key={one.queue}>
          <a href={href(["queues", one.queue])}>Queue {one.queue}</a>
          <span>
            <State of={one.workers > 0 ? "all drained" : "no worker"} /> <span class="muted">{jobsWait(one.waiting)}</span>
          </span>
        </li>
      ))}
    </>
  );
}

function Health({ facts }: { facts: Facts }): JSX.Element {
  const { health } = facts;
  const { recovery, outbox } = health;
  const sign = recovery.lastSignSeconds;
  return (
    <Tile title="Health">
      <ul class="plain pairs">
        <li>
          <span>Database</span>
          <span>
            <State of={stateOf(database.value)} /> <span class="muted">{health.database.version.split("-")[0]}</span>
          </span>
        </li>
        <li>
          <span>Broker</span>
          <State of={stateOf(broker.value)} />
        </li>
        <li>
          <span>Recovery</span>
          <span>
            <State of={recovery.isLed ? "leader active" : "no leader"} />
            {sign !== null && <span class="muted"> seen {span(sign)} ago</span>}
          </span>
        </li>
        <li>
          <span>Unsent messages</span>
          <span class="number">{counted(outbox)}</span>
        </li>
        <li>
          <span>Web</span>
          <span>{health.web.version}</span>
        </li>
        <Workers facts={facts} />
      </ul>
    </Tile>
  );
}

const OUTBOX_OLD_S = 30;

/** What somebody should look at, the worst first. */
function needs(facts: Facts): readonly JSX.Element[] {
  const { health, deadMessages, blocked, unserved } = facts;
  const jobs = blocked.reduce((sum, row) => sum + row.jobs, 0);
  return [
    ...unserved.map((one) => (
      <a class="need bad" href={href(["queues", one.queue])}>
        {one.queue}: {jobsWait(one.waiting)}, {one.workers > 0 ? "all workers drained" : "no worker"}
      </a>
    )),
    health.outbox.oldestSeconds > OUTBOX_OLD_S && (
      <span class="need bad">
        {counted(health.outbox)} unsent messages, the oldest for {span(health.outbox.oldestSeconds)}
      </span>
    ),
    jobs > 0 && (
      <a class="need" href={href(["recovery"])}>
        {jobs.toLocaleString("en")} blocked
      </a>
    ),
    deadMessages.count > 0 && may("dead_list") && (
      <a class="need" href={href(["dead"], { state: "open" })}>
        {counted(deadMessages)} dead messages
      </a>
    ),
    health.workers.length > 1 && <span class="need">{health.workers.length} versions of workers</span>,
  ].filter((need): need is JSX.Element => Boolean(need));
}

function Attention({ facts }: { facts: Facts }): JSX.Element {
  const found = needs(facts);
  return (
    <ul class="plain needs" aria-label="Needs attention">
      {found.length === 0 && <li class="muted">Nothing needs attention.</li>}
      {found.map((need, index) => (
        <li key={index}>{need}</li>
      ))}
    </ul>
  );
}

export function Overview(): JSX.Element {
  const live = useLive("overview", (signal) => call("overview", { query: { minutes: MINUTES }, signal }));
  return (
    <>
      <h1>Overview</h1>
      <Loaded live={live}>
        {(facts) => (
          <>
            <Attention facts={facts} />
            <Rates rates={facts.rates} />
            <div class="tiles">
              <JobTile title="Longest waiting" job={facts.longestWaiting} />
              <JobTile
                title="Longest running, against its limit"
                job={facts.longestRunning}
                limit={facts.longestRunning?.maxSeconds}
              />
              <Tile title="Dead messages to look at">
                <p class="figure">{counted(facts.deadMessages)}</p>
                {may("dead_list") && (
                  <p>
                    <a href={href(["dead"], { state: "open" })}>Look at them</a>
                  </p>
                )}
              </Tile>
              <States jobs={facts.jobs} />
              <Blocked blocked={facts.blocked} />
              <Health facts={facts} />
            </div>
          </>
        )}
      </Loaded>
    </>
  );
}
