// SPDX-License-Identifier: MIT
// What administrators come for, found by what can be read on the page and nothing else.
import { createServer } from "node:http";
import { check, close, confirm, given, open, press, run, screen } from "./page.mjs";

const { ids } = given;

async function whyDoesThisJobWait(page) {
  await screen(page, "Jobs");
  await page.getByLabel("Filter").fill("name = 'patient'");
  await press(page, "Search");
  await page.getByRole("link", { name: "patient" }).click();
  await page.getByText("for a free slot on queue 'slow'").waitFor();
  await page.getByText("no worker").first().waitFor();
}

async function whichCauseBlocksAndReleaseThem(page) {
  await screen(page, "Recovery");
  const row = page.getByRole("row").filter({ hasText: "connection failed" });
  check((await row.innerText()).includes(String(ids.blocked)), "the count of the blocked jobs");
  await row.getByRole("link").click();
  await page.getByRole("heading", { name: `Waits for 127.0.0.1:${ids.port} to take a connection` }).waitFor();
  const tests = page.locator(".timeline li");
  await tests.first().waitFor({ timeout: 30000 });
  const before = await tests.count();
  await press(page, "Check now");
  await page.getByText("It is being checked now.").waitFor();
  await tests.nth(before).waitFor({ timeout: 30000 }); // in vain: the host is not there yet
  const host = createServer((_, answer) => answer.end("input")).listen(ids.port, "127.0.0.1").unref();
  await press(page, "Release");
  await page.getByText("They are released without a check").waitFor();
  await confirm(page, `Release ${ids.blocked} jobs`);
  await page.getByText(`${ids.blocked} jobs are released.`).waitFor();
  await page.getByText(/No job waits here any more|There is nothing of that name/).first().waitFor({ state: "visible", timeout: 60000 });
  return host;
}

async function allHaveGoneOn(page) {
  await screen(page, "Jobs");
  await page.getByLabel("Filter").fill("name LIKE 'align-%' AND status <> 'FINISHED'");
  await press(page, "Search");
  await page.getByText("No matching jobs").waitFor({ timeout: 90000 });
}

async function whatDoesThisDeadMessageSayAndReplayIt(page) {
  await screen(page, "Dead messages");
  await page.getByRole("row").filter({ hasText: "given up by" }).getByRole("link").first().click();
  const body = page.getByLabel("Body; what you change here is replayed");
  check((await body.inputValue()).includes("hello"), "the body is decoded");
  const name = await page.getByText(/^hello-\d$/).innerText(); // which of them comes first is chance
  await page.getByText("68 65 6c 6c 6f").waitFor(); // and raw
  await body.fill(JSON.stringify({ v: 1, job: ids.waiting, epoch: 1 }));
  await press(page, "Replay");
  await page.getByText("with the body as you changed it").waitFor();
  await confirm(page, "Replay 1 message");
  await page.getByText("The message was published again.").waitFor();
  await page.getByText("replayed", { exact: true }).waitFor();
  return name;
}

async function whichFilterWouldTakeThisRequest(page) {
  await screen(page, "Queues");
  await page
    .getByLabel("Job request; nothing is stored")
    .fill(JSON.stringify({ name: "x", command: ["true"], maxMinutes: 90, tags: ["slow"] }));
  await press(page, "Test the filters");
  await page.getByText("Queue slow would take it.").waitFor();
  await page.getByText("maxMinutes = 90").waitFor();
}

async function changeAFilter(page) {
  await screen(page, "Queues");
  await page.getByRole("link", { name: "slow", exact: true }).click();
  const filter = page.getByLabel("Filter: the jobs for which it is true come here");
  await filter.fill("'slow' IN tag");
  await page.getByText("did you mean 'tags'").waitFor();
  check((await page.locator(".editor mark").innerText()) === "tag", "the mistake is marked in the text");
  check(await page.getByRole("button", { name: "Save" }).isDisabled(), "a wrong filter cannot be saved");
  await filter.fill("'slow' IN tags OR 'late' IN tags");
  await page.getByText("This filter is valid").waitFor();
  await press(page, "Save");
  await page.getByText("Queue slow is saved and counts from now on.").waitFor();
}

async function followOutputLive(page) {
  await screen(page, "Jobs");
  await page.getByLabel("Filter").fill("name = 'ticker'");
  await press(page, "Search");
  await page.getByRole("link", { name: "ticker" }).click();
  const output = page.getByRole("log");
  const last = async () => Number(/tick (\d+)\s*$/.exec(await output.innerText())?.[1] ?? 0);
  await page.getByText("tick 2").first().waitFor();
  const before = await last();
  await page.getByText(`tick ${before + 5}`).first().waitFor();
  await press(page, "Cancel");
  await confirm(page, "Cancel 1 job");
  await page.getByText("cancelled", { exact: true }).first().waitFor();
}

async function watchEvents(page) {
  await screen(page, "Events");
  const listening = page.waitForResponse((answer) => answer.url().includes("/v1/events?type=FINISHED"));
  await page.getByLabel("New state").selectOption("finished");
  await listening;
  const headers = { Authorization: `Bearer ${given.tokens.admin}`, "Content-Type": "application/json" };
  const submit = (name) =>
    fetch(`${given.url}/v1/jobs`, { method: "POST", headers, body: JSON.stringify({ name, command: ["true"] }) });
  await submit("seen-live");
  const row = page.getByRole("row").filter({ hasText: "seen-live" });
  await row.getByText("finished").first().waitFor({ timeout: 30000 });
  await press(page, "Live");
  await submit("seen-later");
  await press(page, "Paused");
  await page.getByRole("link", { name: "seen-later" }).waitFor({ timeout: 30000 });
  check((await row.count()) === 1, "an event is shown once");
}

async function drainAWorker(page) {
  await screen(page, "Workers");
  const row = page.getByRole("row").filter({ hasText: "worker-two" });
  await row.getByRole("button", { name: "Drain" }).click();
  await page.getByText("It takes no further job").waitFor();
  await confirm(page, "Drain 1 worker");
  await row.getByText("draining").waitFor();
}

async function cancelSome(page) {
  await screen(page, "Jobs");
  await page.getByLabel("Filter").fill("name LIKE 'search-%'");
  await press(page, "Search");
  await page.getByRole("link", { name: "search-1" }).waitFor();
  await page.getByLabel("Select all on this page").check();
  await press(page, "Cancel 3");
  await confirm(page, "Cancel 3 jobs");
  await page.getByText("3 jobs asked to end.").waitFor();
}

await run(async (browser) => {
  const page = await open(browser);
  await whyDoesThisJobWait(page);
  const host = await whichCauseBlocksAndReleaseThem(page); // it is there until the end
  const replayed = await whatDoesThisDeadMessageSayAndReplayIt(page);
  await whichFilterWouldTakeThisRequest(page);
  await changeAFilter(page);
  await followOutputLive(page);
  await allHaveGoneOn(page); // before events are counted: these are events, too
  await watchEvents(page);
  await cancelSome(page);
  await drainAWorker(page);
  await close(page);
  host.close();
  console.log(JSON.stringify({ replayed }));
});
