/* C interface of tutti, over the C++ one. */
#ifndef TUTTI_H
#define TUTTI_H
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * @file
 *
 * Functions that make something return null where they fail, and others a status. `tutti_last_error` then gives the
 * sentence. No exception leaves a function. Every function takes null where it takes a handle: a null is refused with
 * an error, and freeing null does nothing. Strings are UTF-8 and end with 0. Times are in nanoseconds.
 *
 * One thread at a time uses a runtime and what was made from it; other handles may be read by several, and any thread
 * may post a request.
 */

/** Exposes a function of the library. */
#define TUTTI_C_API __attribute__((visibility("default")))

/** Result of a call. */
typedef enum tutti_status {
  TUTTI_OK = 0,
  TUTTI_INVALID_INPUT = 2, /**< a file, an argument or a value that the user can remedy */
  TUTTI_MACHINE = 3,       /**< the machine, the driver or the host failed */
  TUTTI_KERNEL = 4         /**< a user's kernel or callback failed */
} tutti_status;

/** A machine; immutable. */
typedef struct tutti_machine tutti_machine;
/** A batch of command streams; immutable. */
typedef struct tutti_batch tutti_batch;
/** Kernels that batches may name. */
typedef struct tutti_kernels tutti_kernels;
/** An open machine that runs batches. */
typedef struct tutti_runtime tutti_runtime;
/** Memory of a runtime. */
typedef struct tutti_buffer tutti_buffer;
/** A batch that is ready to run repeatedly. */
typedef struct tutti_prepared_batch tutti_prepared_batch;
/** One run of a prepared batch. */
typedef struct tutti_batch_run tutti_batch_run;
/** Periodic tasks; immutable. */
typedef struct tutti_task_set tutti_task_set;
/** The answer to whether a task set meets its deadlines; immutable. */
typedef struct tutti_verdict tutti_verdict;
/** Requests to change a task set while it runs. */
typedef struct tutti_change_requests tutti_change_requests;
/** A job, during a callback of its task. */
typedef struct tutti_job tutti_job;

/** Version of the library, "0.2.0". */
TUTTI_C_API const char* tutti_version(void);
/** Sentence of the last call of this thread that failed; empty where none has. Valid until the next call that fails. */
TUTTI_C_API const char* tutti_last_error(void);

/** Reads a machine file. */
TUTTI_C_API tutti_machine* tutti_machine_load(const char* path);
/** Reads the text of a machine file. */
TUTTI_C_API tutti_machine* tutti_machine_parse(const char* text);
/** Frees a machine. */
TUTTI_C_API void tutti_machine_free(tutti_machine* machine);

/** Reads a batch file and the machine that it names. */
TUTTI_C_API tutti_batch* tutti_batch_load(const char* path);
/** Reads the text of a batch file for a machine; `machine` in it is not read. */
TUTTI_C_API tutti_batch* tutti_batch_parse(const tutti_machine* machine, const char* text);
/** Machine that a batch was made for; a handle of its own. */
TUTTI_C_API tutti_machine* tutti_batch_machine(const tutti_batch* batch);
/** Frees a batch. */
TUTTI_C_API void tutti_batch_free(tutti_batch* batch);

/** Name of a planner; null behind the last. The first is the default. Valid as long as the library. */
TUTTI_C_API const char* tutti_planner_name(size_t planner);
/** Predicts the length of a batch at nominal bandwidths.
 *  @param planner     name of a planner; null: the default
 *  @param latency_ns  result */
TUTTI_C_API tutti_status tutti_predict_batch_latency(const tutti_batch* batch, const char* planner,
                                                     int64_t* latency_ns);
/** Finds the length of a batch that no run exceeds.
 *  @param planner    name of a planner; null: the default
 *  @param latest_ns  result */
TUTTI_C_API tutti_status tutti_predict_worst_batch_latency(const tutti_batch* batch, const char* planner,
                                                           int64_t* latest_ns);

/** Arguments of a kernel launch. */
typedef struct tutti_kernel_launch {
  const void* input; /**< the first that it reads: without names where the transfer of its stream ended */
  size_t input_size;
  void* output; /**< the first that it writes; may be null */
  size_t output_size;
  const void* parameters; /**< of the user; may be null */
  size_t parameters_size;
  const void* buffers; /**< for the functions below */
} tutti_kernel_launch;

