// SPDX-License-Identifier: MIT
// Shortcuts; "?" shows them.
import { signal } from "@preact/signals";
import type { JSX } from "preact";
import { useLayoutEffect } from "preact/hooks";
import { paused } from "./live";
import { go } from "./route";
import type { Screen } from "./screens";
import { switchTheme } from "./theme";
import { Dialog } from "./view/dialog";

export const helpOpen = signal(false);

const TYPED_INTO = "input:not([type=checkbox]), textarea, select, dialog *";

const acts: Readonly<Record<string, readonly [string, () => void]>> = {
  "?": ["show the shortcuts", () => (helpOpen.value = true)],
  p: ["pause or resume the updates", () => (paused.value = !paused.value)],
  t: ["light or dark", switchTheme],
  "/": [
    "to the filter of the list",
    () => document.querySelector<HTMLElement>("main textarea, main input[type=search]")?.focus(),
  ],
};

/** From nowhere, an arrow goes to the first row of the screen's table. */
function intoTable(event: KeyboardEvent): boolean {
  if (event.key !== "ArrowDown" || (document.activeElement && document.activeElement !== document.body)) return false;
  const first = document.querySelector<HTMLElement>("main tbody a, main tbody button");
  first?.focus();
  if (first) event.preventDefault();
  return first !== null;
}

/** "g" and then the key of a screen go there. */
export function useKeys(screens: readonly Screen[]): void {
  useLayoutEffect(() => {
    let going = false;
    const onKey = (event: KeyboardEvent): void => {
      if (intoTable(event)) return;
      const typing = (event.target as HTMLElement).matches(TYPED_INTO);
      if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
      const screen = going ? screens.find((one) => one.key === event.key) : undefined;
      going = event.key === "g" && !going;
      const act = acts[event.key];
      if (!screen && !act) return;
      event.preventDefault();
      if (screen) go([screen.path]);
      else act?.[1]();
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, [screens]);
}

export function Help({ screens }: { screens: readonly Screen[] }): JSX.Element | null {
  if (!helpOpen.value) return null;
  const close = (): void => {
    helpOpen.value = false;
  };
  return (
    <Dialog title="Shortcuts" onClose={close}>
      <dl class="keys">
        {Object.entries(acts).map(([key, [text]]) => (
          <div key={key}>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{text}</dd>
          </div>
        ))}
        {screens.map((screen) => (
          <div key={screen.key}>
            <dt>
              <kbd>g</kbd> <kbd>{screen.key}</kbd>
            </dt>
            <dd>{screen.title}</dd>
          </div>
        ))}
        <div>
          <dt>
            <kbd>↑</kbd> <kbd>↓</kbd>
          </dt>
          <dd>from row to row of a table</dd>
        </div>
      </dl>
      <div class="acts">
        <button type="button" class="main" onClick={close}>
          Close
        </button>
      </div>
    </Dialog>
  );
}
