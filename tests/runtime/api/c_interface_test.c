/* The C interface, from C: what works, and what misuse is refused with. Prints TAP. */
#include <stdio.h>
#include <string.h>
#include <tutti/tutti.h>

static int count = 0;
static int failures = 0;

static void check(int holds, const char* name) {
  failures += holds ? 0 : 1;
  printf("%sok %d - %s\n", holds ? "" : "not ", ++count, name);
  if (!holds) fprintf(stderr, "%s: the last error is: %s\n", name, tutti_last_error());
}

static int refused(tutti_status status, const char* words) {
  return status != TUTTI_OK && strstr(tutti_last_error(), words) != NULL;
}

static int double_bytes(const tutti_kernel_launch* launch, void* user) {
  const unsigned char* in = launch->input;
  unsigned char* out = launch->output;
  ++*(int*)user;
  for (size_t i = 0; i < launch->output_size; ++i) out[i] = (unsigned char)(2 * in[i]);
  return 0;
}

static int fail(const tutti_kernel_launch* launch, void* user) {
  (void)launch;
  (void)user;
  return 7;
}

static void predicts(const char* batches) {
  char path[4096];
  int64_t latency = 0, latest = 0;
  snprintf(path, sizeof path, "%s/batches/inspection-example.yaml", batches);
  tutti_batch* batch = tutti_batch_load(path);
  check(batch != NULL, "a batch is read");
  /* [VMS14]: 44.8 ms, and no cost differs from its guaranteed one, so never more. */
  check(tutti_predict_batch_latency(batch, NULL, &latency) == TUTTI_OK && latency == 44800000, "44.8 ms are predicted");
  check(tutti_predict_worst_batch_latency(batch, NULL, &latest) == TUTTI_OK && latest == 44800000, "never more");
  check(refused(tutti_predict_batch_latency(batch, "worst", &latency), "no planner 'worst'"), "an unknown planner");
  check(refused(tutti_predict_batch_latency(batch, NULL, NULL), "null"), "no place for the result");
  tutti_batch_free(batch);
}

/* 64 bytes up, doubled by a kernel. */
static void runs(const char* folder) {
  char path[4096];
  int calls = 0, finished = 0;
  tutti_batch_result result;
  snprintf(path, sizeof path, "%s/doubled.yaml", folder);
  tutti_batch* batch = tutti_batch_load(path);
  tutti_machine* machine = tutti_batch_machine(batch);
  tutti_kernels* kernels = tutti_kernels_new();
  check(tutti_kernels_add(kernels, "double", double_bytes, NULL, &calls) == TUTTI_OK, "a kernel is added");
  check(refused(tutti_kernels_add(kernels, "double", fail, NULL, NULL), "double"), "its name is taken then");
  check(refused(tutti_kernels_add(kernels, "none", NULL, NULL, NULL), "neither"), "a kernel without any form");
  tutti_runtime* runtime = tutti_runtime_open(machine, kernels, TUTTI_SIMULATED, NULL);
  tutti_stream_binding binding = {0};
  tutti_buffer* up = tutti_buffer_allocate(runtime, "mem0", 64);
  tutti_buffer* there = tutti_buffer_allocate(runtime, "gpu0", 64);
  tutti_buffer* out = tutti_buffer_allocate(runtime, "gpu0", 64);
  check(tutti_buffer_size(out) == 64 && tutti_buffer_bytes(up) != NULL && tutti_buffer_bytes(out) == NULL,
        "the host sees memory and no GPU");
  memset(tutti_buffer_bytes(up), 21, 64);
  binding.source = up;
  binding.destination = there;
  binding.kernel_output = out;
  tutti_prepared_batch* prepared = tutti_prepare(runtime, batch, &binding, 1, 2);
  check(prepared != NULL, "a batch is prepared");
  check(tutti_prepare(runtime, batch, &binding, 1000000, 1) == NULL &&
            strstr(tutti_last_error(), "1 streams and 1000000 bindings"),
        "more bindings than streams are not read");
  check(tutti_batch_op(prepared, &result) == TUTTI_OK && calls == 1, "it runs");
  /* 64 B at 12 GB/s are 5.33 ns, up: 6; the kernel takes 1000. */
  check(result.finish_ns - result.start_ns == 1006, "as long as predicted");
  tutti_batch_run* first = tutti_batch_op_async(prepared);
  tutti_batch_run* second = tutti_batch_op_async(prepared);
  check(first != NULL && second != NULL, "two runs are in flight");
  check(tutti_batch_op_async(prepared) == NULL && strstr(tutti_last_error(), "in flight"), "and no third");
  check(tutti_batch_op_synchronize(second, NULL) == TUTTI_OK, "the second ends");
  check(tutti_batch_op_query(first, &finished) == TUTTI_OK && finished == 1 && calls == 3, "after the first");
  check(tutti_batch_op_synchronize(first, &result) == TUTTI_OK, "which is synchronized, too");
  check(refused(tutti_batch_op_synchronize(first, &result), "empty"), "once");
  tutti_runtime_free(runtime); /* what was made from it keeps it alive */
  tutti_buffer_free(up);
  check(tutti_batch_op(prepared, NULL) == TUTTI_OK, "handles may be freed in any order");
  tutti_batch_run_free(first);
  tutti_batch_run_free(second);
  tutti_prepared_batch_free(prepared);
  tutti_buffer_free(out);
  tutti_buffer_free(there);
  tutti_kernels_free(kernels);
  tutti_machine_free(machine);
  tutti_batch_free(batch);
}

