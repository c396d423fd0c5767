import assert from "node:assert/strict";
import { test } from "node:test";
import { module } from "./modules.mjs";

const { around, panned, zoomed } = await module("view");
const limits = { from: 0, to: 1000 };

test("zooming keeps the instant under the pointer in its place", () => {
  // 300 stands a quarter of 200..600 from the left; half of the span around it is 200: 250..450.
  assert.deepEqual(zoomed({ from: 200, to: 600 }, 0.5, 300, limits), { from: 250, to: 450 });
});

test("zooming out ends at the whole run, zooming in at 20 ns", () => {
  assert.deepEqual(zoomed({ from: 200, to: 600 }, 10, 300, limits), limits);
  const view = zoomed({ from: 200, to: 600 }, 1e-6, 300, limits);
  assert.equal(Math.round(view.to - view.from), 20);
});

test("panning stops at the ends and keeps the span", () => {
  assert.deepEqual(panned({ from: 200, to: 600 }, -500, limits), { from: 0, to: 400 });
  assert.deepEqual(panned({ from: 200, to: 600 }, 500, limits), { from: 600, to: 1000 });
  assert.deepEqual(panned(limits, 500, limits), limits);
});

test("an interval is shown in the middle third", () => {
  assert.deepEqual(around(400, 500, 10, limits), { from: 300, to: 600 });
  assert.deepEqual(around(500, 500, 10, limits), { from: 485, to: 515 });
});
