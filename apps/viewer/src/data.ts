/** The data of a page as typed arrays, one for each field. NaN stands for an unknown number, -1 for an unknown index. */
export interface RunData {
  title: string;
  writtenBy: string;
  about: [string, string][];
  notes: string[];
  actual: "measured" | "simulated"; // what its slices are that are not predicted
  lanes: { device: string[]; engine: string[] };
  tasks: Tasks;
  jobs: Jobs;
  slices: Slices;
  machine: Machine | null;
  routes: number[][];
}

export interface Tasks {
  name: string[];
  bound: Float64Array;
  deadline: Float64Array;
  jobs: Float64Array;
  misses: Float64Array;
  overBound: Float64Array;
  worstResponse: Float64Array;
}

export interface Jobs {
  count: number;
  verdicts: string[];
  causes: string[];
  task: Int32Array;
  index: Float64Array;
  arrival: Float64Array;
  start: Float64Array;
  finish: Float64Array;
  deadline: Float64Array;
  response: Float64Array;
  releaseLateness: Float64Array;
  predicted: Float64Array;
  verdict: Int32Array;
  cause: Int32Array;
  causedBy: Int32Array;
  overBy: Float64Array;
  seen: Float64Array; // by the host, where a GPU led them
  overwritten: Float64Array; // 1: its program did not have its results whole
  reusedInput: Float64Array; // 1: its input was that of an earlier job
}

export interface Slices {
  count: number;
  names: string[];
  lane: Int32Array;
  measured: Int32Array;
  name: Int32Array;
  start: Float64Array;
  end: Float64Array;
  job: Int32Array;
  bytes: Float64Array;
  route: Int32Array;
}

export interface Machine {
  name: string;
  vertices: { name: string[]; kind: string[] };
  links: { from: Int32Array; to: Int32Array; gbps: Float64Array };
  shared: { name: string; gbps: number; links: number[]; costs: number[] }[];
}

export const SCHEMA_VERSION = 1;

/** What is wrong with the data, as a sentence for the reader of the page. */
class DataFault extends Error {}

/** The data of a page, or a sentence that says why there is none. */
export function decode(text: string): RunData | string {
  try {
    return runData(parsed(text));
  } catch (fault) {
    if (fault instanceof DataFault) return fault.message;
    throw fault;
  }
}

type Table = Record<string, unknown>;

function parsed(text: string): Table {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    const place = /position (\d+)/.exec(String(error))?.[1] ?? text.trimEnd().length;
    throw new DataFault(`The data of this page is damaged or cut off at character ${place} of ${text.length}. ` +
      "Write the page again: tutti view FILE --html FILE.html");
  }
  if (value === null) throw new DataFault("This page has no data. Write one that has: tutti view FILE --html FILE.html");
  const document = table(value, "the data");
  if (document.format !== "tutti view")
    throw new DataFault('The data of this page is not that of tutti: its format is not "tutti view".');
  const version = document.schema_version;
  if (typeof version !== "number" || version < 1)
    throw new DataFault("The data of this page has no schema_version; a number from 1 on would be right.");
  if (version > SCHEMA_VERSION)
    throw new DataFault(`The data of this page has schema_version ${version}, and the page reads versions up to ` +
      `${SCHEMA_VERSION}. Write the page with the newer tutti that wrote the data: tutti view FILE --html FILE.html`);
  return document;
}

function runData(document: Table): RunData {
  const lanes = part(document, "lanes");
  const device = strings(lanes, "lanes.device");
  const engine = strings(lanes, "lanes.engine");
  same("lanes.engine", engine.length, "lanes.device", device.length);
  const tasks = tasksOf(part(document, "tasks"));
  const jobs = jobsOf(part(document, "jobs"), tasks.name.length);
  const machine = document.machine === undefined || document.machine === null ? null : machineOf(part(document, "machine"));
  const routes = routesOf(document.routes, machine?.links.from.length ?? 0);
  return {
    title: text(document, "title"),
    writtenBy: text(document, "written_by"),
    about: list(document, "about").map((pair, i) => aboutPair(pair, `about[${i}]`)),
    notes: strings(document, "notes"),
    actual: document.simulated === 1 ? "simulated" : "measured",
    lanes: { device, engine },
    tasks,
    jobs,
    slices: slicesOf(part(document, "slices"), device.length, jobs.count, routes.length),
    machine,
    routes,
  };
}

