import assert from "node:assert/strict";
import { test } from "node:test";
import { module } from "./modules.mjs";

const { formatBytes, formatDuration, formatInstant, formatTicks, tickStep, ticksIn } = await module("time");

test("a duration has the largest unit in which it is at least 1", () => {
  assert.equal(formatDuration(0), "0 ns");
  assert.equal(formatDuration(999), "999 ns");
  assert.equal(formatDuration(1000), "1.000 us");
  assert.equal(formatDuration(9_144_687), "9.145 ms"); // 9.144687 rounded to three decimals
  assert.equal(formatDuration(-4_002_000), "-4.002 ms");
  assert.equal(formatDuration(61e9), "61.000 s");
  assert.equal(formatDuration(-0.2), "0 ns");
});

test("an instant is exact to the microsecond, however late it is", () => {
  assert.equal(formatInstant(0), "0 ms");
  assert.equal(formatInstant(9_144_687), "9.145 ms");
  assert.equal(formatInstant(30_850_123_000), "30.850123 s");
  assert.equal(formatInstant(86_400_000_001_000), "86400.000001 s");
  assert.equal(formatInstant(400), "0 us");
});

test("ticks are 1, 2 or 5 times a power of ten apart, and no more than asked for", () => {
  assert.equal(tickStep(44_800_000, 10), 5_000_000); // 4.48 ms at least
  assert.equal(tickStep(100, 10), 10);
  assert.equal(tickStep(3, 10), 1); // whole ns
  for (const most of [1, 3, 10, 17])
    for (let span = 20; span < 1e15; span *= 3.7) assert.ok(span / tickStep(span, most) <= most * (1 + 1e-9));
});

test("the labels of an axis have one unit, and as many decimals as its ticks are apart", () => {
  const step = 10_000_000;
  assert.deepEqual(ticksIn(6_811_000_000, 6_831_000_000, step), [6_820_000_000, 6_830_000_000]);
  assert.deepEqual(formatTicks([6_820_000_000, 6_830_000_000], step), ["6.82 s", "6.83 s"]);
  assert.deepEqual(formatTicks([-10e6, 0], 10e6), ["-10 ms", "0 ms"]);
  assert.deepEqual(formatTicks([0, 5e6, 10e6], 5e6), ["0 ms", "5 ms", "10 ms"]);
});

test("sizes are decimal", () => {
  assert.equal(formatBytes(999), "999 B");
  assert.equal(formatBytes(32_000_000), "32.000 MB");
  assert.equal(formatBytes(1_500_000_000), "1.500 GB");
});