static void note_release(void* user) { ++*(int*)user; }

static void memory_of_the_program(const char* folder) {
  char path[4096];
  unsigned char from[64], to[64], out[64];
  int calls = 0, released = 0;
  snprintf(path, sizeof path, "%s/doubled.yaml", folder);
  tutti_batch* batch = tutti_batch_load(path);
  tutti_machine* machine = tutti_batch_machine(batch);
  tutti_kernels* kernels = tutti_kernels_new();
  check(tutti_kernels_add(kernels, "double", double_bytes, NULL, &calls) == TUTTI_OK, "a kernel is added");
  tutti_runtime* runtime = tutti_runtime_open(machine, kernels, TUTTI_SIMULATED, NULL);
  memset(from, 21, sizeof from);
  tutti_buffer* source = tutti_buffer_wrap(runtime, "mem0", from, sizeof from, note_release, &released);
  tutti_buffer* there = tutti_buffer_wrap(runtime, "gpu0", to, sizeof to, NULL, NULL);
  tutti_buffer* result = tutti_buffer_wrap(runtime, "gpu0", out, sizeof out, note_release, &released);
  check(source != NULL && tutti_buffer_bytes(source) == from, "a buffer is where the program's memory is");
  tutti_buffer* tensor = tutti_buffer_wrap_tensor(runtime, "mem0", tutti_buffer_lend_tensor(runtime, source));
  check(tensor != NULL && tutti_buffer_bytes(tensor) == from && tutti_buffer_size(tensor) == sizeof from,
        "a tensor is where its buffer is");
  tutti_buffer_free(tensor);
  tutti_stream_binding binding = {source, there, NULL, result, NULL, 0};
  tutti_prepared_batch* prepared = tutti_prepare(runtime, batch, &binding, 1, 1);
  tutti_buffer_free(source);
  tutti_buffer_free(there);
  tutti_buffer_free(result);
  check(tutti_batch_op(prepared, NULL) == TUTTI_OK && out[0] == 42 && out[63] == 42, "a batch works on it");
  check(released == 0, "which keeps it");
  tutti_prepared_batch_free(prepared);
  check(released == 2, "and tells when it is done");
  check(tutti_buffer_wrap(runtime, "gpu9", from, sizeof from, note_release, &released) == NULL &&
            strstr(tutti_last_error(), "'gpu9'"),
        "no such place");
  check(tutti_buffer_wrap(runtime, "mem0", NULL, 8, note_release, &released) == NULL &&
            strstr(tutti_last_error(), "no address"),
        "no memory");
  check(tutti_buffer_wrap(runtime, "mem0", from, -1, note_release, &released) == NULL &&
            strstr(tutti_last_error(), "0 bytes"),
        "less than none");
  check(released == 2, "nothing is released that was refused");
  tutti_runtime_free(runtime);
  tutti_kernels_free(kernels);
  tutti_machine_free(machine);
  tutti_batch_free(batch);
}

static void kernel_fails(const char* folder) {
  char path[4096];
  tutti_buffer* buffers[3];
  snprintf(path, sizeof path, "%s/doubled.yaml", folder);
  tutti_batch* batch = tutti_batch_load(path);
  tutti_machine* machine = tutti_batch_machine(batch);
  tutti_kernels* kernels = tutti_kernels_new();
  check(tutti_kernels_add(kernels, "double", fail, NULL, NULL) == TUTTI_OK, "a kernel that fails is added");
  tutti_runtime* runtime = tutti_runtime_open(machine, kernels, TUTTI_SIMULATED, NULL);
  buffers[0] = tutti_buffer_allocate(runtime, "mem0", 64);
  buffers[1] = tutti_buffer_allocate(runtime, "gpu0", 64);
  buffers[2] = NULL;
  tutti_stream_binding binding = {buffers[0], buffers[1], buffers[2], NULL, NULL, 0};
  tutti_prepared_batch* prepared = tutti_prepare(runtime, batch, &binding, 1, 1);
  check(tutti_batch_op(prepared, NULL) == TUTTI_KERNEL && strstr(tutti_last_error(), "it returned 7"),
        "its batch fails with what it returned");
  tutti_prepared_batch_free(prepared);
  tutti_buffer_free(buffers[0]);
  tutti_buffer_free(buffers[1]);
  tutti_runtime_free(runtime);
  tutti_kernels_free(kernels);
  tutti_machine_free(machine);
  tutti_batch_free(batch);
}

typedef struct seen {
  size_t ready, bytes, ends;
} seen;