/** Memory that a kernel reads, by its position in `reads` of the task set; null behind the last one, and not for a
 *  buffer of 0 bytes.
 *  @param size  result; may be null */
TUTTI_C_API const void* tutti_launch_read(const tutti_kernel_launch* launch, size_t position, size_t* size);
/** Memory that a kernel writes, by its position in `writes`; null as above.
 *  @param size  result; may be null */
TUTTI_C_API void* tutti_launch_written(const tutti_kernel_launch* launch, size_t position, size_t* size);

/** A kernel on the host. @return 0, or another number where it failed. */
typedef int (*tutti_host_kernel)(const tutti_kernel_launch* launch, void* user);
/** Enqueues a kernel on a GPU. It is called when a batch is prepared, once for each set of buffers, and what it
 * enqueues is launched in each run; the first time it is called once more, on memory of its own, where it may load and
 * allocate. With `capture: never` in its stream it is called in each run. @param stream  a cudaStream_t @return 0, or
 * another number where it failed. */
typedef int (*tutti_device_kernel)(const tutti_kernel_launch* launch, void* stream, void* user);

/** Makes a table with the kernels that are built in. */
TUTTI_C_API tutti_kernels* tutti_kernels_new(void);
/** Adds a kernel. One of its forms may be null.
 *  @param user  passed to both forms; it outlives every runtime that has the kernel */
TUTTI_C_API tutti_status tutti_kernels_add(tutti_kernels* kernels, const char* name, tutti_host_kernel host,
                                           tutti_device_kernel device, void* user);
/** Frees a table; runtimes that were opened with it keep its kernels. */
TUTTI_C_API void tutti_kernels_free(tutti_kernels* kernels);

/** What runs batches. */
typedef enum tutti_backend { TUTTI_SIMULATED = 0, TUTTI_CUDA = 1 } tutti_backend;

/** Opens a machine.
 *  @param kernels  null: those that are built in
 *  @param planner  name of a planner; null: the default */
TUTTI_C_API tutti_runtime* tutti_runtime_open(const tutti_machine* machine, const tutti_kernels* kernels,
                                              tutti_backend backend, const char* planner);
/** Frees a runtime; its memory and its batches keep it alive as long as they are needed. */
TUTTI_C_API void tutti_runtime_free(tutti_runtime* runtime);

/** Allocates zeroed memory in a memory or a GPU. */
TUTTI_C_API tutti_buffer* tutti_buffer_allocate(tutti_runtime* runtime, const char* place, int64_t size);
/** A buffer of memory that the program has; nothing is copied, and it is not freed. Pinned memory of the host and
 * memory of GPUs are taken as they are; other memory of the host is pinned until its buffers have gone and no run of
 * the program is armed or under way. What reaches over the end of pinned memory is refused: wrap the whole once, and
 * then what lies in it.
 *  @param memory    stays until `released` is called; without it, free its buffers while no run is armed or under way
 *  @param released  called once with `user`, at the end of any call, when the memory is not used any more; not where
 *                   this call fails, and never where a lost GPU may use the memory. It may be null, and throws nothing.
 */
TUTTI_C_API tutti_buffer* tutti_buffer_wrap(tutti_runtime* runtime, const char* place, void* memory, int64_t size,
                                            void (*released)(void* user), void* user);
struct DLManagedTensorVersioned;
/** A buffer of a tensor's memory (DLPack 1), as `tutti_buffer_wrap`: contiguous, of this process. Where it is
 * read-only, no batch writes it. The tensor is the runtime's where this succeeds: its deleter is called as `released`
 * there. */
TUTTI_C_API tutti_buffer* tutti_buffer_wrap_tensor(tutti_runtime* runtime, const char* place,
                                                   struct DLManagedTensorVersioned* tensor);
/** Its memory as a tensor of bytes, at the same address, for another library. It holds the buffer until its deleter is
 *  called. Null: the buffer is of another runtime. */
