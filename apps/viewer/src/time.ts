interface Unit {
  name: string;
  ns: number;
}

const UNITS: readonly Unit[] = [
  { name: "s", ns: 1e9 },
  { name: "ms", ns: 1e6 },
  { name: "us", ns: 1e3 },
  { name: "ns", ns: 1 },
];

function unitOf(ns: number): Unit {
  return UNITS.find((unit) => Math.abs(ns) >= unit.ns) ?? UNITS[UNITS.length - 1]!;
}

/** `value` with this many decimals, and never "-0". */
function fixed(value: number, decimals: number): string {
  const text = value.toFixed(decimals);
  return Number(text) === 0 ? text.replace("-", "") : text;
}

/** A length of time in the largest unit in which it is at least 1, with three decimals: "9.145 ms". */
export function formatDuration(ns: number): string {
  const unit = unitOf(Math.round(ns));
  return `${fixed(ns / unit.ns, unit.ns === 1 ? 0 : 3)} ${unit.name}`;
}

/** An instant of a run, to the microsecond: "30.850123 s", "9.145 ms". */
export function formatInstant(ns: number): string {
  return ns === 0 ? "0 ms" : formatAt(ns, 1e3, unitOf(Math.max(Math.abs(ns), 1e3)));
}

function formatAt(ns: number, resolution: number, unit: Unit): string {
  const decimals = Math.max(0, Math.ceil(Math.log10(unit.ns / resolution) - 1e-9));
  return `${fixed(ns / unit.ns, decimals)} ${unit.name}`;
}

/** Distance of ticks: the smallest of 1, 2 and 5 times a power of ten ns that gives at most `most` of them. */
export function tickStep(span: number, most: number): number {
  const least = Math.max(span / Math.max(most, 1), 1);
  const power = 10 ** Math.floor(Math.log10(least));
  return [1, 2, 5, 10].map((factor) => factor * power).find((step) => step >= least * (1 - 1e-9))!;
}

/** Labels of ticks: one unit for all of them, that of the largest, and as many decimals as their distance needs. */
export function formatTicks(ticks: readonly number[], step: number): string[] {
  const unit = unitOf(Math.max(...ticks.map(Math.abs), step));
  return ticks.map((tick) => formatAt(tick, step, unit));
}

/** Multiples of `step` in [from, to]. */
export function ticksIn(from: number, to: number, step: number): number[] {
  const ticks: number[] = [];
  for (let n = Math.ceil(from / step); n * step <= to; ++n) ticks.push(n * step);
  return ticks;
}

/** A size in bytes, in decimal units: "32.000 MB". */
export function formatBytes(bytes: number): string {
  const [name, size] = bytes >= 1e9 ? ["GB", 1e9] as const : bytes >= 1e6 ? ["MB", 1e6] as const
    : bytes >= 1e3 ? ["kB", 1e3] as const : ["B", 1] as const;
  return `${fixed(bytes / size, size === 1 ? 0 : 3)} ${name}`;
}
