// SPDX-License-Identifier: MIT
// The frame around every screen.
import { computed } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useLayoutEffect } from "preact/hooks";
import { identity, may, resume, sessionFault, signOut } from "./api/session";
import { token } from "./api/token";
import { Help, helpOpen, useKeys } from "./keys";
import type { Overview } from "./generated/contract";
import { attention, freshness, lost, watchHealth, type Freshness } from "./health";
import { followEvents, paused, refresh } from "./live";
import { href, place } from "./route";
import { screens, type Screen } from "./screens";
import { SignIn } from "./screens/sign_in";
import { dark, switchTheme } from "./theme";
import { Banner } from "./view/banner";
import { dismiss, Questions } from "./view/dialog";
import { Empty, FaultNotice } from "./view/notice";
import { useTabInView } from "./view/tab_in_view";

const offered = computed(() => (identity.value ? screens.filter((screen) => may(screen.needs)) : []));
const current = computed(() => offered.value.find((one) => one.path === place.value.parts[0]) ?? null);

interface Badge {
  readonly count: number;
  readonly text: string;
  readonly bad?: boolean;
}

/** What needs somebody, beside the screen that shows it. */
const badges: Readonly<Record<string, (seen: Overview) => Badge>> = {
  recovery: (seen) => ({ count: seen.jobs["BLOCKED"]?.count ?? 0, text: "blocked" }),
  queues: (seen) => ({ count: seen.unserved.length, text: "without a worker", bad: true }),
  dead: (seen) => ({ count: seen.deadMessages.count, text: "open" }),
};

function BadgeOf({ path }: { path: string }): JSX.Element | null {
  const badge = attention.value && badges[path]?.(attention.value);
  if (!badge || badge.count === 0) return null;
  return (
    <span class={badge.bad ? "badge bad" : "badge"}>
      {badge.count.toLocaleString("en")} <span class="unseen">{badge.text}</span>
    </span>
  );
}

function Navigation(): JSX.Element {
  const self = useTabInView(current.value);
  return (
    <nav ref={self} aria-label="Screens">
      <ul>
        {offered.value.map((screen) => (
          <li key={screen.path}>
            <a href={href([screen.path])} aria-current={screen === current.value ? "page" : undefined}>
              {screen.title} <BadgeOf path={screen.path} />
            </a>
          </li>
        ))}
      </ul>
    </nav>
  );
}

const FRESHNESS: Readonly<Record<Freshness, readonly [string, string]>> = {
  Live: ["dot", "What is shown is at most ten seconds old. Press to pause."],
  Paused: ["dot off", "Nothing is asked for. Press to go on."],
  Stale: ["dot off", "What is shown is old: no newer answer has come. Press to pause."],
  Offline: ["dot lost", "The service does not answer. Press to pause."],
};

function Controls(): JSX.Element {
  const who = identity.value;
  const [dot, title] = FRESHNESS[freshness.value];
  return (
    <div class="controls">
      <button type="button" aria-pressed={paused.value} class="live" title={title} onClick={() => (paused.value = !paused.value)}>
        <span class={dot} aria-hidden="true" />
        {freshness.value}
      </button>
      <button type="button" onClick={switchTheme}>
        {dark.value ? "Light" : "Dark"}
      </button>
      <button type="button" aria-label="Shortcuts" onClick={() => (helpOpen.value = true)}>
        ?
      </button>
      {who && (
        <span class="who" title={who.roles.join(", ")}>
          {who.user} <span class="muted">{who.tenant}, {who.roles.at(-1) ?? "no role"}</span>
        </span>
      )}
      <button type="button" onClick={signOut}>
        Sign out
      </button>
    </div>
  );
}

function Content({ screen }: { screen: Screen | null }): JSX.Element {
  const id = place.value.parts.slice(1).join("/"); // of an application: ID/VERSION
  if (!screen)
    return (
      <Empty title="There is no such screen, or your role does not show it.">
        <p>The screens that you may see are listed in the navigation.</p>
      </Empty>
    );
  if (id && screen.one) return <screen.one key={id} id={id} />;
  return <screen.list key={screen.path} />;
}

function Waiting(): JSX.Element {
  const fault = sessionFault.value;
  return <main class="alone">{fault ? <FaultNotice fault={fault} onRetry={() => void resume()} /> : <p>Loading…</p>}</main>;
}

function Signed(): JSX.Element {
  const screen = current.value;
  useKeys(offered.value);
  useEffect(followEvents, []);
  useEffect(watchHealth, []);
  const away = lost.value !== null;
  useEffect(() => {
    if (!away) refresh(); // what was asked for meanwhile may hang
  }, [away]);
  useEffect(() => {
    document.title = screen ? `${screen.title} – Sluice` : "Sluice";
  }, [screen]);
  // Before the new screen is seen: what is opened on it stays open.
  useLayoutEffect(() => {
    helpOpen.value = false;
    dismiss();
  }, [href(place.value.parts, Object.fromEntries(place.value.query))]);
  useEffect(() => {
    const first = offered.value[0];
    if (!place.value.parts.length && first) location.replace(href([first.path]));
  }, []);
  return (
    <div class="shell">
      <a class="skip" href="#main" onClick={(event) => (event.preventDefault(), document.getElementById("main")?.focus())}>
        Skip to the content
      </a>
      <header>
        <a class="brand" href="#/">
          Sluice
        </a>
        <Navigation />
        <Controls />
      </header>
      <main id="main" tabIndex={-1}>
        <Banner />
        <Content screen={screen} />
      </main>
      <Questions />
      <Help screens={offered.value} />
    </div>
  );
}

export function App(): JSX.Element {
  if (!token.value) return <SignIn />;
  return identity.value ? <Signed /> : <Waiting />;
}
