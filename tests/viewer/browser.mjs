// Headless Chromium for the tests: Debian's, or the one that CHROMIUM names.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const { chromium } = createRequire(new URL("../../apps/viewer/package.json", import.meta.url))("playwright-core");

const ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync"];

/** A browser with a folder of its own for pages; close() ends both. */
export async function startBrowser() {
  const folder = mkdtempSync(join(tmpdir(), "tutti-viewer-"));
  const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ARGUMENTS });
  return {
    browser,
    folder,
    async close() {
      await browser.close();
      rmSync(folder, { recursive: true, force: true });
    },
    /** Opens a page from a file. `complaints` collects errors of the console and requests other than the file. */
    async open(html, options = {}) {
      const file = join(folder, `page-${Math.random().toString(36).slice(2)}.html`);
      writeFileSync(file, html);
      const page = await (await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options })).newPage();
      const complaints = [];
      const address = pathToFileURL(file).href;
      page.on("console", (message) => ["error", "warning"].includes(message.type()) && complaints.push(message.text()));
      page.on("pageerror", (error) => complaints.push(String(error)));
      page.on("request", (request) => request.url() !== address && !request.url().startsWith("data:") && complaints.push(`request: ${request.url()}`));
      await page.goto(address);
      return { page, complaints };
    },
  };
}