static void on_ready(const tutti_job* job, void* user) {
  size_t size = 0;
  if (tutti_job_source(job, 0, 0, &size) != NULL) ((seen*)user)->bytes += size;
  if (tutti_job_source(job, 9, 9, &size) != NULL || size != 0) ((seen*)user)->bytes = 0;
  ++((seen*)user)->ready;
}

static void on_job_end(const tutti_job_record* job, void* user) { ((seen*)user)->ends += job->missed ? 0 : 1; }

static void tasks_run(const char* folder) {
  char path[4096];
  int64_t response = 0;
  seen counts = {0, 0, 0};
  tutti_run_summary summary;
  tutti_run_options options = {0};
  tutti_task_program program = {"command", on_ready, NULL, &counts, NULL, NULL, NULL, NULL, NULL, NULL, 0, NULL, 0};
  snprintf(path, sizeof path, "%s/two_tasks.yaml", folder);
  tutti_task_set* set = tutti_task_set_load(path);
  check(tutti_task_set_size(set) == 2 && strcmp(tutti_task_set_name(set, 1), "command") == 0, "two tasks are read");
  check(tutti_task_set_name(set, 2) == NULL, "and no third");
  tutti_verdict* verdict = tutti_check(set, NULL);
  check(tutti_verdict_answer(verdict) == TUTTI_SCHEDULABLE && tutti_verdict_reason(verdict, 0) == NULL, "schedulable");
  check(tutti_verdict_worst_response(verdict, 0, &response) == TUTTI_OK && response > 0 && response <= 10000000,
        "with a bound within the deadline");
  tutti_task_verdict image;
  check(tutti_verdict_task(verdict, 0, &image) == TUTTI_OK && image.worst_response_ns == response &&
            image.deadline_ns == 10000000 && image.wcet_ns > 0 && image.wcet_ns <= response,
        "a verdict has bound, deadline and response of a task");
  check(refused(tutti_verdict_task(verdict, 2, &image), "no task at this position") &&
            refused(tutti_verdict_task(verdict, 0, NULL), "null") &&
            refused(tutti_verdict_worst_response(verdict, 0, NULL), "null"),
        "of no third");
  options.jobs = 12; /* two of 'image', ten of 'command' */
  options.programs = &program;
  options.program_count = 1;
  options.on_job_end = on_job_end;
  options.user = &counts;
  tutti_kernels* kernels = tutti_kernels_new();
  check(tutti_kernels_add(kernels, "threshold", double_bytes, NULL, &response) == TUTTI_OK, "a kernel for them");
  options.kernels = kernels;
  check(tutti_run(verdict, &options, &summary) == TUTTI_OK, "they run");
  check(summary.jobs == 12 && summary.missed == 0 && summary.failed == 0, "twelve jobs, in time");
  check(counts.ready == 10 && counts.bytes == 10 * 4000 && counts.ends == 12, "callbacks see every job and its memory");
  program.task = "nobody";
  check(refused(tutti_run(verdict, &options, NULL), "nobody"), "a program for no task");
  tutti_kernels_free(kernels);
  tutti_verdict_free(verdict);
  tutti_task_set_free(set);
}

typedef struct answers {
  tutti_change_requests* requests;
  size_t changes, granted;
  int64_t came_ns, left_ns;
} answers;

/* The first command asks to leave, at once. */
static void leave(const tutti_job* job, void* user) {
  if (tutti_job_index(job) == 0)
    check(tutti_change_requests_post(((answers*)user)->requests, 0, "command", NULL) == TUTTI_OK,
          "a job asks to leave");
}

static void on_change(const tutti_change_record* change, void* user) {
  answers* seen = user;
  ++seen->changes;
  if (change->answer == TUTTI_SCHEDULABLE && change->reason[0] == 0) ++seen->granted;
  if (strcmp(change->comes, "command") == 0 && change->at_ns == 5000000) seen->came_ns = change->answered_ns;
  if (strcmp(change->leaves, "command") == 0) seen->left_ns = change->answered_ns;
}

/* 'command', every 2 ms, comes at 5 ms, and asks to leave when it is ready first: it has one job, or two where the next
 * one is ready when the request is answered. Images are at 0 and 10 ms. */
