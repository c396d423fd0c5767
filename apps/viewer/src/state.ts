import type { RunData } from "./data.js";
import { extent } from "./jobs.js";
import type { Item } from "./rows.js";
import type { View } from "./view.js";

/** What the page shows at the moment. All parts of it draw from this. */
export interface State {
  view: View;
  limits: View;
  cursor: number | null; // instant under the pointer
  hovered: Item | null;
  selected: Item | null;
  shown: Uint8Array; // [tasks] 1: the filter lets it through
}

/** The whole run, with a little room at both ends. */
export function limitsOf(data: RunData): View {
  let from = Infinity;
  let to = -Infinity;
  const reach = (a: number, b: number) => {
    from = Math.min(from, a);
    to = Math.max(to, b);
  };
  for (let s = 0; s < data.slices.count; ++s) reach(data.slices.start[s]!, data.slices.end[s]!);
  for (let j = 0; j < data.jobs.count; ++j) {
    const job = extent(data.jobs, j);
    reach(Math.min(job.from, data.jobs.arrival[j]!), job.to);
  }
  if (from > to) return { from: 0, to: 1e6 };
  const room = Math.ceil(Math.max((to - from) * 0.01, 10));
  return { from: from - room, to: to + room };
}

export function startState(data: RunData): State {
  const limits = limitsOf(data);
  const shown = new Uint8Array(data.tasks.name.length).fill(1);
  return { view: limits, limits, cursor: null, hovered: null, selected: null, shown };
}
