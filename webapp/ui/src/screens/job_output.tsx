// SPDX-License-Identifier: MIT
// What a job writes, as it writes it: both streams together or one of them. The last part of a long
// output is loaded first; all of it can be saved.
import { signal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { faultOf, fetchRoute } from "../api/client";
import { ended, type Job } from "../generated/contract";
import { still } from "../live";
import { tell } from "../view/dialog";
import { FaultNotice } from "../view/notice";
import { sizeText } from "../view/size";
import { MOST_LINES, OutputLog, STREAMS, type Line, type Stream } from "./output_log";
import { hasMatch, LogText } from "./output_text";

const VIEWS: readonly (readonly [string, readonly Stream[]])[] = [
  ["Both", STREAMS],
  ["stdout", ["stdout"]],
  ["stderr", ["stderr"]],
];

/** This browser remembers it. */
function remembered(key: string, first: boolean): { value: boolean; flip(): void } {
  const kept = signal(localStorage.getItem(key) ?? String(first));
  return {
    get value() {
      return kept.value === "true";
    },
    flip() {
      kept.value = String(kept.value !== "true");
      localStorage.setItem(key, kept.value);
    },
  };
}

const wrap = remembered("sluice.output.wrap", true);
const numbered = remembered("sluice.output.numbers", false);

async function save(job: Job, stream: Stream): Promise<void> {
  try {
    const answer = await fetchRoute("job_output", { path: { id: job.id, stream } });
    saveAs(await answer.blob(), `${job.name}.${stream}`);
  } catch (error) {
    tell(faultOf(error).message);
  }
}

export function saveAs(blob: Blob, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

interface SearchProps {
  query: string;
  matches: readonly Line[];
  at: number;
  onQuery: (query: string) => void;
  onAt: (at: number) => void;
}

function Search(props: SearchProps): JSX.Element {
  const { query, matches, at, onAt } = props;
  const step = (by: number): void => {
    if (matches.length > 0) onAt((at + by + matches.length) % matches.length);
  };
  const onKey = (event: KeyboardEvent): void => {
    if (event.key !== "Enter") return;
    event.preventDefault();
    step(event.shiftKey ? -1 : 1);
  };
  return (
    <div class="find">
      <label for="find">Find in what is loaded</label>
      <input
        id="find"
        type="search"
        autocomplete="off"
        value={query}
        onInput={(event) => props.onQuery(event.currentTarget.value)}
        onKeyDown={onKey}
      />
      <button type="button" disabled={matches.length === 0} onClick={() => step(-1)}>
        Previous
      </button>
      <button type="button" disabled={matches.length === 0} onClick={() => step(1)}>
        Next match
      </button>
      <span class="muted number" role="status">
        {query ? (matches.length > 0 ? `line ${at + 1} of ${matches.length} with it` : "No line has it.") : ""}
      </span>
    </div>
  );
}

function Earlier({ log, streams }: { log: OutputLog; streams: readonly Stream[] }): JSX.Element | null {
  const [busy, setBusy] = useState(false);
  void log.changed.value; // what is asked of the log below changes with it
  const load = async (stream: Stream): Promise<void> => {
    setBusy(true);
    await log.loadEarlier(stream);
    setBusy(false);
  };
  const more = streams.filter((stream) => log.earlier(stream) > 0);
  const left = streams.filter((stream) => log.leavesOut(stream));
  if (more.length === 0 && left.length === 0) return null;
  return (
    <div class="bar">
      {more.map((stream) => (
        <button key={stream} type="button" disabled={busy} onClick={() => void load(stream)}>
          Load earlier {stream} ({sizeText(log.earlier(stream))} before)
        </button>
      ))}
      {left.length > 0 && (
        <span class="muted">
          The page holds at most {MOST_LINES.toLocaleString("en")} lines; save {left.join(" and ")} to see all.
        </span>
      )}
    </div>
  );
}

function kept(job: Job, stream: Stream): string {
  const { bytes, kept: there } = job.output[stream];
  return bytes > there ? `${stream}: ${sizeText(there)} of ${sizeText(bytes)} kept` : "";
}

/** Nothing is asked for before it has started; a run that was lost is begun anew. */
function useLog(job: Job): OutputLog {
  const log = useMemo(() => new OutputLog(job.id), [job.id, job.attempts, job.losses]);
  const isStill = still.value;
  const hasBegun = job.started !== null || ended.includes(job.status);
  useEffect(() => (hasBegun && !isStill ? log.start(ended.includes(job.status)) : undefined), [log, hasBegun, isStill]);
  return log;
}

function Shown({ job, log, streams }: { job: Job; log: OutputLog; streams: readonly Stream[] }): JSX.Element {
  const [query, setQuery] = useState("");
  const [at, setAt] = useState(0);
  const lines = useMemo(() => log.shown(streams), [log, streams, log.changed.value]);
  const small = query.toLowerCase();
  const matches = useMemo(() => lines.filter((line) => hasMatch(line, small)), [lines, small]);
  const find = (text: string): void => {
    setQuery(text);
    setAt(0);
  };
  const names = streams.join(" and ");
  const isOver = !log.isFollowing(streams);
  return (
    <>
      <div class="bar">
        <Search query={query} matches={matches} at={Math.min(at, Math.max(0, matches.length - 1))} onQuery={find} onAt={setAt} />
        <label class="inline">
          <input type="checkbox" checked={wrap.value} onChange={() => wrap.flip()} />
          Wrap
        </label>
        <label class="inline">
          <input type="checkbox" checked={numbered.value} onChange={() => numbered.flip()} />
          Line numbers
        </label>
      </div>
      <Earlier log={log} streams={streams} />
      {log.fault && <FaultNotice fault={log.fault} />}
      {isOver && lines.length === 0 ? (
        !log.fault && <p class="muted">It wrote nothing to {streams.join(" or ")}.</p>
      ) : (
        <LogText
          label={`${names} of ${job.name}`}
          lines={lines}
          query={small}
          current={matches[Math.min(at, matches.length - 1)] ?? null}
          wrap={wrap.value}
          numbers={numbered.value ? { stdout: log.linesBefore("stdout"), stderr: log.linesBefore("stderr") } : null}
          isMixed={streams.length > 1}
          empty={<span class="muted">Nothing yet. What it writes appears here at once.</span>}
        />
      )}
    </>
  );
}

export function JobOutput({ job }: { job: Job }): JSX.Element {
  const [view, setView] = useState(0);
  const log = useLog(job);
  const streams = VIEWS[view]?.[1] ?? STREAMS;
  void log.changed.value; // as above
  return (
    <section>
      <div class="bar">
        <h2>Output</h2>
        <div class="tabs" role="group" aria-label="Stream">
          {VIEWS.map(([name], index) => (
            <button key={name} type="button" aria-pressed={index === view} onClick={() => setView(index)}>
              {name}
            </button>
          ))}
        </div>
        <span class="muted number">
          {[...streams.map((stream) => kept(job, stream)), log.isFollowing(streams) ? "following" : ""].filter(Boolean).join(", ")}
        </span>
        <div class="acts">
          {STREAMS.map((stream) => (
            <button key={stream} type="button" onClick={() => void save(job, stream)}>
              Save {stream}
            </button>
          ))}
        </div>
      </div>
      <Shown job={job} log={log} streams={streams} />
    </section>
  );
}