static void tasks_come_and_go(const char* folder) {
  char path[4096];
  answers seen = {0};
  int64_t unused = 0;
  const char* running[] = {"image"};
  tutti_run_summary summary;
  tutti_run_options options = {0};
  tutti_task_program program = {"command", leave, NULL, &seen, NULL, NULL, NULL, NULL, NULL, NULL, 0, NULL, 0};
  snprintf(path, sizeof path, "%s/two_tasks.yaml", folder);
  tutti_task_set* set = tutti_task_set_load(path);
  tutti_kernels* kernels = tutti_kernels_new();
  tutti_kernels_add(kernels, "threshold", double_bytes, NULL, &unused);
  seen.requests = tutti_change_requests_new(set);
  check(tutti_change_requests_post(seen.requests, 5000000, NULL, "command") == TUTTI_OK, "a request is posted");
  check(refused(tutti_change_requests_post(seen.requests, 0, "nobody", NULL), "nobody"), "one for no task is not");
  check(refused(tutti_change_requests_post(seen.requests, 0, NULL, NULL), "no task"), "nor one that changes nothing");
  options.kernels = kernels;
  options.programs = &program;
  options.program_count = 1;
  options.on_change = on_change;
  options.user = &seen;
  check(refused(tutti_run_changing(seen.requests, running, 1, NULL, &options, NULL), "arrivals_before"),
        "it has an end");
  options.arrivals_before_ns = 20000000;
  check(tutti_run_changing(seen.requests, running, 1, NULL, &options, &summary) == TUTTI_OK, "a set that changes runs");
  check(seen.changes == 2 && seen.granted == 2, "both requests are granted");
  check(seen.came_ns >= 5000000 && seen.left_ns >= seen.came_ns, "in their order");
  check((summary.jobs == 3 || summary.jobs == 4) && summary.missed == 0, "two images and a command or two, in time");
  check(refused(tutti_run_changing(seen.requests, running, 1, NULL, &options, NULL), "already"), "a run has them");
  tutti_change_requests_free(seen.requests);
  tutti_kernels_free(kernels);
  tutti_task_set_free(set);
}

static int host_step(const tutti_job* job, size_t step, void* user) {
  const char* name = tutti_job_step(job);
  const int known =
      tutti_job_task(job) == 0 && !tutti_job_overwritten(job) && name != NULL && strcmp(name, "decide") == 0;
  *(size_t*)user += known ? step : 100;
  return 0;
}

/* From texts in memory: 12 MB at 12 GB/s, and 100 us of the host. */
static void texts_are_read(void) {
  size_t steps = 0;
  int64_t latency = 0, limit = 0;
  tutti_run_options options = {0};
  tutti_task_program program = {"inspect", NULL, NULL, &steps, host_step, NULL, NULL, NULL, NULL, NULL, 0, NULL, 0};
  tutti_machine* machine = tutti_machine_parse(
      "{version: 1, machine: {name: m, vertices: {mem0: {kind: memory}, gpu0: {kind: gpu}}, "
      "links: [{from: mem0, to: gpu0, bandwidth: 12 GB/s, back: 12 GB/s}]}}");
  check(machine != NULL, "a machine");
  tutti_batch* batch = tutti_batch_parse(machine, "{version: 1, streams: [{from: mem0, to: gpu0, size: 12 MB}]}");
  check(tutti_predict_batch_latency(batch, NULL, &latency) == TUTTI_OK && latency == 1000000, "a batch of 1 ms");
  tutti_task_set* set = tutti_task_set_parse(
      machine,
      "{version: 1, tasks: [{name: inspect, period: 5 ms, job: [{batch: [{from: mem0, to: gpu0, size: 12 MB}]}, "
      "{host: {time: 100 us, name: decide}}]}]}");
  check(tutti_task_set_size(set) == 1, "a task");
  check(tutti_capacity(set, TUTTI_PERIOD, "inspect", NULL, &limit) == TUTTI_OK && limit == 1100000, "every 1.1 ms");
  check(refused(tutti_capacity(set, TUTTI_WCET, "inspect", NULL, &limit), "inspect"), "it declares no Wcet");
  tutti_verdict* verdict = tutti_check(set, NULL);
  options.jobs = 3;
  options.programs = &program;
  options.program_count = 1;
  check(tutti_run(verdict, &options, NULL) == TUTTI_OK && steps == 3, "its host step is step 1 of three jobs");
  check(tutti_profile(set, &options, 1, 0) == NULL && strstr(tutti_last_error(), "simulated"), "kernels need GPUs");
  options.backend = (tutti_backend)77;
  check(refused(tutti_run(verdict, &options, NULL), "no backend 77"), "no backend of that number");
  check(refused(tutti_capacity(set, (tutti_tunable)99, "inspect", NULL, &limit), "no tunable"), "nor such a tunable");
  check(tutti_machine_parse("version: 2") == NULL && tutti_machine_parse(NULL) == NULL, "no machine");
  check(tutti_batch_parse(NULL, "") == NULL && tutti_task_set_parse(NULL, "") == NULL, "none for no machine");
  check(refused(tutti_capacity(NULL, TUTTI_PERIOD, "a", NULL, &limit), "null"), "no capacity");
  check(tutti_profile(NULL, NULL, 1, 0) == NULL, "nothing to profile");
  tutti_verdict_free(verdict);
  tutti_task_set_free(set);
  tutti_batch_free(batch);
  tutti_machine_free(machine);
}

