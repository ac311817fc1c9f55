// SPDX-License-Identifier: MIT
// Many dead messages at once.
import { check, close, confirm, given, open, press, run, visit } from "./page.mjs";

await run(async (browser) => {
  const page = await open(browser);
  await visit(page, "/dead", "no queue for");
  const rows = page.getByRole("row").filter({ hasText: given.ids.unroutable });
  check((await rows.count()) === 4, `four messages, not ${await rows.count()}`);
  for (const at of [0, 1]) await rows.nth(at).getByRole("checkbox").check();
  await page.getByText("2 messages selected").waitFor();
  await press(page, "Discard 2");
  await confirm(page, "Discard 2 messages");
  await page.getByText("2 messages discarded.").waitFor();
  await rows.getByText("discarded", { exact: true }).nth(1).waitFor();
  for (const row of await rows.all())
    if (!(await row.innerText()).includes("discarded")) await row.getByRole("checkbox").check();
  // One of them cannot be replayed: it holds up no other.
  await page.getByRole("row").filter({ hasText: given.ids.gone }).getByRole("checkbox").check();
  await press(page, "Replay 3");
  await confirm(page, "Replay 3 messages");
  await page.getByText(/^2 messages published again, 1 not: ./).waitFor();
  await page.getByText(/\d messages selected/).waitFor({ state: "detached" });
  await close(page);
});
