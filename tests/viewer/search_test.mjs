import assert from "node:assert/strict";
import { test } from "node:test";
import { random } from "./made_run.mjs";
import { module } from "./modules.mjs";

const { lowerBound, upperBound, gallop } = await module("search");

/** The slow oracle: looks at every value. */
const scan = (values, holds, from, to) => {
  for (let i = from; i < to; ++i) if (holds(values[i])) return i;
  return to;
};

test("binary search agrees with a scan, from every place, with equal values and without any", () => {
  const draw = random(7);
  for (let round = 0; round < 300; ++round) {
    const values = Float64Array.from({ length: Math.floor(draw() * 20) }, () => Math.floor(draw() * 12)).sort();
    const from = Math.floor(draw() * (values.length + 1));
    const to = from + Math.floor(draw() * (values.length - from + 1));
    for (let wanted = -1; wanted <= 12; ++wanted) {
      assert.equal(lowerBound(values, wanted, from, to), scan(values, (value) => value >= wanted, from, to));
      assert.equal(upperBound(values, wanted, from, to), scan(values, (value) => value > wanted, from, to));
      assert.equal(gallop(values, wanted, from, to), scan(values, (value) => value >= wanted, from, to));
    }
  }
});
