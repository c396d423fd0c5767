import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { page } from "../../apps/viewer/build.mjs";
import { pageWith } from "./made_run.mjs";

const read = (name) => readFileSync(new URL(`../../apps/viewer/${name}`, import.meta.url), "utf8");

test("page.html is what the sources build", async () => assert.ok((await page()) === read("page.html"), "build it: npm run build"));

test("page.html has one place for data, and no address to load from", () => {
  const built = read("page.html");
  assert.equal(built.split('<script type="application/json" id="tutti-data">null</script>').length, 2);
  assert.equal(built.split("tutti-data\">").length, 2);
  assert.doesNotMatch(built, /(src|href)=["']?(https?:)?\/\//);
  assert.doesNotMatch(built, /@import|url\(/);
  assert.match(built, /Copyright \(c\) 2022 Leon Sorokin/);
});

test("the lock file has no addresses, and every package is pinned", () => {
  assert.doesNotMatch(read("package-lock.json"), /"resolved"|https?:\/\/[^"]*(registry|npm)/);
  const { dependencies, devDependencies } = JSON.parse(read("package.json"));
  for (const version of Object.values({ ...dependencies, ...devDependencies })) assert.match(version, /^\d+\.\d+\.\d+$/);
});

test("data that would end its place does not", () => {
  const html = pageWith({ title: "</script><!--" });
  assert.equal(html.split("</script>").length, read("page.html").split("</script>").length);
});