function tasksOf(from: Table): Tasks {
  const name = strings(from, "tasks.name");
  const column = new Columns(from, "tasks", "name", name.length);
  return {
    name,
    bound: column.times("bound_ns"),
    deadline: column.times("deadline_ns"),
    jobs: column.times("jobs"),
    misses: column.times("misses"),
    overBound: column.times("over_bound"),
    worstResponse: column.times("worst_response_ns"),
  };
}

function jobsOf(from: Table, tasks: number): Jobs {
  const count = list(from, "jobs.task").length;
  const column = new Columns(from, "jobs", "task", count);
  const verdicts = strings(from, "jobs.verdicts");
  const causes = strings(from, "jobs.causes");
  const jobs: Jobs = {
    count,
    verdicts,
    causes,
    task: column.indices("task", tasks, "tasks"),
    index: column.numbers("index"),
    arrival: column.numbers("arrival_ns"),
    start: column.times("start_ns"),
    finish: column.times("finish_ns"),
    deadline: column.times("deadline_ns"),
    response: column.times("response_ns"),
    releaseLateness: column.times("release_lateness_ns"),
    predicted: column.times("predicted_ns"),
    verdict: column.indices("verdict", verdicts.length, "verdicts"),
    cause: column.optionalIndices("cause", causes.length, "causes"),
    causedBy: column.optionalIndices("caused_by", tasks, "tasks"),
    overBy: column.times("over_by_ns"),
    seen: column.times("seen_ns"),
    overwritten: column.times("overwritten"),
    reusedInput: column.times("reused_input"),
  };
  if (from.response_ns === undefined) jobs.response = jobs.finish.map((finish, j) => finish - jobs.arrival[j]!);
  return jobs;
}

function slicesOf(from: Table, lanes: number, jobs: number, routes: number): Slices {
  const count = list(from, "slices.lane").length;
  const column = new Columns(from, "slices", "lane", count);
  const names = strings(from, "slices.names");
  const start = column.numbers("start_ns");
  return {
    count,
    names,
    lane: column.indices("lane", lanes, "lanes"),
    measured: column.indices("measured", 2, "values"),
    name: column.indices("name", names.length, "names"),
    start,
    end: column.numbers("length_ns").map((length, i) => start[i]! + Math.max(length, 0)),
    job: column.optionalIndices("job", jobs, "jobs"),
    bytes: column.times("bytes"),
    route: column.optionalIndices("route", routes, "routes"),
  };
}

function machineOf(from: Table): Machine {
  const vertices = part(from, "machine.vertices");
  const name = strings(vertices, "machine.vertices.name");
  const kind = strings(vertices, "machine.vertices.kind");
  same("machine.vertices.kind", kind.length, "machine.vertices.name", name.length);
  const links = part(from, "machine.links");
  const column = new Columns(links, "machine.links", "from", list(links, "machine.links.from").length);
  const count = column.count;
  return {
    name: text(from, "name"),
    vertices: { name, kind },
    links: {
      from: column.indices("from", name.length, "vertices"),
      to: column.indices("to", name.length, "vertices"),
      gbps: column.numbers("gbps"),
    },
    shared: list(from, "machine.shared").map((value, i) => sharedOf(value, `machine.shared[${i}]`, count)),
  };
}

function sharedOf(value: unknown, path: string, linkCount: number) {
  const from = table(value, path);
  const links = [...new Columns(from, path, "links", list(from, `${path}.links`).length).indices("links", linkCount, "links")];
  const column = new Columns(from, path, "links", links.length);
  if (typeof from.gbps !== "number") throw new DataFault(`${path}.gbps is missing; a number would be right.`);
  return { name: text(from, "name"), gbps: from.gbps, links, costs: [...column.numbers("costs")] };
}

