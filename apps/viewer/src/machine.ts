import type { Machine, RunData } from "./data.js";
import { type Row } from "./rows.js";
import { lowerBound } from "./search.js";
import { formatInstant } from "./time.js";
import type { Track } from "./tracks.js";

const COLUMN = 116;
const LINE = 84;
const NODE = { width: 86, height: 28 };
const RANKS: Record<string, number> = { memory: 0, cpu: 1, hub: 2, switch: 3, gpu: 4, device: 4 };
const BELOW_GPUS = 5; // a switch that joins GPUs alone

/** Rates of links from the copies that are active at an instant: measured ones where there are any. */
export class Load {
  private readonly tracks: Track[];
  readonly measured: boolean;
  readonly word: string;

  constructor(private data: RunData, rows: readonly Row[]) {
    const { slices } = data;
    this.measured = slices.measured.some((measured, i) => measured === 1 && slices.route[i]! >= 0);
    this.word = this.measured ? data.actual : "predicted";
    this.tracks = rows.flatMap((row) => row.bands).filter((band) => band.kind === "slice").map((band) => band.track);
  }

  /** [links] GB/s, which is byte/ns. A copy that is in two lanes, one at each engine, counts once. */
  at(instant: number): Float64Array {
    const { slices, routes, machine } = this.data;
    const gbps = new Float64Array(machine?.links.from.length ?? 0);
    const counted = new Set<string>();
    for (const track of this.tracks) {
      const i = lowerBound(track.ends, instant + 1e-3);
      if (i >= track.items.length || track.starts[i]! > instant) continue;
      const slice = track.items[i]!;
      const route = routes[slices.route[slice]!];
      const rate = slices.bytes[slice]! / (slices.end[slice]! - slices.start[slice]!);
      const copy = [slices.name[slice], slices.job[slice], slices.route[slice], slices.start[slice]].join();
      if (slices.measured[slice] !== Number(this.measured) || !route || !Number.isFinite(rate) || counted.has(copy)) continue;
      counted.add(copy);
      for (const link of route) gbps[link]! += rate;
    }
    return gbps;
  }
}

/** Part of a shared capacity that is used. */
export function sharedLoad(shared: Machine["shared"][number], gbps: Float64Array): number {
  return shared.links.reduce((sum, link, i) => sum + gbps[link]! * shared.costs[i]!, 0) / shared.gbps;
}

/** Where vertices stand: memories on top, GPUs below what joins them to these. */
export function places(machine: Machine): { x: number; y: number; width: number; height: number; at: { x: number; y: number }[] } {
  const { vertices, links } = machine;
  const rank = vertices.kind.map((kind, v) => (kind === "switch" && joinsGpusAlone(machine, v) ? BELOW_GPUS : RANKS[kind] ?? 3));
  const used = [...new Set(rank)].sort((a, b) => a - b);
  const lines = used.map((one) => [...rank.keys()].filter((v) => rank[v] === one));
  const columns = Math.max(...lines.map((line) => line.length), 1);
  const at = vertices.name.map(() => ({ x: 0, y: 0 }));
  const place = (line: number[], y: number) => line.forEach((v, i) => {
    at[v] = { x: ((i + 0.5) * columns * COLUMN) / line.length, y: (y + 0.5) * LINE };
  });
  lines.forEach(place);
  // Below the first line, in the order of the neighbours above: fewer links cross.
  lines.forEach((line, y) => {
    const above = (v: number) => {
      const xs = [...links.from].flatMap((from, l) => (links.to[l] === v && at[from]!.y < at[v]!.y ? [at[from]!.x] : []));
      return xs.length ? xs.reduce((a, b) => a + b) / xs.length : at[v]!.x;
    };
    const wanted = new Map(line.map((v) => [v, above(v)]));
    place(line.sort((a, b) => wanted.get(a)! - wanted.get(b)! || a - b), y);
  });
  return { x: 0, y: 0, width: columns * COLUMN, height: lines.length * LINE, at };
}

function joinsGpusAlone(machine: Machine, vertex: number): boolean {
  const { links, vertices } = machine;
  const beside = [...links.from.keys()].flatMap((l) =>
    links.from[l] === vertex ? [links.to[l]!] : links.to[l] === vertex ? [links.from[l]!] : []);
  return beside.length > 0 && beside.every((v) => vertices.kind[v] === "gpu");
}

