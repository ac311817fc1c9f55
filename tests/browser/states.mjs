// SPDX-License-Identifier: MIT
// What is wrong is shown within ten seconds, and on every screen; so is that it is over.
import os from "node:os";
import { check, close, given, have, open, run, shoot, visit } from "./page.mjs";

const { ids } = given;
const WITHIN_MS = 10000 * given.pace;
const DEADLINE_MS = 60000 * given.pace; // on a machine whose processors are busy with others
const SCREENS = ["/overview", "/jobs", `/jobs/${ids.job}`, "/recovery", "/queues", "/queues/default", "/dead", "/workers",
  "/apps", "/systems", "/quotas", "/webhooks", "/deliveries", "/events", "/audit"];
const HEADERS = { Authorization: `Bearer ${given.tokens.admin}`, "Content-Type": "application/json" };

const banner = (page) => page.getByRole("status", { name: "What is wrong now" });
const live = (page, name) => page.locator("button.live", { hasText: name });

async function act(method, path, body) {
  const answer = await fetch(`${given.url}${path}`, { method, headers: HEADERS, body: body && JSON.stringify(body) });
  check(answer.ok, `${path}: ${answer.status}`);
  return answer.json();
}

async function submit(name) {
  return (await act("POST", "/v1/jobs", { name, command: ["true"] })).id;
}

/** Without a new load of the page: it is the same session that learns of it. */
async function go(page, place) {
  await page.evaluate((hash) => (location.hash = hash), `#${place}`);
}

/** The words and the state are there in time, and then on every screen. */
async function shown(page, name, { words, state, each }) {
  const begun = Date.now();
  await banner(page).getByText(words).waitFor({ timeout: DEADLINE_MS });
  if (state) await live(page, state).waitFor({ timeout: DEADLINE_MS });
  const took = Date.now() - begun;
  const busy = os.loadavg()[0] > 2 * os.cpus().length;
  console.log(`${name}: after ${took} ms${busy ? ", on a busy machine" : ""}`);
  check(busy || took <= WITHIN_MS, `${name} was shown after ${took} ms`);
  for (const place of SCREENS) {
    await go(page, place);
    await banner(page).getByText(words).waitFor();
    if (state) await live(page, state).waitFor();
    check(!(state === "Offline") || (await page.getByText("Loading…").count()) === 0, `${place} says that it loads`);
    await each?.(page, place);
  }
  await go(page, "/overview");
  await shoot(page, `state-${name}`);
}

async function over(page) {
  await banner(page).getByText(/./).first().waitFor({ state: "detached" });
  await live(page, "Live").waitFor();
}

async function theNetworkIsOffline(page) {
  await page.context().setOffline(true);
  await shown(page, "offline", { words: "This browser is offline", state: "Offline" });
  await page.context().setOffline(false);
  await over(page);
}

async function webIsFrozen(page) {
  process.kill(ids.web, "SIGSTOP");
  try {
    await shown(page, "frozen", { words: "The service has not answered since", state: "Offline", each: nothingIsUp });
  } finally {
    process.kill(ids.web, "SIGCONT");
  }
  await over(page);
}

/** What was read before is not shown as if it were so. */
async function nothingIsUp(page, place) {
  if (place !== "/overview") return;
  check((await page.locator("main .state.good").filter({ hasText: /^up$/ }).count()) === 0, "something is up");
}

async function webIsStopped(page) {
  have("web_stop");
  await shown(page, "stopped", { words: "The service has not answered since", state: "Offline", each: nothingIsUp });
  have("web_start");
  await over(page);
}

async function theDatabaseIsDown(page) {
  have("database_stop");
  await shown(page, "database", { words: "The database is down", state: "Stale" });
  have("database_start");
  await over(page);
}

async function theBrokerIsDown(page) {
  have("broker_stop");
  await shown(page, "broker", { words: "The broker is down" });
  have("broker_start");
  await over(page);
}

async function itIsRedEverywhere(page, why, place) {
  await page.getByRole("navigation").getByText("1 without a worker").waitFor();
  if (place === "/overview") {
    await page.getByRole("list", { name: "Needs attention" }).getByText("default: 1 job waits").waitFor();
    await page.locator(".tile .state.bad").getByText(why).first().waitFor();
  }
  if (place === "/queues") await page.getByRole("row").filter({ hasText: "default" }).locator(".state.bad").getByText(why).waitFor();
}

async function allWorkersAreDrained(page) {
  const { workers } = await act("GET", "/v1/workers");
  const worker = workers.find((one) => one.state === "live");
  await visit(page, "/workers", "default-1");
  await page.getByRole("button", { name: "Drain" }).click();
  await page.getByText("No other worker takes jobs of queue default.").waitFor();
  await page.getByRole("dialog").getByRole("button", { name: "Drain 1 worker" }).click();
  await page.getByRole("row").filter({ hasText: "default-1" }).getByText("draining").waitFor();
  check((await banner(page).innerText()) === "", "nothing waits yet");
  await submit("held");
  await shown(page, "drained", { words: "Queue default: 1 job waits and every worker is drained",
    each: (_, place) => itIsRedEverywhere(page, "all drained", place) });
  await act("POST", `/v1/workers/${worker.id}/undrain`);
  await over(page);
}

async function noWorkerIsThere(page) {
  have("worker_stop");
  await submit("alone");
  await shown(page, "no-worker", { words: "Queue default: 1 job waits and no worker serves it",
    each: (_, place) => itIsRedEverywhere(page, "no worker", place) });
  have("worker_start");
  await over(page);
}

async function dataIsOldWhilePaused(page) {
  await page.keyboard.press("p");
  await live(page, "Paused").waitFor();
  await banner(page).getByText("What is shown is as of").waitFor();
  await page.keyboard.press("p");
  await over(page);
}

await run(async (browser) => {
  const page = await open(browser);
  await visit(page, "/jobs", "first");
  await over(page);
  for (const state of [theNetworkIsOffline, webIsFrozen, webIsStopped, theDatabaseIsDown, theBrokerIsDown,
    allWorkersAreDrained, noWorkerIsThere, dataIsOldWhilePaused]) await state(page);
  await close(page);
});
