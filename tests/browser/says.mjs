// SPDX-License-Identifier: MIT
// What the page says of queues, workers, jobs and their past; and one session for all tabs.
import { check, close, given, open, run, visit } from "./page.mjs";

const { ids } = given;

async function aNewQueueHasAFreePriority(page) {
  await visit(page, "/queues/+", "New queue");
  await page.getByLabel("Name").fill("fresh");
  await page.getByText("This filter is valid.").or(page.getByText("no filter")).first().waitFor();
  check((await page.getByLabel("Priority").inputValue()) === "110", "the next free step above 100");
  check((await page.getByText("Somebody").count()) === 0, "a form that opens has no fault");
}

async function aQueueLeadsToItsJobsAndWorkers(page) {
  await visit(page, "/queues/held", "all of this queue");
  await page.getByRole("button", { name: "Delete" }).and(page.locator(":disabled")).waitFor();
  await page.getByText("Jobs that have not ended are on it").waitFor();
  await page.getByText("all of this queue").click();
  await page.getByRole("link", { name: "kept", exact: true }).waitFor();
  await visit(page, "/queues", "held");
  await page.getByRole("row").filter({ hasText: "default" }).getByRole("link", { name: "1", exact: true }).click();
  await page.getByText("Only those of queue default.").waitFor();
  await page.getByText("default-1").waitFor();
  await visit(page, "/queues/empty", "all of this queue");
  await page.getByRole("button", { name: "Delete" }).and(page.locator(":enabled")).waitFor();
}

async function aJobSaysWhoRanIt(page) {
  await visit(page, `/jobs/${ids.done}`, "Show all");
  const history = page.locator(".timeline");
  const few = await history.locator("li").count();
  await page.getByRole("button", { name: /Show all \d+ steps/ }).click();
  check((await history.locator("li").count()) > few, "all steps are more than the main ones");
  await history.getByRole("link", { name: /^default-1 of / }).first().click();
  await page.getByText("Only the one that the job names.").waitFor();
  await page.getByText("default-1").waitFor();
}

async function eventsBeginInThePast(page) {
  await visit(page, "/events", "early");
  await page.getByRole("row").filter({ hasText: "early" }).getByText("finished").first().waitFor();
}

async function anArrowGoesIntoTheTable(page) {
  await visit(page, "/jobs", "early");
  await page.keyboard.press("ArrowDown");
  check(await page.evaluate(() => document.activeElement?.closest("tbody") !== null), "the focus is in the table");
}

async function aSessionIsThatOfAllTabs(page) {
  const second = await page.context().newPage();
  await second.goto("/#/queues");
  await second.getByRole("heading", { name: "Queues", exact: true }).waitFor(); // without a sign-in
  await second.getByRole("button", { name: "Sign out" }).click();
  for (const tab of [page, second]) await tab.getByLabel("Token").waitFor();
  await second.getByLabel("Token").fill(given.tokens.admin);
  await second.getByRole("button", { name: "Sign in" }).click();
  for (const tab of [page, second]) await tab.getByRole("navigation").waitFor();
  const kept = await page.evaluate(() => JSON.stringify({ ...localStorage }) + document.cookie);
  check(!kept.includes(given.tokens.admin), "the token is in nothing that stays");
  await second.close();
}

await run(async (browser) => {
  const page = await open(browser);
  await aNewQueueHasAFreePriority(page);
  await aQueueLeadsToItsJobsAndWorkers(page);
  await aJobSaysWhoRanIt(page);
  await eventsBeginInThePast(page);
  await anArrowGoesIntoTheTable(page);
  await aSessionIsThatOfAllTabs(page);
  await close(page);
});
