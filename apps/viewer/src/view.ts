/** The part of a run that the lanes and the series show, in ns. */
export interface View {
  from: number;
  to: number;
}

const SHORTEST = 20; // ns

/** The finest distance of instants, in ns, of which every multiple in the limits is a number without rounding. */
export function gridOf(limits: View): number {
  return 2 ** (Math.ceil(Math.log2(Math.max(Math.abs(limits.from), Math.abs(limits.to), 1))) - 52);
}

/**
 * The view moved and shrunk into the limits, and never shorter than 20 ns.
 *
 * Its ends are on the grid of the limits. So a view that is panned keeps its span to the last bit.
 */
export function clamped(view: View, limits: View): View {
  const grid = gridOf(limits);
  const on = (instant: number) => Math.round(instant / grid) * grid;
  const most = limits.to - limits.from;
  const span = Math.min(Math.max(on(view.to - view.from), SHORTEST), most);
  const from = Math.min(Math.max(on((view.from + view.to - span) / 2), limits.from), limits.to - span);
  return { from, to: from + span };
}

/** The view with `factor` times its span; the instant `at` stays in its place. */
export function zoomed(view: View, factor: number, at: number, limits: View): View {
  const span = Math.min(Math.max((view.to - view.from) * factor, SHORTEST), limits.to - limits.from);
  const part = (at - view.from) / (view.to - view.from);
  return clamped({ from: at - part * span, to: at + (1 - part) * span }, limits);
}

/** The view moved by a time; at a limit it stops and keeps its span. */
export function panned(view: View, by: number, limits: View): View {
  return clamped({ from: view.from + by, to: view.to + by }, limits);
}

/** A view with an interval in its middle third, or wider where the interval is shorter than `least` ns. */
export function around(from: number, to: number, least: number, limits: View): View {
  const length = Math.max(to - from, least);
  const middle = (from + to) / 2;
  return clamped({ from: middle - 1.5 * length, to: middle + 1.5 * length }, limits);
}
