// SPDX-License-Identifier: MIT
// The search box, the address, the list and the dialog of jobs always say the same.
import { check, close, given, open, run, visit } from "./page.mjs";

const headers = { Authorization: `Bearer ${given.tokens.admin}`, "Content-Type": "application/json" };

async function submit(name) {
  const body = JSON.stringify({ name, command: ["true"] });
  const answer = await fetch(`${given.url}/v1/jobs`, { method: "POST", headers, body });
  return (await answer.json()).id;
}

const statusOf = async (id) => (await (await fetch(`${given.url}/v1/jobs/${id}`, { headers })).json()).status;
const box = (page) => page.getByLabel("Search: words");
const cancelAll = (page) => page.getByRole("button", { name: "Cancel all found" });
const link = (page, name) => page.getByRole("link", { name, exact: true });

/** The box says it, and the list has these of "wolf" and "sheep". */
async function agree(page, text, { wolf, sheep }) {
  const [there, gone] = [wolf && "wolf-0", sheep && "sheep-0"].reduce(
    ([yes, no], name, i) => (name ? [[...yes, name], no] : [yes, [...no, ["wolf-0", "sheep-0"][i]]]), [[], []]);
  for (const name of there) await link(page, name).waitFor();
  for (const name of gone) await link(page, name).waitFor({ state: "detached" });
  check((await box(page).inputValue()) === text, `the box says ${await box(page).inputValue()}, not ${text}`);
  const query = new URLSearchParams(new URL(page.url()).hash.split("?")[1] ?? "");
  check((query.get("filter") ?? "") === text, `the address says ${query}, not ${text}`);
  check(await cancelAll(page).isEnabled(), "the box is what was searched: the act is offered");
}

async function search(page, text) {
  await box(page).fill(text);
  await page.getByRole("button", { name: "Search", exact: true }).click();
}

async function theBoxFollowsTheAddress(page) {
  await visit(page, "/jobs", "wolf-0");
  await search(page, "name = 'none'");
  await agree(page, "name = 'none'", {});
  await page.getByRole("navigation").getByRole("link", { name: "Jobs" }).click();
  await agree(page, "", { wolf: true, sheep: true });
  await page.evaluate(() => (location.hash = `#/jobs?${new URLSearchParams({ filter: "name LIKE 'wolf-%'" })}`));
  await agree(page, "name LIKE 'wolf-%'", { wolf: true });
  await page.goBack();
  await agree(page, "", { wolf: true, sheep: true });
  await page.goto(`/#/jobs?status=RUNNING`);
  await page.getByRole("button", { name: "running", exact: true, pressed: true }).waitFor();
}

async function whatIsNotSearchedIsActedOnByNobody(page) {
  await visit(page, "/jobs", "wolf-0");
  await box(page).fill("name LIKE 'sheep-%'");
  await page.getByText("Not searched yet. The list is still that of no filter.").waitFor();
  check(await cancelAll(page).isDisabled(), "the box is not what was searched: nothing is offered");
  await page.getByRole("button", { name: "Undo" }).click();
  await agree(page, "", { wolf: true, sheep: true });
}

async function wordsAndIdsAreFound(page, id) {
  await visit(page, "/jobs", "wolf-0");
  await search(page, "wolf-");
  await agree(page, "wolf-", { wolf: true });
  await page.getByText("Jobs with this in their name").waitFor();
  await search(page, id);
  await page.getByRole("heading", { name: "sheep-0" }).waitFor();
}

async function aMistakeIsShownOnce(page) {
  await visit(page, "/jobs", "wolf-0");
  const mistake = "onwer = 'ann'";
  await page.evaluate((text) => (location.hash = `#/jobs?${new URLSearchParams({ filter: text })}`), mistake);
  await page.getByText("No list: the filter has a mistake").waitFor();
  await page.getByText("did you mean 'owner'").waitFor();
  check((await page.getByText("did you mean 'owner'").count()) === 1, "the mistake is shown once");
  check((await page.getByRole("alert").count()) === 0, "and not in a panel as well");
}

async function whatWasConfirmedIsCancelledAndNothingElse(page, ids) {
  await visit(page, "/jobs", "wolf-0");
  await search(page, "name LIKE 'sheep-%'");
  await agree(page, "name LIKE 'sheep-%'", { sheep: true });
  await cancelAll(page).click();
  const dialog = page.getByRole("dialog", { name: `Cancel ${ids.length} jobs?` });
  const said = await dialog.innerText();
  for (const part of ["name LIKE 'sheep-%'", "sheep-0", `and ${ids.length - 5} more`, "cannot be resumed"])
    check(said.includes(part), `the dialog does not say ${part}: ${said}`);
  const late = await submit("sheep-late");
  await dialog.getByRole("button", { name: `Cancel ${ids.length} jobs` }).click();
  await page.getByText(`${ids.length} jobs cancelled or asked to end.`).waitFor();
  for (const id of ids) check((await statusOf(id)) === "CANCELLED", `${id} was confirmed`);
  check((await statusOf(late)) === "PENDING", "a job that came after the question was not confirmed");
  await search(page, "name = 'sheep-0'");
  await link(page, "sheep-late").waitFor({ state: "detached" });
  await cancelAll(page).click();
  await page.getByRole("dialog", { name: "Nothing to cancel" }).waitFor();
  await page.goBack();
  await page.getByRole("dialog").waitFor({ state: "detached" });
}

await run(async (browser) => {
  const sheep = [];
  for (let n = 0; n < 7; n++) sheep.push(await submit(`sheep-${n}`));
  await submit("wolf-0");
  const page = await open(browser);
  await theBoxFollowsTheAddress(page);
  await whatIsNotSearchedIsActedOnByNobody(page);
  await wordsAndIdsAreFound(page, sheep[0]);
  await aMistakeIsShownOnce(page);
  await whatWasConfirmedIsCancelledAndNothingElse(page, sheep);
  await close(page);
});