/* Adds a kept term to what a job brings. A buffer without bytes stands between them. */
static int add_term(const tutti_kernel_launch* launch, void* user) {
  size_t size = 0, written = 0, behind = 1;
  const unsigned char* in = tutti_launch_read(launch, 0, &size);
  size_t nothing = 1;
  const int is_there = tutti_launch_read(launch, 1, &nothing) != NULL && nothing == 0;
  const unsigned char* term = tutti_launch_read(launch, 2, NULL);
  unsigned char* out = tutti_launch_written(launch, 0, &written);
  (void)user;
  if (!is_there || tutti_launch_read(launch, 3, &behind) != NULL || behind != 0 || size != 8 || written != 8) return 1;
  if (tutti_launch_written(launch, 1, NULL) != NULL || launch->input != in || launch->output != out) return 2;
  for (size_t i = 0; i < size; ++i) out[i] = (unsigned char)(in[i] + term[i]);
  return 0;
}

static void keep_term(const tutti_kept_buffers* kept, void* user) {
  size_t size = 0;
  unsigned char* term = tutti_kept_buffer(kept, "term", &size);
  *(int*)user += tutti_kept_buffer(kept, "sum", NULL) == NULL && size == 8 ? 100 : 0;
  if (term != NULL) memset(term, 5, size);
}

static void bring(const tutti_job* job, void* user) {
  size_t size = 0;
  unsigned char* in = tutti_job_buffer(job, "in", &size);
  (void)user;
  if (in != NULL) memset(in, 1 + (int)tutti_job_index(job), size);
}

static void expect_sum(const tutti_job* job, void* user) {
  const unsigned char* out = tutti_job_buffer(job, "out", NULL);
  const int none = tutti_job_buffer(job, "sum", NULL) == NULL && tutti_job_buffer(job, NULL, NULL) == NULL;
  *(int*)user += none && out[7] == 6 + tutti_job_index(job) ? 1 : 0;
}

static void buffers_have_names(void) {
  int seen = 0;
  unsigned char memory[8] = {0};
  const tutti_slot slots[1] = {{"in", memory, sizeof memory}};
  tutti_run_options options = {0};
  tutti_task_program program = {"add", bring, expect_sum, &seen, NULL, NULL, NULL, NULL, keep_term, slots, 1, NULL, 0};
  tutti_kernels* kernels = tutti_kernels_new();
  tutti_machine* machine = tutti_machine_parse(
      "{version: 1, machine: {name: m, vertices: {mem0: {kind: memory}, gpu0: {kind: gpu}}, "
      "links: [{from: mem0, to: gpu0, bandwidth: 12 GB/s, back: 12 GB/s}]}}");
  tutti_task_set* set = tutti_task_set_parse(
      machine,
      "{version: 1, tasks: [{name: add, period: 5 ms, buffers: {in: {in: mem0, size: 8 B}, up: {in: gpu0, size: 8 B}, "
      "none: {in: gpu0, size: 0}, term: {in: gpu0, size: 8 B, keep: true}, sum: {in: gpu0, size: 8 B}, out: {in: mem0, "
      "size: 8 B}}, job: [{batch: "
      "[{copy: in, to: up, kernel: {name: add_term, reads: [up, none, term], writes: [sum], time: 1 us}}]}, {batch: "
      "[{copy: "
      "sum, to: out}]}]}]}");
  check(set != NULL && tutti_kernels_add(kernels, "add_term", add_term, NULL, NULL) == TUTTI_OK, "a set with buffers");
  tutti_verdict* verdict = tutti_check(set, NULL);
  options.jobs = 3;
  options.kernels = kernels;
  options.programs = &program;
  options.program_count = 1;
  check(tutti_run(verdict, &options, NULL) == TUTTI_OK && seen == 103, "buffers are reached by their names");
  check(memory[0] == 3, "the last job was brought into memory of the program");
  tutti_verdict_free(verdict);
  tutti_task_set_free(set);
  tutti_machine_free(machine);
  tutti_kernels_free(kernels);
}

/* The newest slot of a ring, complete before the run; and what is refused. */
typedef struct taken {
  int jobs, right, freed;
} taken;

static void take_newest(const tutti_job* job, void* user) {
  taken* seen = user;
  tutti_ring_slot slot = {0};
  const unsigned char* frame = tutti_job_buffer(job, "frame", NULL);
  const int got = tutti_job_slot(job, "frame", &slot) == TUTTI_OK && tutti_job_slot(job, "up", &slot) != TUTTI_OK;
  seen->right += got && frame[0] == 9 && slot.number == 1 && slot.is_new == (seen->jobs == 0) ? 1 : 0;
  ++seen->jobs;
}

static void note_free(size_t slot, void* user) { ((taken*)user)->freed += 1 + (int)slot; }

