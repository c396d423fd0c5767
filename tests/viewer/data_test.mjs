import assert from "node:assert/strict";
import { test } from "node:test";
import { madeRun, OVER, PLANTED } from "./made_run.mjs";
import { module } from "./modules.mjs";

const { decode } = await module("data");
const { attribution, isMiss, jobNumbers, lateness, modelError, verdictText } = await module("jobs");
const { lateJobsOf, lateText, margins } = await module("tables");

const run = () => madeRun({ jobs: 100 });
const changed = (change) => {
  const data = run();
  change(data);
  return decode(JSON.stringify(data));
};
const refused = (data, ...words) => {
  assert.equal(typeof data, "string");
  for (const word of words) assert.match(data, word);
};

test("a run is decoded", () => {
  const data = decode(JSON.stringify(run()));
  assert.equal(data.jobs.count, 100);
  assert.equal(data.slices.count, 80 * 24 + 20 * 6); // 4 GPUs or 1, three steps, predicted and measured
  assert.equal(data.jobs.response[0], data.jobs.finish[0] - data.jobs.arrival[0]);
  assert.equal(data.jobs.cause[0], -1);
  assert.ok(Number.isNaN(data.jobs.overBy[0]));
});

test("a document cut off anywhere gives a sentence with the place", () => {
  const text = JSON.stringify(run());
  for (let length = 1; length < text.length; length += 997) refused(decode(text.slice(0, length)), /cut off at character \d+ of \d+/, /tutti view/);
});

test("no data, other data and newer data give sentences", () => {
  refused(decode("null"), /has no data/);
  refused(decode("{}"), /not that of tutti/);
  refused(decode("[1]"), /not an object/);
  refused(decode('{"format": "tutti view"}'), /no schema_version/);
  refused(changed((data) => (data.schema_version = 2)), /schema_version 2/, /up to 1/, /newer tutti/);
});

test("a damaged column is named with its place", () => {
  refused(changed((data) => data.jobs.start_ns.pop()), /jobs\.start_ns has 99 entries, and jobs\.task has 100/);
  refused(changed((data) => (data.slices.start_ns[17] = "x")), /slices\.start_ns\[17\] is "x"; a number/);
  refused(changed((data) => (data.slices.start_ns[2] = 1e17)), /slices\.start_ns\[2\] is 100000000000000000; a number up to 2\^53/);
  refused(changed((data) => (data.slices.lane[3] = 12)), /slices\.lane\[3\] is 12, and there are 12 lanes/);
  refused(changed((data) => (data.slices.job[3] = 1.5)), /slices\.job\[3\] is 1\.5/);
  refused(changed((data) => (data.jobs.task[0] = null)), /jobs\.task\[0\] is null/);
  refused(changed((data) => delete data.jobs.arrival_ns), /jobs\.arrival_ns is missing/);
  refused(changed((data) => (data.machine.links.to[0] = -1)), /machine\.links\.to\[0\] is -1/);
  refused(changed((data) => (data.routes[0] = "x")), /routes\[0\]/);
  refused(changed((data) => (data.tasks.name[1] = 4)), /tasks\.name\[1\] is 4; a text/);
  refused(changed((data) => (data.lanes.engine = {})), /lanes\.engine is not a list/);
});

test("what the host saw of jobs that a GPU led is told", () => {
  const data = changed((of) => {
    of.jobs.seen_ns = of.jobs.finish_ns.map((finish, j) => (j === 2 ? null : finish + 5_000_000));
    of.jobs.overwritten = of.jobs.finish_ns.map((_, j) => (j === 1 ? 1 : 0));
    of.jobs.reused_input = of.jobs.finish_ns.map((_, j) => (j === 2 ? 1 : 0));
  });
  const names = (job) => jobNumbers(data, job).map(([name]) => name);
  assert.ok(names(0).includes("seen by the host") && !names(0).includes("results"));
  assert.ok(names(1).includes("seen by the host") && names(1).includes("results"));
  assert.ok(!names(2).includes("seen by the host") && names(2).includes("input") && !names(1).includes("input"));
  assert.ok(!jobNumbers(decode(JSON.stringify(run())), 0).some(([name]) => ["seen by the host", "results", "input"].includes(name)));
});

