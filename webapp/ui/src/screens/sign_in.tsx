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
    if (text.trim()) void signIn(text);
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
          <p class="cure">Get a new one: it may have run out, or belong to another site.</p>
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
          <code>./dev up</code> and <code>sluice token</code> print one. It stays in this tab and is forgotten when the tab
          is closed.
        </p>
        <button type="submit" class="main">
          Sign in
        </button>
      </form>
    </main>
  );
}