static void newest_of_a_ring(void) {
  unsigned char memory[3][8] = {{0}};
  void* const slots[3] = {memory[0], memory[1], memory[2]};
  taken seen = {0, 0, 0};
  tutti_ring* ring = tutti_ring_new(slots, 3, sizeof memory[0], note_free, &seen);
  check(
      ring != NULL && tutti_ring_new(slots, 2, 8, NULL, NULL) == NULL && tutti_ring_new(NULL, 3, 8, NULL, NULL) == NULL,
      "a ring has three slots or more");
  check(tutti_ring_begin(ring) == 0 && tutti_ring_begin_slot(ring, 0) == TUTTI_INVALID_INPUT &&
            tutti_ring_is_free(ring, 1) == 1 && tutti_ring_is_free(ring, 3) == 0 && tutti_ring_begin(NULL) == -1,
        "a slot is begun once");
  memory[0][0] = 9;
  check(tutti_ring_complete(ring, 0) == TUTTI_OK && tutti_ring_complete(ring, 0) == TUTTI_INVALID_INPUT &&
            tutti_ring_complete(ring, 3) == TUTTI_INVALID_INPUT && tutti_ring_complete(NULL, 0) == TUTTI_INVALID_INPUT,
        "a slot is complete once");
  check(seen.freed == 3, "the last slot is free once there is a newer one");
  const tutti_task_ring rings[1] = {{"frame", ring}};
  tutti_run_options options = {0};
  tutti_task_program program = {0};
  program.task = "take";
  program.on_finished = take_newest;
  program.user = &seen;
  program.rings = rings;
  program.ring_count = 1;
  tutti_machine* machine = tutti_machine_parse(
      "{version: 1, machine: {name: m, vertices: {mem0: {kind: memory}, gpu0: {kind: gpu}}, "
      "links: [{from: mem0, to: gpu0, bandwidth: 12 GB/s, back: 12 GB/s}]}}");
  tutti_task_set* set = tutti_task_set_parse(
      machine,
      "{version: 1, tasks: [{name: take, period: 5 ms, buffers: {frame: {in: mem0, size: 8 B}, up: {in: gpu0, size: 8 "
      "B}}, job: [{batch: [{copy: frame, to: up}]}]}]}");
  tutti_verdict* verdict = tutti_check(set, NULL);
  options.jobs = 3;
  options.programs = &program;
  options.program_count = 1;
  check(tutti_run(verdict, &options, NULL) == TUTTI_OK && seen.right == 3, "jobs have the newest slot of a ring");
  tutti_verdict_free(verdict);
  tutti_task_set_free(set);
  tutti_machine_free(machine);
  tutti_ring_free(ring);
}

/* Every second job of one task fires the trigger of another. */
typedef struct firing {
  tutti_trigger* trigger;
  uint64_t frames;
} firing;

static void fire(const tutti_job* job, void* user) {
  firing* fires = user;
  if (tutti_job_index(job) % 2 == 0) tutti_trigger_fire(fires->trigger);
}

static void count_frame(const tutti_job* job, void* user) {
  (void)job;
  ++((firing*)user)->frames;
}

static void triggers_release_jobs(const char* folder) {
  const char* text =
      "version: 1\n"
      "tasks:\n"
      "  - {name: clock, period: 10 ms, job: [{batch: [{from: mem0, to: gpu0, size: 1 MB}]}]}\n"
      "  - {name: frame, period: 15 ms, release: external, job: [{batch: [{from: mem0, to: gpu0, size: 1 MB}]}]}\n";
  char path[4096];
  snprintf(path, sizeof path, "%s/machines/inspection-example.yaml", folder);
  tutti_machine* machine = tutti_machine_load(path);
  tutti_task_set* set = tutti_task_set_parse(machine, text);
  check(set != NULL, "a set with an external release");
  tutti_verdict* verdict = tutti_check(set, NULL);
  firing fires = {tutti_trigger_new(), 0};
  tutti_task_program programs[2] = {
      {"clock", NULL, fire, &fires, NULL, NULL, NULL, NULL, NULL, NULL, 0, NULL, 0},
      {"frame", count_frame, NULL, &fires, NULL, NULL, NULL, NULL, NULL, NULL, 0, NULL, 0}};
  tutti_task_trigger trigger = {"frame", fires.trigger};
  tutti_run_options options = {0};
  options.arrivals_before_ns = 100000000;
  options.programs = programs;
  options.program_count = 2;
  options.triggers = &trigger;
  options.trigger_count = 1;
  tutti_run_summary summary;
  check(tutti_run(verdict, &options, &summary) == TUTTI_OK, "it runs");
  check(fires.frames == 5 && summary.jobs == 15, "every second of ten jobs fires one of another task");
  trigger.task = "clock";
  check(refused(tutti_run(verdict, &options, NULL), "whose jobs the clock releases"), "no trigger for a clock's task");
  trigger.trigger = NULL;
  check(refused(tutti_run(verdict, &options, NULL), "trigger is null"), "no trigger");
  tutti_shared_trigger* shared = tutti_shared_trigger_open("tutti.c.test");
  check(shared != NULL, "a word in shared memory");
  check(tutti_shared_trigger_fire(shared) == TUTTI_OK, "it is fired");
  remove("/dev/shm/tutti.tutti.c.test");
  check(tutti_shared_trigger_fire(shared) == TUTTI_MACHINE && strstr(tutti_last_error(), "was removed") != NULL,
        "a word that another process has removed");
  tutti_shared_trigger_free(shared);
  check(tutti_shared_trigger_open("a/b") == NULL && strstr(tutti_last_error(), "no name") != NULL,
        "a name that is none");
  tutti_trigger_free(fires.trigger);
  tutti_verdict_free(verdict);
  tutti_task_set_free(set);
  tutti_machine_free(machine);
}