TUTTI_C_API struct DLManagedTensorVersioned* tutti_buffer_lend_tensor(tutti_runtime* runtime,
                                                                      const tutti_buffer* buffer);
/** Its bytes; null where it lies in a GPU. */
TUTTI_C_API void* tutti_buffer_bytes(const tutti_buffer* buffer);
/** Its size. */
TUTTI_C_API int64_t tutti_buffer_size(const tutti_buffer* buffer);
/** Frees a handle; prepared batches keep the memory that they use. */
TUTTI_C_API void tutti_buffer_free(tutti_buffer* buffer);

/** Buffers and parameters of one stream; each may be null where the stream does not need it. */
typedef struct tutti_stream_binding {
  const tutti_buffer* source;
  const tutti_buffer* destination;
  const tutti_buffer* kernel_input; /**< null: the transfer's destination */
  const tutti_buffer* kernel_output;
  const void* parameters; /**< copied */
  size_t parameters_size;
} tutti_stream_binding;

/** Plans a batch and makes everything ready for its runs.
 *  @param bindings   [count], one a stream; null with a count of 0: scratch buffers, which end with the batch
 *  @param in_flight  most runs of it at once, 1 to 64 */
TUTTI_C_API tutti_prepared_batch* tutti_prepare(tutti_runtime* runtime, const tutti_batch* batch,
                                                const tutti_stream_binding* bindings, size_t count, int in_flight);
/** Frees a prepared batch; its runs in flight end first. */
TUTTI_C_API void tutti_prepared_batch_free(tutti_prepared_batch* batch);

/** How a run of a batch ended. */
typedef struct tutti_batch_result {
  int64_t start_ns;
  int64_t finish_ns; /**< of the last stream */
  int overruns;      /**< kernels that took longer than their declared worst */
} tutti_batch_result;

/** Runs a batch and waits for it. @param result  may be null */
TUTTI_C_API tutti_status tutti_batch_op(tutti_prepared_batch* batch, tutti_batch_result* result);
/** Issues a batch; it starts when everything issued before is finished. */
TUTTI_C_API tutti_batch_run* tutti_batch_op_async(tutti_prepared_batch* batch);
/** Whether a run is finished. @param finished  result: 0 or 1 */
TUTTI_C_API tutti_status tutti_batch_op_query(tutti_batch_run* run, int* finished);
/** Waits for a run. @param result  may be null */
TUTTI_C_API tutti_status tutti_batch_op_synchronize(tutti_batch_run* run, tutti_batch_result* result);
/** Frees a run, which runs to its end. */
TUTTI_C_API void tutti_batch_run_free(tutti_batch_run* run);

/** Reads a task file and the machine that it names. */
TUTTI_C_API tutti_task_set* tutti_task_set_load(const char* path);
/** Reads the text of a task file for a machine; `machine` in it is not read. */
TUTTI_C_API tutti_task_set* tutti_task_set_parse(const tutti_machine* machine, const char* text);
/** Number of its tasks. */
TUTTI_C_API size_t tutti_task_set_size(const tutti_task_set* set);
/** Name of a task; null where there is no such task. Valid as long as the set. */
TUTTI_C_API const char* tutti_task_set_name(const tutti_task_set* set, size_t task);
/** Frees a task set. */
TUTTI_C_API void tutti_task_set_free(tutti_task_set* set);

/** Whether every job meets its deadline. */
typedef enum tutti_answer { TUTTI_SCHEDULABLE = 0, TUTTI_NOT_SCHEDULABLE = 1, TUTTI_UNKNOWN = 2 } tutti_answer;

