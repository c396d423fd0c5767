import uPlot from "uplot";
import { type Scheme, SERIES } from "./colours.js";
import type { RunData } from "./data.js";
import { extent, formatPercent, isMiss, isOverBound, lateness, modelError } from "./jobs.js";
import type { Item } from "./rows.js";
import type { Sight } from "./sight.js";
import type { State } from "./state.js";
import { formatDuration, formatTicks } from "./time.js";
import type { View } from "./view.js";

/** A number of every job, drawn over time. */
interface Measure {
  title: string;
  value: (job: number) => number;
  labels: (values: number[], step: number) => string[];
  format: (value: number) => string;
}

const HEIGHT = 120;
const CELL = 2; // px: points in one cell of this size are drawn once
const POINT = 3;

function measuresOf(data: RunData): Measure[] {
  const { jobs } = data;
  const percent = (values: number[], step: number) => values.map((value) => `${value.toFixed(step < 1 ? 2 : 0)} %`);
  const time = { labels: formatTicks, format: formatDuration };
  const known = (measure: Measure) => Array.from({ length: jobs.count }, (_, job) => measure.value(job)).some(Number.isFinite);
  return [
    { title: "Lateness: finish minus deadline; above 0 is a miss", value: (job: number) => lateness(jobs, job), ...time },
    { title: "Release lateness: from ready until the dispatcher saw the job", value: (job: number) => jobs.releaseLateness[job]!, ...time },
    { title: `Model error: ${data.actual} length against the predicted one`, value: (job: number) => modelError(jobs, job), labels: percent, format: formatPercent },
  ].filter(known);
}

/** Numbers of jobs over time, on the axis of the lanes: lateness, release lateness, model error. */
export class Series {
  private readonly plots: uPlot[] = [];
  private readonly order: Int32Array; // jobs by their ends
  private readonly ends: Float64Array;
  private readonly drawn = new Map<uPlot, { view: View; selected: Item | null }>();
  private readonly cells = new Map<uPlot, Uint8Array>();

  constructor(
    private data: RunData, private state: State, private scheme: Scheme, private left: number, place: HTMLElement,
    width: number,
  ) {
    const ends = Float64Array.from({ length: data.jobs.count }, (_, job) => extent(data.jobs, job).to);
    this.order = Int32Array.from(ends.keys()).sort((a, b) => ends[a]! - ends[b]!);
    this.ends = Float64Array.from(this.order, (job) => ends[job]!);
    for (const measure of measuresOf(data)) this.plots.push(this.plot(measure, place, width));
  }

  /** Where the pointer moves over the series, for panning and hovering there too. */
  get surfaces(): HTMLElement[] {
    return this.plots.map((plot) => plot.over);
  }
  get pictures(): HTMLElement[] {
    return this.plots.map((plot) => plot.root);
  }
  recolour(scheme: Scheme): void {
    this.scheme = scheme;
    this.redraw();
  }
  redraw(): void {
    for (const plot of this.plots) plot.redraw(false, true);
  }
  resize(width: number, left: number): void {
    this.left = left;
    for (const plot of this.plots) plot.setSize({ width, height: HEIGHT });
  }
  /** Draws those in sight. */
  draw(sight: Sight): void {
    const { view, cursor, selected } = this.state;
    for (const plot of this.plots.filter((one) => sight.has(one.root))) {
      const drawn = this.drawn.get(plot);
      if (drawn?.view !== view) plot.setScale("x", { min: view.from, max: view.to });
      else if (drawn.selected !== selected) plot.redraw(false);
      this.drawn.set(plot, { view, selected });
      plot.setCursor({ left: cursor === null ? -10 : plot.valToPos(cursor, "x"), top: 0 }, false);
    }
  }

  /** The job whose point is nearest to a place of a surface, at most 12 px away; -1: none. */
  jobAt(surface: HTMLElement, x: number, y: number): number {
    const plot = this.plots.find((one) => one.over === surface)!;
    let [best, distance] = [-1, 12];
    const values = plot.data[1] as unknown as Float64Array;
    const [first, last] = [plot.valToIdx(plot.posToVal(x - distance, "x")), plot.valToIdx(plot.posToVal(x + distance, "x"))];
    for (let i = first; i <= last; ++i) {
      const away = Math.hypot(plot.valToPos(this.ends[i]!, "x") - x, plot.valToPos(values[i]!, "y") - y);
      if (away <= distance && this.shown(this.order[i]!)) [best, distance] = [this.order[i]!, away];
    }
    return best;
  }

  private shown(job: number): boolean {
    return this.state.shown[this.data.jobs.task[job]!] === 1;
  }

  private plot(measure: Measure, place: HTMLElement, width: number): uPlot {
    const figure = place.appendChild(document.createElement("figure"));
    figure.appendChild(document.createElement("figcaption")).textContent = measure.title;
    const values = Float64Array.from(this.order, measure.value);
    figure.setAttribute("aria-label", `${measure.title}. ${rangeText(measure, values)}`);
    figure.setAttribute("role", "img");
    return new uPlot(this.options(measure, width, rangeOf(values)), [this.ends, values] as unknown as uPlot.AlignedData, figure);
  }

