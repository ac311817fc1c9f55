// SPDX-License-Identifier: MIT
// Applications, systems, quotas, webhooks and deliveries: made, changed, switched and deleted by what
// can be read on the page. What is switched on lets the jobs go that wait for it.
import { check, close, given, open, press, confirm, run, screen, visit } from "./page.mjs";

const { ids } = given;

async function says(page, text) {
  await page.getByRole("status").getByText(text).waitFor();
}

const rowOf = (page, name) => page.getByRole("row").filter({ has: page.getByRole("link", { name, exact: true }) });

async function switchInTheList(page, name, noun) {
  const row = rowOf(page, name);
  await row.getByRole("button", { name: "Disable" }).click();
  await confirm(page, `Disable 1 ${noun}`);
  await row.getByText("disabled", { exact: true }).waitFor();
  await row.getByRole("button", { name: "Enable" }).click();
  await confirm(page, `Enable 1 ${noun}`);
  await row.getByText("enabled", { exact: true }).waitFor();
}

async function remove(page, name, noun, title) {
  await rowOf(page, name).getByRole("link", { name, exact: true }).click();
  await press(page, "Delete");
  await confirm(page, `Delete 1 ${noun}`);
  await page.getByRole("heading", { name: title, level: 1 }).waitFor();
  await rowOf(page, name).waitFor({ state: "detached" });
}

async function applications(page) {
  await screen(page, "Applications");
  await rowOf(page, "blast 2").getByText("disabled").waitFor();
  await page.getByRole("link", { name: "New application" }).click();
  await page.getByLabel("Id; letters").fill("tool");
  await page.getByLabel("Version").fill("1.0");
  await page.getByLabel("Definition").fill('{"command": ["true"');
  await press(page, "Save");
  await page.getByText("The definition is not JSON").waitFor();
  await page.getByLabel("Definition").fill('{"nonsense": 1}');
  await press(page, "Save");
  await page.getByRole("alert").getByText("nonsense").first().waitFor();
  await page.getByLabel("Definition").fill('{"command": ["true"], "memoryMB": 10}');
  await press(page, "Save");
  await says(page, "Application tool 1.0 is saved.");
  await page.getByRole("heading", { name: "Application tool 1.0" }).waitFor();
  // A switch is no change by somebody else: what was typed before it can still be saved.
  await page.getByLabel("Definition").fill('{"command": ["false"]}');
  await press(page, "Disable");
  await confirm(page, "Disable 1 application");
  await page.getByText("disabled", { exact: true }).waitFor();
  await press(page, "Save");
  await says(page, "Application tool 1.0 is saved.");
  await screen(page, "Applications");
  await rowOf(page, "tool 1.0").getByText("false").waitFor();
  await rowOf(page, "tool 1.0").getByRole("button", { name: "Enable" }).click();
  await confirm(page, "Enable 1 application");
  await switchInTheList(page, "tool 1.0", "application");
  await remove(page, "tool 1.0", "application", "Applications");
}

async function systems(page) {
  await screen(page, "Systems");
  await page.getByRole("link", { name: "New system" }).click();
  await page.getByLabel("Id; letters").fill("east");
  await page.getByLabel("Active jobs at most").fill("3");
  await press(page, "Save");
  await page.getByRole("heading", { name: "System east" }).waitFor();
  await page.getByLabel("Description").fill("two hosts");
  await press(page, "Save");
  await says(page, "System east is saved.");
  await screen(page, "Systems");
  await rowOf(page, "east").getByText("two hosts").waitFor();
  check((await rowOf(page, "east").innerText()).includes("3"), "the limit is shown");
  await switchInTheList(page, "east", "system");
  await remove(page, "east", "system", "Systems");
}

async function quotas(page) {
  await screen(page, "Quotas");
  await rowOf(page, "the whole tenant").waitFor();
  await page.getByRole("link", { name: "New quota" }).click();
  await page.getByLabel("User, or *").fill("bob");
  check(await page.getByRole("button", { name: "Save" }).isDisabled(), "a quota has a number");
  await page.getByLabel("Active jobs at most").fill("7");
  await press(page, "Save");
  await page.getByText("0 of 7").waitFor();
  await screen(page, "Quotas");
  await remove(page, "bob", "quota", "Quotas");
}

async function webhooks(page) {
  await screen(page, "Webhooks");
  await page.getByRole("link", { name: "New webhook" }).click();
  await page.getByLabel("Name; letters").fill("mail");
  await page.getByLabel("Address (URL)").fill(`http://127.0.0.1:${ids.port}/mail`);
  await page.getByLabel("finished").uncheck();
  await press(page, "Save");
  const secret = page.getByText(/^whsec_/);
  await secret.waitFor();
  const first = await secret.innerText();
  await press(page, "Rotate secret");
  await confirm(page, "Rotate 1 secret");
  await says(page, "Webhook mail has a new secret.");
  check((await secret.innerText()) !== first, "the new secret is shown");
  await screen(page, "Webhooks");
  const row = rowOf(page, "mail");
  check(/cancelled, failed|failed, cancelled/.test(await row.innerText()), "the events are shown");
  check(!(await row.innerText()).includes("finished"), "what was not chosen is not shown");
  await switchInTheList(page, "mail", "webhook");
  await row.getByRole("link", { name: "mail" }).click();
  await page.getByRole("heading", { name: "Webhook mail" }).waitFor();
  check((await page.getByText(/^whsec_/).count()) === 0, "a secret is shown once");
  await screen(page, "Webhooks");
  await remove(page, "mail", "webhook", "Webhooks");
}

async function deliveries(page) {
  await screen(page, "Deliveries");
  await page.getByLabel("Id of a job").fill(ids.failed);
  await page.getByLabel("Id of a job").press("Enter");
  const row = page.getByRole("row").filter({ hasText: "portal" });
  await row.getByText("delivered", { exact: true }).waitFor();
  check((await row.count()) === 1, "the search finds the one delivery of the job");
  await row.getByRole("link", { name: "failed", exact: true }).click();
  await page.getByText('"exitCode": 3').waitFor();
  const attempts = page.getByRole("region", { name: "Newest attempts" }).locator("tbody tr");
  const before = await attempts.count();
  await press(page, "Send again");
  await confirm(page, "Send 1 delivery");
  await attempts.nth(before).waitFor();
}

async function whatIsEnabledLetsItsJobsGo(page) {
  await visit(page, `/jobs/${ids.held}`, "blocked");
  await page.getByRole("link", { name: "System west" }).click();
  await page.getByRole("heading", { name: "System west" }).waitFor();
  await screen(page, "Recovery");
  const row = page.getByRole("row").filter({ hasText: "system west" });
  await row.getByRole("link", { name: /^system west/ }).click();
  await page.getByRole("heading", { name: "Waits for system west" }).waitFor();
  await press(page, "Enable system west");
  await confirm(page, "Enable 1 system");
  await visit(page, `/jobs/${ids.held}`);
  await page.getByText("finished", { exact: true }).first().waitFor({ timeout: 60000 });
}

await run(async (browser) => {
  const page = await open(browser);
  await applications(page);
  await systems(page);
  await quotas(page);
  await webhooks(page);
  await deliveries(page);
  await whatIsEnabledLetsItsJobsGo(page);
  await close(page);
});