function routesOf(value: unknown, links: number): number[][] {
  if (value === undefined) return [];
  if (!Array.isArray(value)) throw new DataFault("routes is not a list.");
  return value.map((route, i) => [...new Columns({ route }, `routes[${i}]`, "route", Array.isArray(route) ? route.length : -1)
    .indices("route", links, "links of the machine")]);
}

/** The columns of one table. All have as many entries as its first one. */
class Columns {
  constructor(private from: Table, private path: string, private first: string, readonly count: number) {}

  /** Numbers, each of them known. Only a table without entries may lack the column. */
  numbers(key: string): Float64Array {
    const absent = () => (this.count === 0 ? new Float64Array(0) : this.refused(key, "missing; a list of numbers would be right"));
    return this.read(key, absent, false);
  }
  /** Numbers that may be null, in a column that may be absent: NaN. */
  times(key: string): Float64Array {
    return this.read(key, () => new Float64Array(this.count).fill(NaN), true);
  }
  /** Positions in a list of `size` entries. */
  indices(key: string, size: number, of: string): Int32Array {
    return this.positions(key, this.numbers(key), size, of);
  }
  /** Positions that may be null, in a column that may be absent: -1. */
  optionalIndices(key: string, size: number, of: string): Int32Array {
    return this.positions(key, this.times(key), size, of);
  }

  private positions(key: string, values: Float64Array, size: number, of: string): Int32Array {
    return Int32Array.from(values, (value, i) => {
      if (Number.isNaN(value)) return -1;
      if (!Number.isInteger(value) || value < 0 || value >= size)
        this.refused(`${key}[${i}]`, `${value}, and there are ${size} ${of}, counted from 0`);
      return value;
    });
  }
  private read(key: string, absent: () => Float64Array, nullable: boolean): Float64Array {
    const column = this.from[key];
    if (column === undefined || (column === null && nullable)) return absent();
    if (!Array.isArray(column)) return this.refused(key, "not a list");
    same(`${this.path}.${key}`, column.length, `${this.path}.${this.first}`, this.count);
    const values = new Float64Array(this.count);
    for (let i = 0; i < this.count; ++i) {
      const value: unknown = column[i];
      if (typeof value === "number" && Math.abs(value) <= Number.MAX_SAFE_INTEGER) values[i] = value;
      else if (value === null && nullable) values[i] = NaN;
      else this.refused(`${key}[${i}]`, `${JSON.stringify(value)}; a number up to 2^53 would be right`);
    }
    return values;
  }
  private refused(key: string, what: string): never {
    throw new DataFault(`The data of this page is damaged: ${this.path}.${key} is ${what}.`);
  }
}

function same(path: string, count: number, first: string, expected: number): void {
  if (count !== expected)
    throw new DataFault(`The data of this page is damaged: ${path} has ${count} entries, and ${first} has ${expected}.`);
}

function table(value: unknown, path: string): Table {
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw new DataFault(`The data of this page is damaged: ${path} is not an object.`);
  return value as Table;
}

const lastKey = (path: string) => path.slice(path.lastIndexOf(".") + 1);

/** A table below another, empty where it is absent. */
function part(from: Table, path: string): Table {
  return table(from[lastKey(path)] ?? {}, path);
}

/** A list below a table, empty where it is absent. */
function list(from: Table, path: string): unknown[] {
  const value = from[lastKey(path)] ?? [];
  if (!Array.isArray(value)) throw new DataFault(`The data of this page is damaged: ${path} is not a list.`);
  return value;
}

function strings(from: Table, path: string): string[] {
  return list(from, path).map((value, i) => {
    if (typeof value !== "string")
      throw new DataFault(`The data of this page is damaged: ${path}[${i}] is ${JSON.stringify(value)}; a text would be right.`);
    return value;
  });
}

function text(from: Table, key: string): string {
  return typeof from[key] === "string" ? from[key] : "";
}

function aboutPair(value: unknown, path: string): [string, string] {
  const [what, content] = strings({ pair: value }, `${path}.pair`);
  return [what ?? "", content ?? ""];
}
