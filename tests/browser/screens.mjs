// SPDX-License-Identifier: MIT
// Every screen with data on it: a screenshot in light and dark, on a wide and on a narrow window,
// and what axe finds.
import { check, close, faultsOf, given, open, run, shoot, visit } from "./page.mjs";

const { ids } = given;
const SCREENS = {
  overview: ["/overview", "Longest waiting"],
  jobs: ["/jobs", "align-"],
  job: [`/jobs/${ids.running}`, "tick 3"],
  "job-waiting": [`/jobs/${ids.waiting}`, "waits for a free slot"],
  "job-failed": [`/jobs/${ids.failed}`, "exit code 3"],
  recovery: ["/recovery", "to take a connection"],
  group: [`/recovery/${ids.group}`, "align-"],
  queues: ["/queues", "takes what no other takes"],
  queue: ["/queues/quick", "This filter is valid"],
  "queue-new": ["/queues/+", "New queue"],
  dead: ["/dead", "no queue for"],
  message: [`/dead/${ids.message}`, "hello"],
  workers: ["/workers", "worker-one"],
  events: ["/events", "Events appear here"],
  audit: ["/audit", "queue put"],
};

async function look(browser, dark, width) {
  const page = await open(browser, { dark, width });
  const found = [];
  for (const [name, [place, text]] of Object.entries(SCREENS)) {
    await visit(page, place, text);
    await shoot(page, `${name}-${width < 800 ? "narrow" : "wide"}-${dark ? "dark" : "light"}`);
    if (width < 800) {
      const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      if (over > 0) found.push(`${name} is ${over} pixels wider than a narrow window`);
    } else found.push(...(await faultsOf(page)).map((fault) => `${name}, ${dark ? "dark" : "light"}: ${fault}`));
  }
  await close(page);
  check(found.length === 0, found.join("\n"));
}

await run(async (browser) => {
  await look(browser, false, 1280);
  await look(browser, true, 1280);
  await look(browser, false, 400);
});
