// SPDX-License-Identifier: MIT
// The page without a mouse: shortcuts, the skip link, tables, dialogs, a selection that stays.
import { check, close, given, open, run, visit } from "./page.mjs";

const focusText = (page) => page.evaluate(() => document.activeElement?.textContent ?? "");

await run(async (browser) => {
  const page = await open(browser);
  await page.keyboard.press("g");
  await page.keyboard.press("j");
  await page.getByRole("heading", { name: "Jobs", exact: true }).waitFor();

  await page.keyboard.press("?");
  await page.getByRole("dialog", { name: "Shortcuts" }).waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });

  await page.reload();
  await page.getByRole("heading", { name: "Jobs", exact: true }).waitFor();
  await page.keyboard.press("Tab");
  check((await focusText(page)).includes("Skip to the content"), "the first stop is the skip link");
  await page.keyboard.press("Enter");
  check(await page.evaluate(() => document.activeElement?.id === "main"), "the skip link leads to the content");

  await page.keyboard.press("/");
  await page.keyboard.type("name LIKE 'align-%'");
  await page.getByText("This filter is valid").waitFor();
  await page.keyboard.press("Enter");
  await page.getByRole("link", { name: "ticker" }).waitFor({ state: "detached" }); // the new list is there
  await page.getByRole("link", { name: "align-499" }).waitFor();
  await page.getByRole("link", { name: "align-499" }).focus();
  await page.keyboard.press("ArrowDown");
  check((await focusText(page)) === "align-498", `an arrow leads to the next row, not to ${await focusText(page)}`);
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "align-498" }).waitFor();

  await visit(page, "/jobs", "align-499");
  const box = page.locator("tbody input[type=checkbox]").nth(2);
  await box.focus();
  await page.keyboard.press("Space");
  await page.getByText("1 job selected").waitFor();
  const asked = page.waitForResponse((answer) => answer.url().includes("/v1/jobs?"));
  await asked;
  check(await box.isChecked(), "the selection survives an update");
  check(await box.evaluate((element) => element === document.activeElement), "the focus survives an update");

  await page.keyboard.press("p");
  await page.getByRole("button", { name: "Paused" }).waitFor();
  let calls = 0;
  page.on("request", () => calls++);
  await page.waitForTimeout(3000); // longer than the time between two updates
  check(calls === 0, `${calls} calls although it is paused`);

  // An address that is no text leads to a place that is not there, and not to an empty page.
  await page.goto("/#/%E0%A4%A");
  await page.reload();
  await page.getByRole("navigation").waitFor();
  await page.goto("/#/jobs/%FF");
  await page.getByRole("navigation").waitFor();
  await close(page);
});