/** Decides whether a task set may run. @param planner  null: the set's, else the default */
TUTTI_C_API tutti_verdict* tutti_check(const tutti_task_set* set, const char* planner);
/** The answer; unknown for null. */
TUTTI_C_API tutti_answer tutti_verdict_answer(const tutti_verdict* verdict);
/** A reason why not, a sentence; null behind the last. Valid as long as the verdict. */
TUTTI_C_API const char* tutti_verdict_reason(const tutti_verdict* verdict, size_t reason);
/** Bound of a task's response from its arrival. @param response_ns  result; -1 where no test bounds it */
TUTTI_C_API tutti_status tutti_verdict_worst_response(const tutti_verdict* verdict, size_t task, int64_t* response_ns);
/** One task of a verdict. */
typedef struct tutti_task_verdict {
  int64_t wcet_ns;           /**< bound of a job, margin included */
  int64_t deadline_ns;       /**< from the arrival */
  int64_t worst_response_ns; /**< from the arrival; -1 where no test bounds it */
} tutti_task_verdict;
/** What a verdict has of a task, by its position in the set. */
TUTTI_C_API tutti_status tutti_verdict_task(const tutti_verdict* verdict, size_t task, tutti_task_verdict* result);
/** Frees a verdict. */
TUTTI_C_API void tutti_verdict_free(tutti_verdict* verdict);

/** One change that makes a refused set schedulable; valid during the call. */
typedef struct tutti_remedy {
  const char* name; /**< "period of 'inspect'", "size of 'part0' in 'inspect'" */
  const char* from; /**< present value with its unit */
  const char* to;   /**< value with which the set is schedulable */
} tutti_remedy;
/** Finds the smallest single changes that make a refused set schedulable, at most five; each was checked.
 *  @param planner    null: the set's, else the default
 *  @param on_remedy  called for each; not at all where the set is schedulable, and where no single change helps */
TUTTI_C_API tutti_status tutti_remedies(const tutti_task_set* set, const char* planner,
                                        void (*on_remedy)(const tutti_remedy* remedy, void* user), void* user);

/** Number of a task set whose limit is looked for. */
typedef enum tutti_tunable {
  TUTTI_PARAMETER = 0, /**< size that the file names: the largest, in bytes */
  TUTTI_PERIOD = 1,    /**< of a task: the smallest, in ns */
  TUTTI_DEADLINE = 2,  /**< of a task: the smallest, in ns */
  TUTTI_WCET = 3       /**< that a task declares: the largest, in ns */
} tutti_tunable;

/** Finds how far a number of a task set can go with every deadline guaranteed.
 *  @param name     of the parameter or the task
 *  @param planner  null: the set's, else the default
 *  @param limit    result; -1: no value that was tried */
TUTTI_C_API tutti_status tutti_capacity(const tutti_task_set* set, tutti_tunable tunable, const char* name,
                                        const char* planner, int64_t* limit);

/** Position of a job's task in its set. */
TUTTI_C_API size_t tutti_job_task(const tutti_job* job);
/** Number of a job among those of its task, from 0. */
TUTTI_C_API uint64_t tutti_job_index(const tutti_job* job);
/** Name of the host step that a job is in; null where the set has none for it, and outside `on_host_step`. Valid as
 * long as the set. */
TUTTI_C_API const char* tutti_job_step(const tutti_job* job);
/** Whether a later job runs into the buffers of this one, or has, as its task allows by `late_consumer: overwrite`:
 *  what was read of them is not whole. To be asked in `on_finished`, behind reading. @return 0 or 1; 0 for null */
TUTTI_C_API int tutti_job_overwritten(const tutti_job* job);
/** Host memory that a stream's transfer starts from; null where it lies in a GPU, and where there is no such stream.
 *  For tasks that name no buffers; for others the next version has `tutti_job_buffer` alone.
 *  @param size  result; may be null */
TUTTI_C_API void* tutti_job_source(const tutti_job* job, size_t batch, size_t stream, size_t* size);
/** Host memory that a stream's transfer ends in; null as above. */
TUTTI_C_API void* tutti_job_destination(const tutti_job* job, size_t batch, size_t stream, size_t* size);

/** A buffer that the task names, of this job or kept; null where it lies in a GPU, and where there is none of that
 *  name. That of another task, "TASK.BUFFER", is what its newest complete job left when this job started, zeros before
 *  the first one; it is to be read alone, and is null in `on_ready`, before the start.
 *  @param size  result; may be null */
TUTTI_C_API void* tutti_job_buffer(const tutti_job* job, const char* name, size_t* size);

/** The kept buffers of a task, before its first job. */
typedef struct tutti_kept_buffers tutti_kept_buffers;
/** Host memory for what a kept buffer is to hold, zeroed; that of a GPU's buffer is copied there behind the call. Null
 *  where no buffer of that name is kept.
 *  @param size  result; may be null */