function svg<K extends keyof SVGElementTagNameMap>(
  parent: Element, name: K, attributes: Record<string, string | number>, text = "",
): SVGElementTagNameMap[K] {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, String(value));
  made.textContent = text;
  return parent.appendChild(made);
}

/** The graph of the machine and a table of its links, with the load of each at one instant. */
export class MachineGraph {
  private readonly lines: { line: SVGLineElement; label: SVGTextElement }[] = [];
  private readonly cells: HTMLTableCellElement[] = [];
  private drawn = NaN;

  constructor(
    private machine: Machine, private load: Load, place: HTMLElement, private rows: HTMLElement, private instant: HTMLElement,
  ) {
    const { at, width, height } = places(machine);
    const picture = svg(place, "svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img",
      "aria-label": `Graph of the machine ${machine.name}: ${machine.vertices.name.join(", ")}. The table has its links.` });
    machine.links.from.forEach((from, link) => this.addLink(picture, at[from]!, at[machine.links.to[link]!]!));
    machine.vertices.name.forEach((name, v) => {
      const { x, y } = at[v]!;
      svg(picture, "rect", { class: "vertex", x: x - NODE.width / 2, y: y - NODE.height / 2, ...NODE, rx: 5 });
      svg(picture, "text", { class: "vertex-name", x, y: y + 4 }, name);
    });
    const name = (v: number) => machine.vertices.name[v]!;
    machine.links.from.forEach((from, l) => this.addRow(`${name(from)} to ${name(machine.links.to[l]!)}`, machine.links.gbps[l]!));
    machine.shared.forEach((shared) => this.addRow(`${shared.name} (shared)`, shared.gbps));
  }

  draw(instant: number): void {
    if (instant === this.drawn) return;
    this.drawn = instant;
    const { links, shared } = this.machine;
    const gbps = this.load.at(instant);
    this.instant.textContent = `Load at ${formatInstant(instant)}, ${this.load.word}`;
    this.lines.forEach(({ line, label }, l) => {
      const part = gbps[l]! / links.gbps[l]!;
      if (!say(this.cells[l]!, cell(gbps[l]!, part))) return;
      line.setAttribute("class", part > 0.9 ? "link full" : part > 0 ? "link used" : "link");
      line.setAttribute("stroke-width", String(1.5 + 5 * Math.min(part, 1)));
      say(label, part > 0 ? percent(part) : "");
    });
    shared.forEach((one, i) => {
      const part = sharedLoad(one, gbps);
      say(this.cells[links.from.length + i]!, cell(part * one.gbps, part));
    });
  }

  /** A line beside that of the way back, and its label a third along it. */
  private addLink(picture: Element, from: { x: number; y: number }, to: { x: number; y: number }): void {
    const length = Math.hypot(to.x - from.x, to.y - from.y) || 1;
    const [dx, dy] = [(to.x - from.x) / length, (to.y - from.y) / length];
    const [ox, oy] = [-dy * 5, dx * 5];
    const line = svg(picture, "line", { class: "link", x1: from.x + ox, y1: from.y + oy, x2: to.x + ox, y2: to.y + oy });
    const label = svg(picture, "text", { class: "link-load", x: (from.x + to.x) / 2 + ox * 1.8,
      y: (from.y + to.y) / 2 + oy * 1.8 + 4 + dy * 8, "text-anchor": ox > 0 ? "start" : "end" });
    this.lines.push({ line, label });
  }
  private addRow(name: string, gbps: number): void {
    const row = this.rows.appendChild(document.createElement("tr"));
    const head = row.appendChild(document.createElement("th"));
    head.scope = "row";
    head.textContent = name;
    row.appendChild(document.createElement("td")).textContent = gbps.toFixed(2);
    this.cells.push(row.appendChild(document.createElement("td")));
  }
}

/** Sets a text where it is another: each change costs a layout. Returns whether it was. */
function say(element: Element, text: string): boolean {
  if (element.textContent === text) return false;
  element.textContent = text;
  return true;
}

function percent(part: number): string {
  return `${Math.round(part * 100)} %`;
}

function cell(gbps: number, part: number): string {
  return part > 0 ? `${gbps.toFixed(2)} (${percent(part)})` : "0";
}
