// SPDX-License-Identifier: MIT
// What a job writes, as it writes it. Only the last part of a long output is kept on the page; all
// of it can be saved.
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { faultOf, fetchRoute, type Fault } from "../api/client";
import { listen, type ServerEvent } from "../api/sse";
import type { Job } from "../generated/contract";
import { tell } from "../view/dialog";
import { FaultNotice } from "../view/notice";

const KEPT_CHARACTERS = 400_000;
const STREAMS = ["stdout", "stderr"] as const;
type Stream = (typeof STREAMS)[number];

interface Output {
  readonly text: string;
  readonly cut: boolean;
  readonly ended: boolean;
  readonly fault: Fault | null;
}

const NOTHING: Output = { text: "", cut: false, ended: false, fault: null };

function bytesOf(base64: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
}

function added(output: Output, more: string): Output {
  const text = output.text + more;
  const over = text.length - KEPT_CHARACTERS;
  return over > 0 ? { ...output, text: text.slice(over), cut: true } : { ...output, text };
}

function useOutput(id: string, stream: Stream): Output {
  const [output, setOutput] = useState(NOTHING);
  useEffect(() => {
    const abort = new AbortController();
    let decoder = new TextDecoder();
    const onEvent = (event: ServerEvent): void => {
      if (event.type === "output") {
        const more = decoder.decode(bytesOf(event.data), { stream: true });
        setOutput((old) => added(old, more));
      } else if (event.type === "restarted") {
        decoder = new TextDecoder();
        setOutput({ ...NOTHING, text: "" });
      } else if (event.type === "end") {
        setOutput((old) => ({ ...old, ended: true }));
        abort.abort();
      }
    };
    setOutput(NOTHING);
    void listen(
      "job_output",
      { path: { id, stream }, query: { follow: true }, signal: abort.signal },
      { onEvent, onState: (fault) => setOutput((old) => ({ ...old, fault })) },
    );
    return () => abort.abort();
  }, [id, stream]);
  return output;
}

/** The page stays at the end of the text unless somebody has scrolled up. */
function Text({ output, label }: { output: Output; label: string }): JSX.Element {
  const self = useRef<HTMLPreElement>(null);
  const atEnd = useRef(true);
  useEffect(() => {
    const element = self.current;
    if (element && atEnd.current) element.scrollTop = element.scrollHeight;
  }, [output.text]);
  const onScroll = (): void => {
    const element = self.current;
    if (element) atEnd.current = element.scrollHeight - element.scrollTop - element.clientHeight < 8;
  };
  return (
    <pre ref={self} class="output" tabIndex={0} role="log" aria-label={label} onScroll={onScroll}>
      {output.cut && <span class="muted">… the beginning is left out: save it to see all{"\n"}</span>}
      {output.text || <span class="muted">Nothing yet. What it writes appears here at once.</span>}
    </pre>
  );
}

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

/** Where something is to be read. */
function firstStream(job: Job): Stream {
  return job.output.stdout.bytes === 0 && job.output.stderr.bytes > 0 ? "stderr" : "stdout";
}

export function JobOutput({ job }: { job: Job }): JSX.Element {
  const [stream, setStream] = useState<Stream>(firstStream(job));
  const output = useOutput(job.id, stream);
  return (
    <section>
      <div class="bar">
        <h2>Output</h2>
        <div class="tabs" role="group" aria-label="Stream">
          {STREAMS.map((one) => (
            <button key={one} type="button" aria-pressed={one === stream} onClick={() => setStream(one)}>
              {one}
            </button>
          ))}
        </div>
        <span class="muted number">
          {job.output[stream].bytes > job.output[stream].kept
            ? `${job.output[stream].kept} of ${job.output[stream].bytes} bytes kept`
            : ""}
          {output.ended ? "" : " following"}
        </span>
        <button type="button" onClick={() => void save(job, stream)}>
          Save
        </button>
      </div>
      {output.fault && <FaultNotice fault={output.fault} />}
      {output.ended && !output.text ? (
        <p class="muted">It wrote nothing to {stream}.</p>
      ) : (
        <Text output={output} label={`${stream} of ${job.name}`} />
      )}
    </section>
  );
}