TUTTI_C_API void* tutti_kept_buffer(const tutti_kept_buffers* buffers, const char* name, size_t* size);

/** Keeps memory that a kernel or a callback was lent. */
typedef struct tutti_hold tutti_hold;
/** Holds the memory of the library at this address, while it is lent: it stays until the hold is freed, also where its
 * run, its batch or its buffer ends before. Jobs that still run write it as before. Memory of the program is not held
 * by this: `released` of `tutti_buffer_wrap` is called when it is neither used nor held. Any thread.
 *  @param address  of any byte of the memory, of the host or of a GPU */
TUTTI_C_API tutti_hold* tutti_hold_new(const void* address);
/** Frees a hold. The last one in a buffer that has ended gives its memory back, at once or, while its runtime or its
 * run goes on, with the next buffer that ends there. Any thread. */
TUTTI_C_API void tutti_hold_free(tutti_hold* hold);

/** Record of a job. */
typedef struct tutti_job_record {
  size_t task;
  uint64_t index;
  int64_t arrival_ns;
  int64_t finish_ns; /**< -1: it was never run */
  int64_t deadline_ns;
  int missed;            /**< 0 or 1 */
  const char* verdict;   /**< met, missed, failed, aborted, dropped, skipped or never_run */
  const char* task_name; /**< valid during the call */
  int overwritten;       /**< 0 or 1; its program did not have its results whole */
  int reused_input;      /**< 0 or 1; its input was that of an earlier job, as `late_input: reuse` allows */
  int64_t seen_ns;       /**< when the host had its record; -1: the host led it, or it never ran */
  const char* error;     /**< why its results are invalid, a sentence; null: they are not. Valid during the call */
} tutti_job_record;

/** Memory of the program for a buffer that a task names. */
typedef struct tutti_slot {
  const char* buffer; /**< name; slots of one buffer are in their order */
  void* data;
  size_t size; /**< at least that of the buffer */
} tutti_slot;

/** Slots of memory of the program that a producer, such as a camera's thread, fills at a rate of its own. A job takes
 * the newest complete slot when it is released, and gives it back behind its callbacks. Where nothing new is complete
 * it gets the newest slot again, marked as not new; before the first, the last slot of the ring as the program left it.
 *  The producer writes to slots that it has begun alone, so no job reads a torn one. Any thread may
 *  make the calls below, and none waits for another. As `tutti::Ring`. */
typedef struct tutti_ring tutti_ring;
/** Makes a ring.
 *  @param slots    [count] memory; it outlives the ring and its runs
 *  @param count    3 to 4096; a run needs two more than jobs of the task can be alive
 *  @param size     of each slot in bytes, at least that of the buffer
 *  @param on_free  a slot is free again: called behind the callbacks of the job that had it, or in
 * `tutti_ring_complete` where no job has it. May be null */
TUTTI_C_API tutti_ring* tutti_ring_new(void* const* slots, size_t count, size_t size,
                                       void (*on_free)(size_t slot, void* user), void* user);
/** Takes a free slot to write to. @return its position; -1: none is free */
TUTTI_C_API int64_t tutti_ring_begin(const tutti_ring* ring);
/** Takes this one; refused where it is not free. */
TUTTI_C_API tutti_status tutti_ring_begin_slot(const tutti_ring* ring, size_t slot);
/** What the producer wrote to a slot is complete, and the newest there is; refused where the producer has not begun it.
 */
TUTTI_C_API tutti_status tutti_ring_complete(const tutti_ring* ring, size_t slot);
/** Whether `tutti_ring_begin_slot` would get the slot now: 0 or 1. */
TUTTI_C_API int tutti_ring_is_free(const tutti_ring* ring, size_t slot);
/** Frees the handle; a run keeps the ring that it has. */
TUTTI_C_API void tutti_ring_free(tutti_ring* ring);