  private options(measure: Measure, width: number, range: [number, number]): uPlot.Options {
    const ink = () => this.scheme.ink;
    const grid = { stroke: () => this.scheme.grid, width: 1 };
    const font = "11px system-ui, sans-serif";
    return {
      width, height: HEIGHT, legend: { show: false }, padding: [6, 0, 0, 0],
      cursor: { drag: { x: false, y: false, setScale: false }, points: { show: false }, y: false },
      scales: { x: { time: false, auto: false, range: (_, min, max) => [min, max] }, y: { range: () => range } },
      axes: [
        { stroke: ink, grid, ticks: { show: false }, size: 22, font, space: 90, values: (plot, ticks, __, ___, step) => inside(plot, ticks, formatTicks(ticks, step)) },
        { stroke: ink, grid, ticks: { show: false }, size: () => this.left, font, gap: 3, space: 26,
          values: (_, ticks, __, ___, step) => measure.labels(ticks, step) },
      ],
      series: [{}, { paths: () => null, points: { show: false } }],
      hooks: { draw: [(plot) => this.drawPoints(plot)] },
    };
  }

  private drawPoints(plot: uPlot): void {
    const { left, top, width, height } = plot.bbox;
    const ratio = uPlot.pxRatio;
    const cell = CELL * ratio;
    const columns = Math.ceil(width / cell) + 1;
    const used = this.cleared(plot, columns * (Math.ceil(height / cell) + 1));
    const { min: from, max: to } = plot.scales.x as { min: number; max: number };
    const { min: low, max: high } = plot.scales.y as { min: number; max: number };
    const values = plot.data[1] as unknown as Float64Array;
    const first = Math.max(plot.valToIdx(from) - 1, 0);
    const last = Math.min(plot.valToIdx(to) + 1, values.length - 1);
    plot.ctx.fillStyle = this.scheme.muted;
    plot.ctx.fillRect(left, top + Math.round((high / (high - low)) * height), width, ratio);
    const marks: { kind: "miss" | "over"; x: number; y: number }[] = [];
    const selected = this.state.selected?.kind === "job" ? this.state.selected.id : -1;
    let colour = "";
    for (let i = first; i <= last; ++i) {
      const x = ((this.ends[i]! - from) / (to - from)) * width;
      const y = ((high - values[i]!) / (high - low)) * height;
      const job = this.order[i]!;
      if (!(x >= 0 && x <= width && y >= 0) || !this.shown(job)) continue;
      if (job === selected) this.drawRing(plot, left + x, top + y);
      if (isMiss(this.data.jobs, job)) marks.push({ kind: "miss", x, y });
      else if (isOverBound(this.data.jobs, job)) marks.push({ kind: "over", x, y });
      const at = Math.floor(y / cell) * columns + Math.floor(x / cell);
      if (used[at]) continue;
      used[at] = 1;
      const wanted = SERIES[this.data.jobs.task[job]! % SERIES.length]!.fill;
      if (wanted !== colour) plot.ctx.fillStyle = colour = wanted;
      plot.ctx.fillRect(left + x - (POINT * ratio) / 2, top + y - (POINT * ratio) / 2, POINT * ratio, POINT * ratio);
    }
    for (const { kind, x, y } of marks) this.drawMark(plot, kind, left + x, top + y);
  }
  private drawRing(plot: uPlot, x: number, y: number): void {
    plot.ctx.strokeStyle = this.scheme.ink;
    plot.ctx.lineWidth = 1.5 * uPlot.pxRatio;
    plot.ctx.beginPath();
    plot.ctx.arc(x, y, 7 * uPlot.pxRatio, 0, 2 * Math.PI);
    plot.ctx.stroke();
  }
  /** The marks of the lanes: a triangle for a miss, a square for a job over its bound. */
  private drawMark({ ctx }: uPlot, kind: "miss" | "over", x: number, y: number): void {
    const half = (kind === "miss" ? 5 : 4) * uPlot.pxRatio;
    ctx.fillStyle = this.scheme[kind];
    if (kind === "over") return ctx.fillRect(x - half, y - half, 2 * half, 2 * half);
    ctx.beginPath();
    ctx.moveTo(x - half, y - half);
    ctx.lineTo(x + half, y - half);
    ctx.lineTo(x, y + 0.8 * half);
    ctx.fill();
  }
  private cleared(plot: uPlot, size: number): Uint8Array {
    const cells = this.cells.get(plot);
    if (cells !== undefined && cells.length >= size) return cells.fill(0);
    const made = new Uint8Array(size);
    this.cells.set(plot, made);
    return made;
  }
}

/** Labels of a time axis, but for those that the edges would cut off. */
function inside(plot: uPlot, ticks: number[], labels: string[]): string[] {
  const width = plot.bbox.width / uPlot.pxRatio;
  return labels.map((label, i) => {
    const x = plot.valToPos(ticks[i]!, "x");
    return x < label.length * 3.3 || x > width - label.length * 3.3 ? "" : label;
  });
}

/** All values and 0, with room above and below. */
function rangeOf(values: Float64Array): [number, number] {
  let [low, high] = [0, 0];
  for (const value of values)
    if (Number.isFinite(value)) [low, high] = [Math.min(low, value), Math.max(high, value)];
  const room = (high - low) * 0.12 || 1;
  return [low < 0 ? low - room : low, high > 0 ? high + room : low < 0 ? room : 1];
}

function rangeText(measure: Measure, values: Float64Array): string {
  const known = values.filter(Number.isFinite);
  const [low, high] = [known.reduce((a, b) => Math.min(a, b)), known.reduce((a, b) => Math.max(a, b))];
  return `From ${measure.format(low)} to ${measure.format(high)}.`;
}
