// SPDX-License-Identifier: MIT
// page: a browser on the administrators' page. What a test is about (address, tokens, ids) comes as
// the first line of stdin, JSON; a test that fails says why on stderr and exits with 1.
import { createRequire } from "node:module";
import { mkdirSync, readFileSync, readSync, writeSync } from "node:fs";
import { join } from "node:path";
import { chromium } from "playwright-core";

const FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
  "--disable-background-networking", "--disable-component-update", "--disable-sync"];
const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** A line of stdin; what is behind it stays there. */
function readLine() {
  const bytes = [];
  const one = Buffer.alloc(1);
  while (readSync(0, one, 0, 1) === 1 && one[0] !== 10) bytes.push(one[0]);
  return Buffer.from(bytes).toString("utf8");
}

export const given = JSON.parse(readLine());

/** Has the test do what a browser cannot do: stop a server, start a worker. */
export function have(deed) {
  writeSync(1, `have ${deed}\n`);
  check(readLine() === "done", `${deed} was not done`);
}

export function check(truth, text) {
  if (!truth) throw new Error(text);
}

/** Runs one test in a browser of its own. */
export async function run(test) {
  const browser = await chromium.launch({ executablePath: given.chromium, args: FLAGS, headless: true });
  try {
    await test(browser);
  } catch (error) {
    console.error(error.stack ?? error);
    const pages = browser.contexts().flatMap((context) => context.pages());
    for (const [at, page] of pages.entries()) await shoot(page, `failed-${at}`).catch(() => undefined);
    await browser.close();
    process.exit(1); // a server of the test may still listen
  }
  await browser.close();
}

/** A tab of its own, signed in by hand; what the browser complains of fails the test. */
export async function open(browser, { role = "admin", dark = false, width = 1280, height = 800 } = {}) {
  const context = await browser.newContext({
    viewport: { width, height }, colorScheme: dark ? "dark" : "light", baseURL: given.url, bypassCSP: false });
  const page = await context.newPage();
  page.setDefaultTimeout(30000);
  page.complaints = [];
  page.on("pageerror", (error) => page.complaints.push(String(error)));
  page.on("console", (message) => {
    // A refusal that the page shows is no complaint; the browser logs each of them.
    if (message.type() === "error" && !message.text().includes("Failed to load resource"))
      page.complaints.push(message.text());
  });
  await page.goto("/");
  await page.getByLabel("Token").fill(given.tokens[role]);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("navigation").waitFor();
  return page;
}

export async function close(page) {
  check(page.complaints.length === 0, `the browser complains: ${page.complaints.join("\n")}`);
  await page.context().close();
}

export async function shoot(page, name) {
  mkdirSync(given.shots, { recursive: true });
  await page.screenshot({ path: join(given.shots, `${name}.png`), fullPage: true });
}

/** What axe finds that is serious or worse. Its script goes in by the debugger, past the policy. */
export async function faultsOf(page) {
  await page.evaluate(AXE);
  const { violations, passes } = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations"] }));
  check(passes.length > 10, "axe has looked at next to nothing");
  return violations
    .filter((one) => one.impact === "serious" || one.impact === "critical")
    .map((one) => `${one.id}: ${one.help}\n  ${one.nodes.slice(0, 5).map((node) => `${node.target} ${node.failureSummary}`).join("\n  ")}`);
}

/** A screen by its place, and something that is to be read there. */
export async function visit(page, place, text) {
  await page.goto("/#/");
  await page.goto(`/#${place}`);
  if (text) await page.getByText(text).first().waitFor();
  else await page.locator("main h1").first().waitFor();
  await page.locator(".loading").first().waitFor({ state: "detached" });
}

/** A screen by the navigation. */
export async function screen(page, name) {
  await page.getByRole("navigation").getByRole("link", { name: new RegExp(`^${name}`) }).click();
  await page.getByRole("heading", { name, level: 1, exact: true }).waitFor();
}

export async function press(page, name) {
  await page.getByRole("button", { name, exact: true }).first().click();
}

/** Says yes to the question that is open. */
export async function confirm(page, name) {
  await page.getByRole("dialog").getByRole("button", { name, exact: true }).click();
  await page.getByRole("dialog").waitFor({ state: "detached" });
}