/* Fails the second job, and asks the run to end in the fourth. */
typedef struct ending {
  tutti_stop* stop;
  int ready, failed;
} ending;

/* 12 MB, so that memory that was given back is none of the program any more. */
static void held_memory_stays(void) {
  tutti_machine* machine = tutti_machine_parse(
      "{version: 1, machine: {name: m, vertices: {mem0: {kind: memory}, gpu0: {kind: gpu}}, "
      "links: [{from: mem0, to: gpu0, bandwidth: 12 GB/s, back: 12 GB/s}]}}");
  tutti_runtime* runtime = tutti_runtime_open(machine, NULL, TUTTI_SIMULATED, NULL);
  tutti_buffer* buffer = tutti_buffer_allocate(runtime, "mem0", 12000000);
  unsigned char* bytes = tutti_buffer_bytes(buffer);
  tutti_hold* hold = tutti_hold_new(bytes + 6000000);
  check(hold != NULL, "memory is held at any of its bytes");
  bytes[11999999] = 7;
  tutti_buffer_free(buffer);
  tutti_runtime_free(runtime);
  tutti_machine_free(machine);
  check(bytes[11999999] == 7, "and stays when its buffer and its runtime are gone");
  tutti_hold_free(hold);
}

static int fail_second(const tutti_job* job, size_t step, void* user) {
  (void)step;
  if (tutti_job_index(job) == 3) tutti_stop_request(((ending*)user)->stop);
  return tutti_job_index(job) == 1 ? 7 : 0;
}

static void note_error(const tutti_job_record* job, void* user) {
  if (job->error != NULL)
    ((ending*)user)->failed += job->index == 1 && strstr(job->error, "returned 7") != NULL ? 1 : 9;
}

static void a_run_is_stopped(void) {
  ending seen = {tutti_stop_new(), 0, 0};
  tutti_run_summary summary;
  tutti_run_options options = {0};
  tutti_task_program program = {0};
  program.task = "a";
  program.on_host_step = fail_second;
  program.user = &seen;
  options.jobs = 100;
  options.programs = &program;
  options.program_count = 1;
  options.on_job_end = note_error;
  options.user = &seen;
  options.stop = seen.stop;
  tutti_machine* machine = tutti_machine_parse(
      "{version: 1, machine: {name: m, vertices: {mem0: {kind: memory}, gpu0: {kind: gpu}}, "
      "links: [{from: mem0, to: gpu0, bandwidth: 12 GB/s, back: 12 GB/s}]}}");
  tutti_task_set* set =
      tutti_task_set_parse(machine, "{version: 1, tasks: [{name: a, period: 10 ms, job: [{host: 1 ms}]}]}");
  tutti_verdict* verdict = tutti_check(set, NULL);
  check(tutti_run(verdict, &options, &summary) == TUTTI_OK && summary.interrupted == 1 && summary.jobs < 10,
        "a run ends when it is asked to");
  check(seen.failed == 1 && summary.failed == 1, "the record of a job that failed says why");
  check(tutti_run(verdict, &options, &summary) == TUTTI_OK && summary.interrupted == 1 && summary.jobs < 3,
        "one that begins later ends at once");
  options.stop = NULL;
  options.jobs = 5;
  check(tutti_run(verdict, &options, &summary) == TUTTI_OK && summary.interrupted == 0 && summary.jobs == 5,
        "one without goes on");
  tutti_verdict_free(verdict);
  tutti_task_set_free(set);
  tutti_machine_free(machine);
  tutti_stop_free(seen.stop);
}

static void count_remedy(const tutti_remedy* remedy, void* user) {
  *(int*)user += strlen(remedy->name) > 0 && strlen(remedy->from) > 0 && strlen(remedy->to) > 0 ? 1 : 100;
}

/* 3 + 2 ms of work in an interval of 4. */
static void a_refused_set_has_remedies(void) {
  int found = 0;
  tutti_machine* machine = tutti_machine_parse(
      "{version: 1, machine: {name: m, vertices: {mem0: {kind: memory}, gpu0: {kind: gpu}}, "
      "links: [{from: mem0, to: gpu0, bandwidth: 12 GB/s, back: 12 GB/s}]}}");
  tutti_task_set* set = tutti_task_set_parse(
      machine,
      "{version: 1, tasks: [{name: a, period: 10 ms, wcet: 3 ms}, {name: b, period: 10 ms, deadline: 4 ms, wcet: 2 "
      "ms}]}");
  check(tutti_remedies(set, NULL, count_remedy, &found) == TUTTI_OK && found > 0 && found <= 5, "a set has remedies");
  check(refused(tutti_remedies(set, "bst", count_remedy, &found), "'bst'"), "no planner of that name");
  check(refused(tutti_remedies(NULL, NULL, count_remedy, &found), "null") &&
            refused(tutti_remedies(set, NULL, NULL, NULL), "null"),
        "no set, or no function");
  check(tutti_planner_name(0) != NULL && strcmp(tutti_planner_name(0), "best") == 0 && tutti_planner_name(99) == NULL,
        "planners have names");
  tutti_task_set_free(set);
  tutti_machine_free(machine);
}

