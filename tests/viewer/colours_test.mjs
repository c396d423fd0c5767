import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { module } from "./modules.mjs";

const { SERIES } = await module("colours");

/** Relative luminance and contrast of WCAG 2. */
const luminance = (colour) => {
  const [r, g, b] = [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16) / 255)
    .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const contrast = (a, b) => {
  const [dark, light] = [luminance(a), luminance(b)].sort((x, y) => x - y);
  return (light + 0.05) / (dark + 0.05);
};

const css = readFileSync(new URL("../../apps/viewer/src/page.css", import.meta.url), "utf8");
const schemes = css.split("prefers-color-scheme: dark").slice(0, 2)
  .map((part) => Object.fromEntries([...part.matchAll(/--(\w+): (#\w{6});/g)].map(([, name, value]) => [name, value])));

test("black on white has a contrast of 21", () => assert.equal(contrast("#000000", "#ffffff"), 21));

for (const [i, name] of ["light", "dark"].entries())
  test(`text of the ${name} scheme has a contrast of at least 4.5 on what it stands on`, () => {
    const scheme = schemes[i];
    for (const [text, ground] of [["ink", "paper"], ["ink", "lane"], ["ink", "grid"], ["muted", "paper"], ["muted", "lane"],
      ["miss", "paper"], ["over", "paper"], ["over", "lane"], ["focus", "paper"]])
      assert.ok(contrast(scheme[text], scheme[ground]) >= 4.5, `${text} on ${ground}: ${contrast(scheme[text], scheme[ground])}`);
  });

test("names of slices have a contrast of at least 4.5 on their colours", () => {
  for (const { fill, text } of SERIES) assert.ok(contrast(fill, text) >= 4.5, `${text} on ${fill}: ${contrast(fill, text)}`);
});
