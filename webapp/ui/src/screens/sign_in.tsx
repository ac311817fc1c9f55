// SPDX-License-Identifier: MIT
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { signIn } from "../api/session";
import { lostBecause } from "../api/token";

export function SignIn(): JSX.Element {
  const [text, setText] = useState("");
  const because = lostBecause.value;
  const submit = (event: Event): void => {
    event.preventDefault();
    if (text.trim()) signIn(text);
  };
  return (
    <main class="alone">
      <h1>Sluice</h1>
      {because && (
        <div class="notice bad" role="alert">
          <p>
            <strong>The token was refused</strong>
          </p>
          <p>{because}</p>
          <p class="cure">Get a new one: it may have expired, or belong to another site.</p>
        </div>
      )}
      <form onSubmit={submit}>
        <label for="token">Token</label>
        <input
          id="token"
          type="password"
          autocomplete="off"
          value={text}
          onInput={(event) => setText(event.currentTarget.value)}
        />
        <p class="muted">
          An administrator of this site gives you one (<code>sluice token</code> makes it). All tabs of this browser use it; it
          is forgotten when you sign out or close the last of them.
        </p>
        <button type="submit" class="main">
          Sign in
        </button>
      </form>
    </main>
  );
}