test("optional columns and whole tables may be absent", () => {
  const data = decode('{"format": "tutti view", "schema_version": 1}');
  assert.equal(data.jobs.count + data.slices.count, 0);
  assert.equal(data.machine, null);
  const bare = changed((run) => ["cause", "caused_by", "over_by_ns", "predicted_ns"].forEach((key) => delete run.jobs[key]));
  assert.ok(Number.isNaN(modelError(bare.jobs, 0)));
  const miss = lateJobsOf(bare, new Uint8Array(2).fill(1))[0];
  assert.equal(attribution(bare, miss), "no cause was recorded");
});

test("the planted misses are the misses, with how late they were and why", () => {
  const data = decode(JSON.stringify(run()));
  const misses = lateJobsOf(data, new Uint8Array(2).fill(1)).filter((job) => isMiss(data.jobs, job));
  assert.deepEqual(misses.map((job) => data.jobs.causes[data.jobs.cause[job]]), PLANTED.map(({ cause }) => cause));
  misses.forEach((job, i) => assert.ok(Math.abs(lateness(data.jobs, job) - PLANTED[i].late) <= 3)); // each step is rounded to ns
  assert.equal(verdictText(data.jobs, misses[0]), "missed its deadline by 1.250 ms");
  // Response 20 ms + 0.43 ms, bound 9.5 ms.
  assert.equal(attribution(data, misses[1]),
    "blocking: other jobs ran longer than their Wcet while it waited, by jobs of alarm; 10.930 ms over its bound");
  assert.deepEqual(lateJobsOf(data, Uint8Array.of(0, 1)), []);
  assert.ok(jobNumbers(data, misses[0]).some(([name]) => name === "attribution"));
  assert.ok(!jobNumbers(data, 0).some(([name]) => name === "attribution"));
});

test("jobs over their bound are late, with their cause, though they met their deadline", () => {
  const data = decode(JSON.stringify(run()));
  const late = lateJobsOf(data, new Uint8Array(2).fill(1));
  assert.equal(late.length, PLANTED.length + OVER.length);
  const [over] = late.filter((job) => !isMiss(data.jobs, job));
  assert.match(verdictText(data.jobs, over), /^met its deadline/);
  assert.equal(attribution(data, over), "transfer: a copy was slower than at guaranteed bandwidths; 700.000 us over its bound");
  assert.equal(lateText(data, late), "3 misses, 4 over their bound"); // those that missed were over it, too
  assert.equal(lateText(data, [over]), "0 misses, 1 over its bound");
});

test("jobs that never ran are misses, those behind the end of a run are not", () => {
  const data = changed(({ jobs }) => {
    jobs.verdicts = ["met", "missed", "dropped", "never_run"];
    [jobs.verdict[0], jobs.verdict[1]] = [2, 3];
    jobs.start_ns[0] = jobs.finish_ns[0] = jobs.start_ns[1] = jobs.finish_ns[1] = null;
  });
  assert.equal(isMiss(data.jobs, 0), true);
  assert.equal(isMiss(data.jobs, 1), false);
  assert.match(verdictText(data.jobs, 0), /never ran: its task had no buffers free/);
});

test("margins count the jobs of the page, unless the data has those of the whole run", () => {
  const [inspect, alarm] = margins(decode(JSON.stringify(run())));
  assert.deepEqual([inspect.jobs, inspect.misses, inspect.overBound, alarm.jobs, alarm.misses, alarm.overBound], [80, 3, 4, 20, 0, 0]);
  assert.ok(Math.abs(inspect.worstResponse - 24_002_000) <= 3);
  const [whole] = margins(changed(({ tasks }) => Object.assign(tasks, { jobs: [5e6, 1], misses: [4, 0], worst_response_ns: [null, null] })));
  assert.deepEqual([whole.jobs, whole.misses], [5e6, 4]);
});
