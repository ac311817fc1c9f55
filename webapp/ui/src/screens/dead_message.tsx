// SPDX-License-Identifier: MIT
// One dead message: what it says, where it was meant for, and what can be done about it.
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { call } from "../api/client";
import { mayOnAll } from "../api/session";
import type { DeadMessage, DeadReplay } from "../generated/contract";
import { useLive } from "../live";
import { href } from "../route";
import { Details } from "../view/details";
import { ask } from "../view/dialog";
import { Loaded } from "../view/notice";
import { State, words } from "../view/state";
import { Time } from "../view/time";
import { originOf } from "./dead";

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

function bodyOf(text: string): DeadReplay {
  return { body: JSON.parse(text) } as DeadReplay;
}

function Acts({ message, text, onDone }: { message: DeadMessage; text: string; onDone: () => void }): JSX.Element {
  const path = { id: message.id };
  const body = message.bodyText ?? null;
  const edited = text !== (indented(body) ?? body ?? "");
  const where = message.routingKey ?? message.queue ?? "where it was meant for";
  const replay = (): void =>
    ask({
      title: "Replay 1 message?",
      body: (
        <p>
          It is published once more to {where}, {edited ? "with the body as you changed it" : "with the body that it had"}.
        </p>
      ),
      act: "Replay 1 message",
      run: async () => {
        await call("dead_replay", { path, body: edited ? bodyOf(text) : undefined });
        onDone();
        return "The message was published once more.";
      },
    });
  const discard = (): void =>
    ask({
      title: "Discard 1 message?",
      body: <p>It is marked as done with, and stays in the list of discarded ones.</p>,
      act: "Discard 1 message",
      danger: true,
      run: async () => {
        await call("dead_discard", { path });
        onDone();
        return "The message was discarded.";
      },
    });
  return (
    <div class="acts">
      {mayOnAll("dead_replay") && (
        <button type="button" onClick={replay}>
          Replay
        </button>
      )}
      {mayOnAll("dead_discard") && message.state !== "discarded" && (
        <button type="button" class="danger" onClick={discard}>
          Discard
        </button>
      )}
    </div>
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
        <Acts message={message} text={text} onDone={reload} />
      </div>
      <Details
        of={[
          ["Reason", words(message.reason)],
          ["What was done", message.outcome?.replaceAll("-", " ")],
          ["Detail", message.detail, true],
          ["Job", message.job && <a href={href(["jobs", message.job])}>{message.job}</a>],
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
          ["Size", `${message.sizeBytes} bytes${message.keptBytes < message.sizeBytes ? `, ${message.keptBytes} kept` : ""}`],
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
