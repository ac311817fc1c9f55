// SPDX-License-Identifier: MIT
// Every screen with data on it: a screenshot in light and dark, on a wide and on a narrow window,
// and what axe finds.
import { check, close, faultsOf, given, open, run, shoot, visit } from "./page.mjs";

const { ids } = given;
const SCREENS = {
  overview: ["/overview", "Longest waiting"],
  jobs: ["/jobs", "align-"],
  job: [`/jobs/${ids.running}`, "tick 3"],
  "job-waiting": [`/jobs/${ids.waiting}`, "for a free slot"],
  "job-failed": [`/jobs/${ids.failed}`, "exit code 3"],
  recovery: ["/recovery", "to take a connection"],
  group: [`/recovery/${ids.group}`, "align-"],
  queues: ["/queues", "takes what no other takes"],
  queue: ["/queues/quick", "This filter is valid"],
  "queue-new": ["/queues/+", "New queue"],
  dead: ["/dead", "no queue for"],
  message: [`/dead/${ids.message}`, "hello"],
  applications: ["/apps", "blast 2"],
  application: ["/apps/blast/2", "disabled"],
  "application-new": ["/apps/+", "New application"],
  systems: ["/systems", "the cluster"],
  system: ["/systems/west", "System west"],
  quotas: ["/quotas", "the whole tenant"],
  quota: ["/quotas/ann", "of 20"],
  webhooks: ["/webhooks", "portal"],
  webhook: ["/webhooks/portal", "Rotate secret"],
  deliveries: ["/deliveries", "portal"],
  delivery: [`/deliveries/${ids.delivery}`, "accepted by the receiver"],
  "job-held": [`/jobs/${ids.held}`, "System west"],
  "group-disabled": [`/recovery/${ids.disabled}`, "Enable system west"],
  workers: ["/workers", "worker-one"],
  audit: ["/audit", "/v1/queues/quick"],
};

// What is seen only after somebody has done something.
const DONE = {
  events: async (page) => {
    await visit(page, "/events", "What happened to jobs lately");
    const headers = { Authorization: `Bearer ${given.tokens.admin}`, "Content-Type": "application/json" };
    const body = JSON.stringify({ name: "seen", command: ["true"] });
    await fetch(`${given.url}/v1/jobs`, { method: "POST", headers, body });
    await page.getByRole("row").filter({ hasText: "seen" }).getByText("finished").first().waitFor({ timeout: 30000 });
  },
  help: async (page) => {
    await visit(page, "/recovery", "to take a connection");
    await page.keyboard.press("?");
    await page.getByRole("dialog", { name: "Shortcuts" }).waitFor();
  },
  question: async (page) => {
    await visit(page, `/recovery/${ids.group}`, "align-");
    await page.getByRole("button", { name: "Release" }).click();
    await page.getByRole("dialog").waitFor();
  },
  explanation: async (page) => {
    await visit(page, "/queues", "takes what no other takes");
    await page.getByRole("button", { name: "Test the filters" }).click();
    await page.getByText("would take it").waitFor();
  },
  mistake: async (page) => {
    await visit(page, "/queues/slow", "This filter is valid");
    await page.getByLabel("Filter: the jobs").fill("memoryMB > 10 AND onwer = 'ann'");
    await page.getByText("did you mean 'owner'").waitFor();
  },
};

async function look(browser, dark, width) {
  const page = await open(browser, { dark, width });
  const found = [];
  const seen = Object.entries(SCREENS).map(([name, [place, text]]) => [name, () => visit(page, place, text)]);
  for (const [name, come] of [...seen, ...Object.entries(DONE)]) {
    await come(page);
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