/** What a job has of a ring. */
typedef struct tutti_ring_slot {
  size_t slot;     /**< position in the ring */
  uint64_t number; /**< slots that were complete up to this one, it included; 0: none was yet */
  int is_new;      /**< 1: no job had it before */
} tutti_ring_slot;
/** The slot that a job has for a buffer; refused where that lies in no ring, and for a job that was dropped. */
TUTTI_C_API tutti_status tutti_job_slot(const tutti_job* job, const char* buffer, tutti_ring_slot* result);

/** The ring of a buffer that a task names. */
typedef struct tutti_task_ring {
  const char* buffer; /**< name */
  const tutti_ring* ring;
} tutti_task_ring;

/** Code of a task; members may be null. Host steps are done by the thread that dispatches jobs, or
 * where jobs overlap by threads of their own, several at a time on a cpu with several cores; a thread beside it
 * calls the others, one at a time. */
typedef struct tutti_task_program {
  const char* task;                                      /**< name */
  void (*on_ready)(const tutti_job* job, void* user);    /**< fills the input of a job, ahead of it where a GPU leads */
  void (*on_finished)(const tutti_job* job, void* user); /**< reads the results of a job that ended without an error */
  void* user;
  /** Does the work of a host step; null: its declared time passes. Another number than 0 fails the job.
   *  @param step  position among all steps of the job; `tutti_job_step` has its name */
  int (*on_host_step)(const tutti_job* job, size_t step, void* user);
  /** A job ended late, with results. */
  void (*on_missed)(const tutti_job* job, const tutti_job_record* record, void* user);
  /** A job never ran: no buffers were free, or its task skips it. It has no memory. */
  void (*on_dropped)(const tutti_job* job, const tutti_job_record* record, void* user);
  /** A job failed or was aborted: its results are invalid. */
  void (*on_failed)(const tutti_job* job, const tutti_job_record* record, void* user);
  /** Fills the kept buffers, before the first job. */
  void (*on_start)(const tutti_kept_buffers* buffers, void* user);
  const tutti_slot* memory; /**< that buffers lie in, which is neither copied nor freed, and outlives the run; jobs take
                                 the slots of a buffer in turn. May be null */
  size_t memory_count;
  const tutti_task_ring* rings; /**< of whose slots jobs take the newest complete one, for buffers that they do not
                                     write, without `slots` and `keep`, and that no other task reads. May be null */
  size_t ring_count;
} tutti_task_program;

/** Releases the jobs of a task whose release is external: a frame has come. */
typedef struct tutti_trigger tutti_trigger;
TUTTI_C_API tutti_trigger* tutti_trigger_new(void);
/** A trigger comes now. Any thread; ignored while no run has the trigger. */
TUTTI_C_API void tutti_trigger_fire(const tutti_trigger* trigger);
/** Frees a trigger; a run keeps the one that it has. */
TUTTI_C_API void tutti_trigger_free(tutti_trigger* trigger);

/** The word in shared memory that tasks name as `trigger: NAME`, for the process that fires it. */
typedef struct tutti_shared_trigger tutti_shared_trigger;
/** Opens the word, and makes it where there is none. */
TUTTI_C_API tutti_shared_trigger* tutti_shared_trigger_open(const char* name);
/** A trigger comes now. Any thread; it never waits. Fails where another process has removed or shortened the word. */
TUTTI_C_API tutti_status tutti_shared_trigger_fire(const tutti_shared_trigger* trigger);
TUTTI_C_API void tutti_shared_trigger_free(tutti_shared_trigger* trigger);

/** The trigger of a task. */
typedef struct tutti_task_trigger {
  const char* task; /**< name */
  const tutti_trigger* trigger;
} tutti_task_trigger;

/** Ends runs early. */
typedef struct tutti_stop tutti_stop;
TUTTI_C_API tutti_stop* tutti_stop_new(void);
/** Asks the runs that have it to end: the job under way is the last. Any thread and any signal handler may call it; a
 *  run that begins later ends at once. */
TUTTI_C_API void tutti_stop_request(tutti_stop* stop);
/** Frees it, when no run has it any more. */
TUTTI_C_API void tutti_stop_free(tutti_stop* stop);