static void nulls_are_refused(void) {
  int64_t number = 0;
  int finished = 0;
  check(tutti_machine_load(NULL) == NULL && tutti_batch_load(NULL) == NULL && tutti_task_set_load(NULL) == NULL,
        "paths");
  check(tutti_batch_machine(NULL) == NULL && refused(TUTTI_INVALID_INPUT, "the batch is null"), "no batch");
  check(refused(tutti_predict_batch_latency(NULL, NULL, &number), "the batch is null"), "no batch to predict");
  check(refused(tutti_kernels_add(NULL, "a", fail, NULL, NULL), "null"), "no kernel table");
  check(tutti_runtime_open(NULL, NULL, TUTTI_SIMULATED, NULL) == NULL, "no machine");
  check(tutti_buffer_allocate(NULL, "mem0", 1) == NULL && tutti_buffer_bytes(NULL) == NULL, "no runtime");
  check(tutti_buffer_wrap(NULL, "mem0", &number, sizeof number, NULL, NULL) == NULL, "no runtime to wrap for");
  check(tutti_buffer_wrap_tensor(NULL, "mem0", NULL) == NULL && tutti_buffer_lend_tensor(NULL, NULL) == NULL,
        "no runtime for tensors");
  check(tutti_prepare(NULL, NULL, NULL, 1, 1) == NULL && tutti_batch_op_async(NULL) == NULL, "nothing to prepare");
  check(refused(tutti_batch_op(NULL, NULL), "null") && refused(tutti_batch_op_query(NULL, &finished), "null") &&
            refused(tutti_batch_op_synchronize(NULL, NULL), "null"),
        "no run");
  check(tutti_check(NULL, NULL) == NULL && tutti_verdict_answer(NULL) == TUTTI_UNKNOWN, "no task set");
  check(tutti_verdict_reason(NULL, 0) == NULL && refused(tutti_verdict_worst_response(NULL, 0, &number), "null"),
        "no verdict");
  check(refused(tutti_run(NULL, NULL, NULL), "null") && tutti_task_set_size(NULL) == 0, "nothing to run");
  check(tutti_change_requests_new(NULL) == NULL && refused(tutti_change_requests_post(NULL, 0, "a", NULL), "null") &&
            refused(tutti_run_changing(NULL, NULL, 0, NULL, NULL, NULL), "null"),
        "no requests");
  check(tutti_job_source(NULL, 0, 0, NULL) == NULL && tutti_job_index(NULL) == 0 && tutti_job_task(NULL) == 0,
        "no job");
  check(tutti_job_buffer(NULL, "a", NULL) == NULL && tutti_kept_buffer(NULL, "a", NULL) == NULL &&
            tutti_launch_read(NULL, 0, NULL) == NULL && tutti_launch_written(NULL, 0, NULL) == NULL,
        "no buffers");
  tutti_machine_free(NULL);
  tutti_batch_free(NULL);
  tutti_kernels_free(NULL);
  tutti_runtime_free(NULL);
  tutti_buffer_free(NULL);
  tutti_prepared_batch_free(NULL);
  tutti_batch_run_free(NULL);
  tutti_task_set_free(NULL);
  tutti_change_requests_free(NULL);
  tutti_trigger_fire(NULL);
  tutti_trigger_free(NULL);
  check(refused(tutti_shared_trigger_fire(NULL), "the trigger is null"), "no trigger to fire");
  tutti_shared_trigger_free(NULL);
  check(tutti_hold_new(NULL) == NULL && refused(TUTTI_INVALID_INPUT, "the address is null"), "no memory to hold");
  tutti_hold_free(NULL);
  tutti_stop_request(NULL);
  tutti_stop_free(NULL);
  tutti_verdict_free(NULL);
  check(1, "freeing null does nothing");
}

/* Arguments: the folders of configurations, of the files of this test, of the examples. */
int main(int argc, char** argv) {
  if (argc != 4) return 2;
  check(strcmp(tutti_version(), EXPECTED_VERSION) == 0, "the version is that of the project");
  predicts(argv[1]);
  runs(argv[2]);
  memory_of_the_program(argv[2]);
  kernel_fails(argv[2]);
  tasks_run(argv[3]);
  tasks_come_and_go(argv[3]);
  texts_are_read();
  buffers_have_names();
  newest_of_a_ring();
  triggers_release_jobs(argv[1]);
  held_memory_stays();
  a_run_is_stopped();
  a_refused_set_has_remedies();
  nulls_are_refused();
  printf("1..%d\n", count);
  return failures == 0 ? 0 : 1;
}
