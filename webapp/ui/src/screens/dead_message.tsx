// SPDX-License-Identifier: MIT
// One dead message: what it says, where it was meant for, and what can be done about it.
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { call, faultOf } from "../api/client";
import { mayOnAll } from "../api/session";
import type { DeadMessage } from "../generated/contract";
import { useLive } from "../live";
import { href } from "../route";
import { Details } from "../view/details";
import { Loaded } from "../view/notice";
import { sizeText } from "../view/size";
import { State, words } from "../view/state";
import { Time } from "../view/time";
import { originOf } from "./dead";
import { DeadActs } from "./dead_acts";

function indented(text: string | null): string | null {
  try {
    return text === null ? null : JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return null;
  }
}

/** Sixteen bytes a line, as hexadecimal numbers and letters. */
function dump(base64: string): string {
  const bytes = [...atob(base64)].map((letter) => letter.charCodeAt(0));
  const lines: string[] = [];
  for (let at = 0; at < bytes.length; at += 16) {
    const part = bytes.slice(at, at + 16);
    const hex = part.map((byte) => byte.toString(16).padStart(2, "0")).join(" ");
    const letters = part.map((byte) => (byte >= 32 && byte < 127 ? String.fromCharCode(byte) : ".")).join("");
    lines.push(`${at.toString(16).padStart(6, "0")}  ${hex.padEnd(47)}  ${letters}`);
  }
  return lines.join("\n");
}

/** The job that its body names, if there is one: bodies may say anything. */
function JobOf({ id }: { id: string }): JSX.Element {
  const [isThere, setThere] = useState(true);
  useEffect(() => {
    const abort = new AbortController();
    call("job_get", { path: { id }, signal: abort.signal }).catch((error: unknown) => {
      if (faultOf(error).status === 404) setThere(false);
    });
    return () => abort.abort();
  }, [id]);
  if (isThere) return <a href={href(["jobs", id])}>{id}</a>;
  return (
    <>
      {id} <span class="muted">(there is no such job)</span>
    </>
  );
}

function Body({ message, reload }: { message: DeadMessage; reload: () => void }): JSX.Element {
  const body = message.bodyText ?? null;
  const decoded = indented(body) ?? body;
  const [text, setText] = useState(decoded ?? "");
  return (
    <>
      <div class="bar">
        <h1>Message {originOf(message)}</h1>
        <State of={message.state} />
        <DeadActs message={message} edited={text === (decoded ?? "") ? null : text} onDone={reload} />
      </div>
      <Details
        of={[
          ["Reason", words(message.reason)],
          ["What was done", message.outcome?.replaceAll("-", " ")],
          ["Detail", message.detail, true],
          ["Job", message.job && <JobOf id={message.job} />, true],
          ["Epoch", message.epoch],
          ["Exchange", message.exchange],
          ["Routing key", message.routingKey],
          ["Queue", message.queue],
          ["Died", message.died && <Time at={message.died} />],
          ["Last seen", <Time at={message.lastSeen} />],
          ["Seen", `${message.seen} ×, delivered again ${message.deliveryCount} ×, died ${message.deathCount} ×`],
          ["Replays", message.replays],
          ["Acted", message.acted && <Time at={message.acted} />],
          ["By", message.actedBy],
          ["Size", `${sizeText(message.sizeBytes)}${message.keptBytes < message.sizeBytes ? `, ${sizeText(message.keptBytes)} kept` : ""}`],
          ["Content type", message.contentType],
          ["Message id", message.messageId && <code>{message.messageId}</code>],
        ]}
      />
      <div class="stack">
        <section>
          <h2>Decoded</h2>
          {decoded === null ? (
            <p class="muted">Its body is not text; see the raw bytes.</p>
          ) : (
            <>
              <label for="body">Body; what you change here is replayed</label>
              <textarea
                id="body"
                class="text"
                rows={Math.min(16, decoded.split("\n").length + 1)}
                spellcheck={false}
                readOnly={!mayOnAll("dead_replay")}
                value={text}
                onInput={(event) => setText(event.currentTarget.value)}
              />
            </>
          )}
        </section>
        <section>
          <h2>Raw</h2>
          <pre class="text" tabIndex={0}>
            {dump(message.bodyBase64 ?? "")}
          </pre>
        </section>
      </div>
    </>
  );
}

export function DeadMessageScreen({ id }: { id: string }): JSX.Element {
  const live = useLive(id, (signal) => call("dead_get", { path: { id }, signal }));
  return (
    <>
      <p class="trail">
        <a href={href(["dead"])}>Dead messages</a>
      </p>
      <Loaded live={live}>{(message) => <Body message={message} reload={live.reload} />}</Loaded>
    </>
  );
}