/** A request to change the set that runs, and its answer. */
typedef struct tutti_change_record {
  int64_t at_ns;
  const char* leaves; /**< empty: none */
  const char* comes;  /**< empty: none */
  int64_t answered_ns;
  tutti_answer answer; /**< only TUTTI_SCHEDULABLE changed something */
  const char* reason;  /**< why not, a sentence */
} tutti_change_record;

/** Options of a run. Zero everywhere is the simulated machine for one hyperperiod. */
typedef struct tutti_run_options {
  tutti_backend backend;
  uint64_t jobs;                      /**< number of arrivals, all tasks together; 0: one hyperperiod */
  uint64_t seed;                      /**< of release jitter and random input */
  const tutti_kernels* kernels;       /**< null: those that are built in */
  const tutti_task_program* programs; /**< [program_count] */
  size_t program_count;
  void (*on_job_end)(const tutti_job_record* job, void* user); /**< may be null */
  void* user;                                                  /**< passed to `on_job_end` and `on_change` */
  int64_t arrivals_before_ns;                                  /**< arrivals before this instant; 0: as `jobs` says */
  /** Called behind the run, for each answer to a request; may be null. */
  void (*on_change)(const tutti_change_record* change, void* user);
  const tutti_task_trigger* triggers; /**< [trigger_count] of tasks whose release is external */
  size_t trigger_count;
  const char* journal;  /**< a file into which each job is written while the set runs; null: none */
  int64_t journal_size; /**< a file of that size in bytes is followed by another; 0: never */
  size_t journal_files; /**< with `journal_size`: the newest so many files are kept; 0: all */
  tutti_stop* stop;     /**< ends the run early; null: nothing does */
} tutti_run_options;

/** Summary of a run. */
typedef struct tutti_run_summary {
  uint64_t jobs;
  uint64_t missed;
  uint64_t failed;     /**< jobs with an error */
  uint64_t over_bound; /**< jobs that took longer than their bound */
  int interrupted;     /**< 0 or 1; by `tutti_run_options.stop` */
} tutti_run_summary;

/** Runs the set of a verdict that says it is schedulable.
 *  @param options  null: as if zero everywhere
 *  @param summary  result; may be null */
TUTTI_C_API tutti_status tutti_run(const tutti_verdict* verdict, const tutti_run_options* options,
                                   tutti_run_summary* summary);

/** Makes the requests of one run of a set. */
TUTTI_C_API tutti_change_requests* tutti_change_requests_new(const tutti_task_set* set);
/** Posts a request: one task leaves, one comes, or one takes the place of another. The run answers it behind the job
 * that has the machine, or within 50 ms if no job has it.
 *  @param at_ns   from the start of the run; it is answered then or soon after
 *  @param leaves  name of a task; null: none
 *  @param comes   name of a task; null: none */
TUTTI_C_API tutti_status tutti_change_requests_post(tutti_change_requests* requests, int64_t at_ns, const char* leaves,
                                                    const char* comes);
/** Frees requests; a run keeps those that it has. */
TUTTI_C_API void tutti_change_requests_free(tutti_change_requests* requests);

/** Runs the set of these requests, whose tasks come and go. Every deadline is guaranteed at every moment: a request
 * that would endanger one is refused.
 *  @param running  [count] names of the tasks that run from the start; they must be schedulable
 *  @param planner  null: the set's, else the default
 *  @param options  `arrivals_before_ns` must be given, and `jobs` not
 *  @param summary  result; may be null */
TUTTI_C_API tutti_status tutti_run_changing(const tutti_change_requests* requests, const char* const* running,
                                            size_t count, const char* planner, const tutti_run_options* options,
                                            tutti_run_summary* summary);

/** Measures the kernels of a task set on the GPUs of this host, as `tutti::profile` does.
 *  @param options  backend, seed, kernels and programs of it count; null: the GPUs, and kernels that are built in
 *  @param repeats  runs of each kernel in each of the three ways
 *  @param margin   share by which the worst time exceeds the largest one seen: 0.1
 *  @return the set with the measured times in place of those that it declares */
TUTTI_C_API tutti_task_set* tutti_profile(const tutti_task_set* set, const tutti_run_options* options, int repeats,
                                          double margin);

#ifdef __cplusplus
}
#endif
#endif
