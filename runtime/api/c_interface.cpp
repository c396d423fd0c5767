#include <atomic>
#include <cstring>
#include <exception>
#include <new>
#include <stdexcept>
#include <utility>

#include "model/planners/planner.hpp"
#include "runtime/api/handles.hpp"
#include "runtime/api/profile.hpp"
#include "runtime/api/tutti.h"
#include "runtime/api/version.hpp"
#include "runtime/core/backend.hpp"
#include "runtime/core/held_memory.hpp"

struct tutti_machine {
  tutti::Machine value;
};
struct tutti_batch {
  tutti::Batch value;
};
struct tutti_kernels {
  tutti::Kernels value;
};
struct tutti_trigger {
  tutti::Trigger value;
};
struct tutti_shared_trigger {
  tutti::SharedTrigger value;
};
struct tutti_ring {
  tutti::Ring value;
};
struct tutti_runtime {
  tutti::Runtime value;
};
struct tutti_buffer {
  tutti::Buffer value;
};
struct tutti_prepared_batch {
  tutti::PreparedBatch value;
};
struct tutti_batch_run {
  tutti::BatchRun value;
};
struct tutti_task_set {
  tutti::TaskSet value;
  std::vector<std::string> names = {};
};
struct tutti_verdict {
  tutti::Verdict value;
};
struct tutti_change_requests {
  tutti::ChangeRequests value;
};
struct tutti_stop {
  std::atomic<bool> value = false;
};
struct tutti_hold {
  explicit tutti_hold(const void* the_address) : address(the_address) {
    tutti::internal::HeldMemory::hold(the_address);
  }
  tutti_hold(const tutti_hold&) = delete;  // it is released once
  tutti_hold& operator=(const tutti_hold&) = delete;
  ~tutti_hold() { tutti::internal::HeldMemory::release(address); }

  const void* address;
};
struct tutti_job {
  const tutti::Job& value;
  std::string_view step = {};  // of a std::string, so with a 0 behind it
};
struct tutti_kept_buffers {
  const tutti::KeptBuffers& value;
};

namespace tutti {
namespace {

thread_local std::string last_error;

/// Tells a program that its memory is used no more.
struct Released {
  Released() = default;
  Released(const Released&) = delete;  // it tells once
  Released& operator=(const Released&) = delete;
  ~Released() {
    if (call != nullptr) call(user);
  }

  void (*call)(void*) = nullptr;
  void* user = nullptr;
};

void remember(std::string_view message) noexcept {
  try {
    last_error = message;
  } catch (...) {
    last_error.clear();  // no memory for the sentence
  }
}

tutti_status status_of(const Error& error) {
  remember(error.text());
  switch (error.code) {
    case ErrorCode::InvalidInput: return TUTTI_INVALID_INPUT;
    case ErrorCode::Machine: return TUTTI_MACHINE;
    case ErrorCode::Kernel: return TUTTI_KERNEL;
  }
  return TUTTI_MACHINE;
}

/// Runs a function of the interface and keeps exceptions in.
/// @param body  () -> tutti_status
template <class Body>
tutti_status guarded(const Body& body) noexcept {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    remember("the host has no memory left");
  } catch (const std::invalid_argument& exception) {
    remember(exception.what());
    return TUTTI_INVALID_INPUT;
  } catch (const std::exception& exception) {
    remember(exception.what());
  } catch (...) {
    remember("an unknown exception");
  }
  return TUTTI_MACHINE;
}

tutti_status refuse_null(const char* what) {
  remember(std::string(what) + " is null; pass one");
  return TUTTI_INVALID_INPUT;
}

/// Makes a handle of an `Expected`, or null.
/// @param make  () -> Expected<Value>
template <class Handle, class Make>
Handle* made(const Make& make) noexcept {
  Handle* handle = nullptr;
  guarded([&] {
    auto value = make();
    if (!value) return status_of(value.error());
    handle = new Handle{*std::move(value)};
    return TUTTI_OK;
  });
  return handle;
}

/// Writes the value of an `Expected`.
template <class Value, class Write>
tutti_status finish(const Expected<Value>& value, const Write& write) {
  if (!value) return status_of(value.error());
  write(*value);
  return TUTTI_OK;
}

/// @param make  () -> Expected<TaskSet>
template <class Make>
tutti_task_set* made_set(const Make& make) noexcept {
  auto* set = made<tutti_task_set>(make);
  if (set != nullptr) guarded([&] { return set->names = set->value.tasks(), TUTTI_OK; });
  return set;
}

/// Frees a handle that may be the last on its runtime, whose held memory any thread may give back then.
template <class Handle>
void end(Handle* handle) noexcept {
  delete handle;
  internal::HeldMemory::give_back_abandoned();
}

std::string_view text_or_empty(const char* text) { return text == nullptr ? std::string_view{} : text; }

tutti_status predict_into(const tutti_batch* batch, const char* planner, int64_t* result,
                          Expected<Duration> (*predicted)(const Batch&, std::string_view)) noexcept {
  return guarded([&] {
    if (batch == nullptr) return refuse_null("the batch");
    if (result == nullptr) return refuse_null("the result");
    return finish(predicted(batch->value, text_or_empty(planner)), [&](Duration time) { *result = time.count(); });
  });
}

tutti_kernel_launch launch_of(const KernelLaunch& launch) {
  return {launch.input.data(),
          launch.input.size(),
          launch.output.data(),
          launch.output.size(),
          launch.parameters.data(),
          launch.parameters.size(),
          &launch};
}

void throw_unless_zero(int failure) {
  if (failure != 0) throw std::runtime_error("it returned " + std::to_string(failure));
}

Buffer buffer_of(const tutti_buffer* buffer) { return buffer == nullptr ? Buffer{} : buffer->value; }

StreamBinding binding_of(const tutti_stream_binding& binding) {
  const auto* parameters = static_cast<const std::byte*>(binding.parameters);
  return {buffer_of(binding.source), buffer_of(binding.destination), buffer_of(binding.kernel_input),
          buffer_of(binding.kernel_output),
          parameters == nullptr ? std::vector<std::byte>{}
                                : std::vector<std::byte>(parameters, parameters + binding.parameters_size)};
}

tutti_batch_result result_of(const BatchResult& result) {
  return {result.start.count(), result.finish.count(), result.overruns};
}

void* bytes_of(std::span<std::byte> bytes, size_t* size) {
  if (size != nullptr) *size = bytes.size();
  return bytes.empty() ? nullptr : bytes.data();
}

/// Memory of a kernel by its position in a list of its launch; null behind the last one.
template <class Buffers>
auto* memory_at(const tutti_kernel_launch* launch, Buffers KernelLaunch::*list, size_t position, size_t* size) {
  const auto* const users = launch == nullptr ? nullptr : static_cast<const KernelLaunch*>(launch->buffers);
  const bool is_there = users != nullptr && position < (users->*list).size();
  const auto bytes = is_there ? (users->*list)[position].bytes : decltype((users->*list)[position].bytes){};
  if (size != nullptr) *size = bytes.size();
  // Null ends the list, so a buffer without bytes has an address, too.
  static std::byte nothing{};
  return is_there && bytes.empty() ? &nothing : bytes.data();
}

/// @param error  keeps the sentence as long as the record is used
tutti_job_record c_record_of(const JobRecord& job, std::string& error) {
  if (job.error) error = job.error->text();
  return {job.task,
          job.index,
          job.arrival.count(),
          job.finish ? job.finish->count() : -1,
          job.deadline.count(),
          job.missed() ? 1 : 0,
          job.verdict.data(),
          job.task_name.c_str(),
          job.overwritten ? 1 : 0,
          job.reused_input ? 1 : 0,
          job.seen ? job.seen->count() : -1,
          job.error ? error.c_str() : nullptr};
}

TaskProgram program_of(const tutti_task_program& program) {
  const auto callback = [&](void (*function)(const tutti_job*, void*)) -> std::function<void(const Job&)> {
    if (function == nullptr) return {};
    return [function, user = program.user](const Job& job) {
      const tutti_job handle{job};
      function(&handle, user);
    };
  };
  TaskProgram made;
  made.on_ready = callback(program.on_ready);
  made.on_finished = callback(program.on_finished);
  const auto callback_at_end = [&](void (*function)(const tutti_job*, const tutti_job_record*,
                                                    void*)) -> std::function<void(const Job&, const JobRecord&)> {
    if (function == nullptr) return {};
    return [function, user = program.user](const Job& job, const JobRecord& record) {
      const tutti_job handle{job};
      std::string error;
      const tutti_job_record ended = c_record_of(record, error);
      function(&handle, &ended, user);
    };
  };
  made.on_missed = callback_at_end(program.on_missed);
  made.on_dropped = callback_at_end(program.on_dropped);
  made.on_failed = callback_at_end(program.on_failed);
  for (const tutti_slot& slot : std::span(program.memory, program.memory == nullptr ? 0 : program.memory_count))
    made.memory[std::string(text_or_empty(slot.buffer))].push_back({static_cast<std::byte*>(slot.data), slot.size});
  for (const tutti_task_ring& row : std::span(program.rings, program.rings == nullptr ? 0 : program.ring_count)) {
    if (row.ring == nullptr) throw std::invalid_argument("a buffer's ring is null; make one with tutti_ring_new");
    made.rings.emplace(std::string(text_or_empty(row.buffer)), row.ring->value);
  }
  if (program.on_start != nullptr) {
    made.on_start = [function = program.on_start, user = program.user](const KeptBuffers& buffers) {
      const tutti_kept_buffers handle{buffers};
      function(&handle, user);
    };
  }
  if (program.on_host_step != nullptr) {
    made.on_host_step = [function = program.on_host_step, user = program.user](const Job& job,
                                                                               HostStepName step) -> Expected<void> {
      const tutti_job handle{job, step.name};
      const int failure = function(&handle, step.position, user);
      if (failure == 0) return {};
      return tl::unexpected(Error{ErrorCode::Kernel, "a host step returned " + std::to_string(failure), {}});
    };
  }
  return made;
}

/// The number that C passed for an enumeration, which may be none of its values: C++ must not read it as one.
template <class Enum>
int number_of(const Enum& passed) {
  int number = 0;
  static_assert(sizeof passed == sizeof number);
  std::memcpy(&number, &passed, sizeof number);
  return number;
}

BackendKind kind_of(const tutti_backend& backend) {
  const int number = number_of(backend);
  if (number == TUTTI_SIMULATED) return BackendKind::Simulated;
  if (number == TUTTI_CUDA) return BackendKind::Cuda;
  throw std::invalid_argument("there is no backend " + std::to_string(number) + "; pass TUTTI_SIMULATED or TUTTI_CUDA");
}

RunOptions options_of(const tutti_run_options& options) {
  RunOptions made;
  made.backend.kind = kind_of(options.backend);
  if (options.jobs > 0) made.jobs = options.jobs;
  if (options.arrivals_before_ns > 0) made.arrivals_before = Duration{options.arrivals_before_ns};
  made.seed = options.seed;
  made.journal = text_or_empty(options.journal);
  made.journal_size = Bytes{options.journal_size};
  made.journal_files = options.journal_files;
  if (options.stop != nullptr) made.stop = &options.stop->value;
  for (size_t i = 0; options.triggers != nullptr && i < options.trigger_count; ++i) {
    const tutti_task_trigger& of_task = options.triggers[i];
    if (of_task.trigger == nullptr)
      throw std::invalid_argument("a task's trigger is null; make one with tutti_trigger_new");
    made.triggers[std::string(text_or_empty(of_task.task))] = of_task.trigger->value;
  }
  if (options.on_job_end != nullptr) {
    made.on_job_end = [function = options.on_job_end, user = options.user](const JobRecord& job) {
      std::string error;
      const tutti_job_record record = c_record_of(job, error);
      function(&record, user);
    };
  }
  return made;
}

TaskPrograms programs_of(const tutti_run_options& options) {
  TaskPrograms programs;
  for (size_t i = 0; options.programs != nullptr && i < options.program_count; ++i)
    programs[std::string(text_or_empty(options.programs[i].task))] = program_of(options.programs[i]);
  return programs;
}

Kernels kernels_of(const tutti_kernels* kernels) { return kernels == nullptr ? Kernels() : kernels->value; }

tutti_answer answer_of(Answer answer) { return static_cast<tutti_answer>(answer); }

tutti_run_summary summary_of(const RunRecord& record) {
  tutti_run_summary summary{record.jobs.size(), 0, 0, 0, record.interrupted ? 1 : 0};
  for (const JobRecord& job : record.jobs) {
    summary.missed += job.missed() ? 1 : 0;
    summary.failed += job.has_failed() ? 1 : 0;
    summary.over_bound += job.broken ? 1 : 0;
  }
  return summary;
}

/// Ends a run: calls back with its changes, and writes its summary.
tutti_status finish_run(const Expected<RunRecord>& record, const tutti_run_options& options,
                        tutti_run_summary* summary) {
  if (record && record->fatal) return status_of(*record->fatal);
  return finish(record, [&](const RunRecord& ended) {
    for (const ChangeRecord& change : ended.changes) {
      if (options.on_change == nullptr) break;
      const tutti_change_record answered{change.change.at.count(),    change.change.leaves.c_str(),
                                         change.change.comes.c_str(), change.answered.count(),
                                         answer_of(change.answer),    change.reason.c_str()};
      options.on_change(&answered, options.user);
    }
    if (summary != nullptr) *summary = summary_of(ended);
  });
}

}  // namespace
}  // namespace tutti

const char* tutti_version(void) { return TUTTI_VERSION; }
const char* tutti_last_error(void) { return tutti::last_error.c_str(); }

tutti_machine* tutti_machine_load(const char* path) {
  return tutti::made<tutti_machine>([&] { return tutti::Machine::load(std::string(tutti::text_or_empty(path))); });
}
tutti_machine* tutti_machine_parse(const char* text) {
  return tutti::made<tutti_machine>([&] { return tutti::Machine::parse(tutti::text_or_empty(text)); });
}
void tutti_machine_free(tutti_machine* machine) { delete machine; }

tutti_batch* tutti_batch_load(const char* path) {
  return tutti::made<tutti_batch>([&] { return tutti::Batch::load(std::string(tutti::text_or_empty(path))); });
}
tutti_batch* tutti_batch_parse(const tutti_machine* machine, const char* text) {
  if (machine == nullptr) return tutti::refuse_null("the machine"), nullptr;
  return tutti::made<tutti_batch>([&] { return tutti::Batch::parse(machine->value, tutti::text_or_empty(text)); });
}
tutti_machine* tutti_batch_machine(const tutti_batch* batch) {
  if (batch == nullptr) return tutti::refuse_null("the batch"), nullptr;
  return tutti::made<tutti_machine>([&] { return batch->value.machine(); });
}
void tutti_batch_free(tutti_batch* batch) { delete batch; }

const char* tutti_planner_name(size_t planner) {
  const auto& all = tutti::internal::planners();
  return planner < all.size() ? all[planner].name.data() : nullptr;
}
tutti_status tutti_predict_batch_latency(const tutti_batch* batch, const char* planner, int64_t* latency_ns) {
  return tutti::predict_into(batch, planner, latency_ns, tutti::predictBatchLatency);
}
tutti_status tutti_predict_worst_batch_latency(const tutti_batch* batch, const char* planner, int64_t* latest_ns) {
  return tutti::predict_into(batch, planner, latest_ns, tutti::predictWorstBatchLatency);
}

tutti_kernels* tutti_kernels_new(void) {
  return tutti::made<tutti_kernels>([] { return tutti::Expected<tutti::Kernels>(tutti::Kernels()); });
}
tutti_status tutti_kernels_add(tutti_kernels* kernels, const char* name, tutti_host_kernel host,
                               tutti_device_kernel device, void* user) {
  return tutti::guarded([&] {
    if (kernels == nullptr) return tutti::refuse_null("the kernel table");
    tutti::HostKernel on_host;
    tutti::DeviceKernel on_device;
    if (host != nullptr) {
      on_host = [host, user](const tutti::KernelLaunch& launch) {
        const tutti_kernel_launch arguments = tutti::launch_of(launch);
        tutti::throw_unless_zero(host(&arguments, user));
      };
    }
    if (device != nullptr) {
      on_device = [device, user](const tutti::KernelLaunch& launch, tutti::DeviceStream stream) {
        const tutti_kernel_launch arguments = tutti::launch_of(launch);
        tutti::throw_unless_zero(device(&arguments, stream, user));
      };
    }
    auto added = kernels->value.add(std::string(tutti::text_or_empty(name)), std::move(on_host), std::move(on_device));
    return added ? TUTTI_OK : tutti::status_of(added.error());
  });
}
void tutti_kernels_free(tutti_kernels* kernels) { delete kernels; }

tutti_trigger* tutti_trigger_new(void) {
  return tutti::made<tutti_trigger>([] { return tutti::Expected<tutti::Trigger>(tutti::Trigger()); });
}
void tutti_trigger_fire(const tutti_trigger* trigger) {
  if (trigger != nullptr) trigger->value.fire();
}
void tutti_trigger_free(tutti_trigger* trigger) { delete trigger; }

tutti_shared_trigger* tutti_shared_trigger_open(const char* name) {
  return tutti::made<tutti_shared_trigger>([&] { return tutti::SharedTrigger::open(tutti::text_or_empty(name)); });
}
tutti_status tutti_shared_trigger_fire(const tutti_shared_trigger* trigger) {
  return tutti::guarded([&] {
    if (trigger == nullptr) return tutti::refuse_null("the trigger");
    const auto fired = trigger->value.fire();
    return fired ? TUTTI_OK : tutti::status_of(fired.error());
  });
}
void tutti_shared_trigger_free(tutti_shared_trigger* trigger) { delete trigger; }

tutti_ring* tutti_ring_new(void* const* slots, size_t count, size_t size, void (*on_free)(size_t slot, void* user),
                           void* user) {
  return tutti::made<tutti_ring>([&] {
    std::vector<std::span<std::byte>> memory;
    for (size_t i = 0; slots != nullptr && i < count; ++i) memory.emplace_back(static_cast<std::byte*>(slots[i]), size);
    tutti::Ring::OnFree call;
    if (on_free != nullptr) call = [=](size_t slot) { on_free(slot, user); };
    return tutti::Ring::make(std::move(memory), std::move(call));
  });
}
int64_t tutti_ring_begin(const tutti_ring* ring) {
  const auto slot = ring == nullptr ? std::nullopt : ring->value.begin();
  return slot ? static_cast<int64_t>(*slot) : -1;
}
tutti_status tutti_ring_begin_slot(const tutti_ring* ring, size_t slot) {
  return tutti::guarded([&] {
    if (ring == nullptr) return tutti::refuse_null("the ring");
    const auto begun = ring->value.begin(slot);
    return begun ? TUTTI_OK : tutti::status_of(begun.error());
  });
}
tutti_status tutti_ring_complete(const tutti_ring* ring, size_t slot) {
  return tutti::guarded([&] {
    if (ring == nullptr) return tutti::refuse_null("the ring");
    const auto complete = ring->value.complete(slot);
    return complete ? TUTTI_OK : tutti::status_of(complete.error());
  });
}
int tutti_ring_is_free(const tutti_ring* ring, size_t slot) {
  return ring != nullptr && ring->value.is_free(slot) ? 1 : 0;
}
void tutti_ring_free(tutti_ring* ring) { delete ring; }

tutti_runtime* tutti_runtime_open(const tutti_machine* machine, const tutti_kernels* kernels, tutti_backend backend,
                                  const char* planner) {
  if (machine == nullptr) return tutti::refuse_null("the machine"), nullptr;
  return tutti::made<tutti_runtime>([&] {
    tutti::BackendOptions options;
    options.kind = tutti::kind_of(backend);
    return tutti::Runtime::open(machine->value, tutti::kernels_of(kernels), options, tutti::text_or_empty(planner));
  });
}
void tutti_runtime_free(tutti_runtime* runtime) { tutti::end(runtime); }

tutti_buffer* tutti_buffer_allocate(tutti_runtime* runtime, const char* place, int64_t size) {
  if (runtime == nullptr) return tutti::refuse_null("the runtime"), nullptr;
  return tutti::made<tutti_buffer>(
      [&] { return runtime->value.allocate(tutti::text_or_empty(place), tutti::Bytes{size}); });
}
tutti_buffer* tutti_buffer_wrap(tutti_runtime* runtime, const char* place, void* memory, int64_t size,
                                void (*released)(void* user), void* user) {
  if (runtime == nullptr) return tutti::refuse_null("the runtime"), nullptr;
  std::shared_ptr<tutti::Released> owner;
  tutti_buffer* const made = tutti::made<tutti_buffer>([&]() -> tutti::Expected<tutti::Buffer> {
    if (size < 0) return tutti::internal::invalid_input("a buffer has 0 bytes or more");
    owner = std::make_shared<tutti::Released>();
    return runtime->value.wrap(tutti::text_or_empty(place),
                               {static_cast<std::byte*>(memory), static_cast<std::size_t>(size)}, owner);
  });
  if (made == nullptr) return nullptr;
  owner->call = released;
  owner->user = user;
  return made;
}
tutti_buffer* tutti_buffer_wrap_tensor(tutti_runtime* runtime, const char* place, DLManagedTensorVersioned* tensor) {
  if (runtime == nullptr) return tutti::refuse_null("the runtime"), nullptr;
  return tutti::made<tutti_buffer>([&] { return runtime->value.wrap_tensor(tutti::text_or_empty(place), tensor); });
}
DLManagedTensorVersioned* tutti_buffer_lend_tensor(tutti_runtime* runtime, const tutti_buffer* buffer) {
  if (runtime == nullptr || buffer == nullptr) return tutti::refuse_null("the runtime or the buffer"), nullptr;
  DLManagedTensorVersioned* tensor = nullptr;
  tutti::guarded([&] {
    return tutti::finish(runtime->value.lend_tensor(buffer->value),
                         [&](DLManagedTensorVersioned* lent) { tensor = lent; });
  });
  return tensor;
}
void* tutti_buffer_bytes(const tutti_buffer* buffer) {
  return buffer == nullptr ? nullptr : tutti::bytes_of(buffer->value.bytes(), nullptr);
}
int64_t tutti_buffer_size(const tutti_buffer* buffer) { return buffer == nullptr ? 0 : buffer->value.size().count; }
void tutti_buffer_free(tutti_buffer* buffer) { tutti::end(buffer); }

tutti_prepared_batch* tutti_prepare(tutti_runtime* runtime, const tutti_batch* batch,
                                    const tutti_stream_binding* bindings, size_t count, int in_flight) {
  if (runtime == nullptr) return tutti::refuse_null("the runtime"), nullptr;
  if (batch == nullptr) return tutti::refuse_null("the batch"), nullptr;
  return tutti::made<tutti_prepared_batch>([&]() -> tutti::Expected<tutti::PreparedBatch> {
    if (bindings == nullptr && count == 0) {
      return runtime->value.allocate_for(batch->value).and_then([&](std::vector<tutti::StreamBinding>&& scratch) {
        return runtime->value.prepare(batch->value, std::move(scratch), in_flight);
      });
    }
    const size_t bound = bindings == nullptr ? 0 : count;
    const auto& streams = tutti::internal::Handles::state(batch->value);
    if (auto ok = tutti::internal::check_number_of_bindings(*streams, bound); !ok) return tl::unexpected(ok.error());
    std::vector<tutti::StreamBinding> own;
    for (size_t i = 0; i < bound; ++i) own.push_back(tutti::binding_of(bindings[i]));
    return runtime->value.prepare(batch->value, std::move(own), in_flight);
  });
}
void tutti_prepared_batch_free(tutti_prepared_batch* batch) { tutti::end(batch); }

tutti_status tutti_batch_op(tutti_prepared_batch* batch, tutti_batch_result* result) {
  return tutti::guarded([&] {
    if (batch == nullptr) return tutti::refuse_null("the prepared batch");
    return tutti::finish(tutti::batchOp(batch->value), [&](const tutti::BatchResult& ended) {
      if (result != nullptr) *result = tutti::result_of(ended);
    });
  });
}
tutti_batch_run* tutti_batch_op_async(tutti_prepared_batch* batch) {
  if (batch == nullptr) return tutti::refuse_null("the prepared batch"), nullptr;
  return tutti::made<tutti_batch_run>([&] { return tutti::batchOpAsync(batch->value); });
}
tutti_status tutti_batch_op_query(tutti_batch_run* run, int* finished) {
  return tutti::guarded([&] {
    if (run == nullptr) return tutti::refuse_null("the run");
    if (finished == nullptr) return tutti::refuse_null("the result");
    return tutti::finish(tutti::batchOpQuery(run->value), [&](bool is_finished) { *finished = is_finished ? 1 : 0; });
  });
}
tutti_status tutti_batch_op_synchronize(tutti_batch_run* run, tutti_batch_result* result) {
  return tutti::guarded([&] {
    if (run == nullptr) return tutti::refuse_null("the run");
    return tutti::finish(tutti::batchOpSynchronize(run->value), [&](const tutti::BatchResult& ended) {
      if (result != nullptr) *result = tutti::result_of(ended);
    });
  });
}
void tutti_batch_run_free(tutti_batch_run* run) { tutti::end(run); }

tutti_task_set* tutti_task_set_load(const char* path) {
  return tutti::made_set([&] { return tutti::TaskSet::load(std::string(tutti::text_or_empty(path))); });
}
tutti_task_set* tutti_task_set_parse(const tutti_machine* machine, const char* text) {
  if (machine == nullptr) return tutti::refuse_null("the machine"), nullptr;
  return tutti::made_set([&] { return tutti::TaskSet::parse(machine->value, tutti::text_or_empty(text)); });
}
size_t tutti_task_set_size(const tutti_task_set* set) { return set == nullptr ? 0 : set->names.size(); }
const char* tutti_task_set_name(const tutti_task_set* set, size_t task) {
  return task < tutti_task_set_size(set) ? set->names[task].c_str() : nullptr;
}
void tutti_task_set_free(tutti_task_set* set) { delete set; }

tutti_verdict* tutti_check(const tutti_task_set* set, const char* planner) {
  if (set == nullptr) return tutti::refuse_null("the task set"), nullptr;
  return tutti::made<tutti_verdict>([&] { return tutti::check(set->value, tutti::text_or_empty(planner)); });
}
tutti_answer tutti_verdict_answer(const tutti_verdict* verdict) {
  return verdict == nullptr ? TUTTI_UNKNOWN : tutti::answer_of(verdict->value.answer);
}
const char* tutti_verdict_reason(const tutti_verdict* verdict, size_t reason) {
  return verdict != nullptr && reason < verdict->value.reasons.size() ? verdict->value.reasons[reason].c_str()
                                                                      : nullptr;
}
tutti_status tutti_verdict_task(const tutti_verdict* verdict, size_t task, tutti_task_verdict* result) {
  return tutti::guarded([&] {
    if (verdict == nullptr) return tutti::refuse_null("the verdict");
    if (result == nullptr) return tutti::refuse_null("the result");
    if (task >= verdict->value.tasks.size())
      throw std::invalid_argument("the verdict has no task at this position; pass one below the size of the set");
    const tutti::TaskVerdict& found = verdict->value.tasks[task];
    *result = {found.wcet.count(), found.deadline.count(), found.worst_response ? found.worst_response->count() : -1};
    return TUTTI_OK;
  });
}
tutti_status tutti_verdict_worst_response(const tutti_verdict* verdict, size_t task, int64_t* response_ns) {
  if (verdict != nullptr && response_ns == nullptr) return tutti::refuse_null("the result");
  tutti_task_verdict found{};
  const tutti_status status = tutti_verdict_task(verdict, task, &found);
  if (status == TUTTI_OK) *response_ns = found.worst_response_ns;
  return status;
}
void tutti_verdict_free(tutti_verdict* verdict) { delete verdict; }

tutti_status tutti_remedies(const tutti_task_set* set, const char* planner,
                            void (*on_remedy)(const tutti_remedy* remedy, void* user), void* user) {
  return tutti::guarded([&] {
    if (set == nullptr) return tutti::refuse_null("the task set");
    if (on_remedy == nullptr) return tutti::refuse_null("the function for remedies");
    return tutti::finish(tutti::remedies(set->value, tutti::text_or_empty(planner)),
                         [&](const std::vector<tutti::Remedy>& found) {
                           for (const tutti::Remedy& one : found) {
                             const tutti_remedy remedy{one.name.c_str(), one.from.c_str(), one.to.c_str()};
                             on_remedy(&remedy, user);
                           }
                         });
  });
}

tutti_status tutti_capacity(const tutti_task_set* set, tutti_tunable tunable, const char* name, const char* planner,
                            int64_t* limit) {
  return tutti::guarded([&] {
    if (set == nullptr) return tutti::refuse_null("the task set");
    if (limit == nullptr) return tutti::refuse_null("the result");
    const int number = tutti::number_of(tunable);
    if (number < TUTTI_PARAMETER || number > TUTTI_WCET)
      throw std::invalid_argument("there is no tunable of this number; pass one of tutti_tunable");
    return tutti::finish(tutti::capacity(set->value, static_cast<tutti::Tunable>(number), tutti::text_or_empty(name),
                                         tutti::text_or_empty(planner)),
                         [&](const tutti::Capacity& found) { *limit = found.limit.value_or(-1); });
  });
}

size_t tutti_job_task(const tutti_job* job) { return job == nullptr ? 0 : job->value.task; }
uint64_t tutti_job_index(const tutti_job* job) { return job == nullptr ? 0 : job->value.index; }
const char* tutti_job_step(const tutti_job* job) {
  return job == nullptr || job->step.empty() ? nullptr : job->step.data();
}
int tutti_job_overwritten(const tutti_job* job) { return job != nullptr && job->value.overwritten() ? 1 : 0; }
void* tutti_job_source(const tutti_job* job, size_t batch, size_t stream, size_t* size) {
  return tutti::bytes_of(job == nullptr ? std::span<std::byte>{} : job->value.source(batch, stream), size);
}
void* tutti_job_destination(const tutti_job* job, size_t batch, size_t stream, size_t* size) {
  return tutti::bytes_of(job == nullptr ? std::span<std::byte>{} : job->value.destination(batch, stream), size);
}
void* tutti_job_buffer(const tutti_job* job, const char* name, size_t* size) {
  return tutti::bytes_of(job == nullptr ? std::span<std::byte>{} : job->value.buffer(tutti::text_or_empty(name)), size);
}
tutti_status tutti_job_slot(const tutti_job* job, const char* buffer, tutti_ring_slot* result) {
  return tutti::guarded([&] {
    if (job == nullptr) return tutti::refuse_null("the job");
    if (result == nullptr) return tutti::refuse_null("the result");
    const auto slot = job->value.slot(tutti::text_or_empty(buffer));
    if (!slot) throw std::invalid_argument("the job has no slot for that buffer; name one that lies in a ring");
    *result = {slot->slot, slot->number, slot->is_new ? 1 : 0};
    return TUTTI_OK;
  });
}
void* tutti_kept_buffer(const tutti_kept_buffers* buffers, const char* name, size_t* size) {
  return tutti::bytes_of(
      buffers == nullptr ? std::span<std::byte>{} : buffers->value.buffer(tutti::text_or_empty(name)), size);
}

const void* tutti_launch_read(const tutti_kernel_launch* launch, size_t position, size_t* size) {
  return tutti::memory_at(launch, &tutti::KernelLaunch::reads, position, size);
}
void* tutti_launch_written(const tutti_kernel_launch* launch, size_t position, size_t* size) {
  return tutti::memory_at(launch, &tutti::KernelLaunch::writes, position, size);
}

tutti_hold* tutti_hold_new(const void* address) {
  if (address == nullptr) return tutti::refuse_null("the address"), nullptr;
  tutti_hold* made = nullptr;
  tutti::guarded([&] { return made = new tutti_hold(address), TUTTI_OK; });
  return made;
}
void tutti_hold_free(tutti_hold* hold) { delete hold; }

tutti_stop* tutti_stop_new(void) {
  tutti_stop* made = nullptr;
  tutti::guarded([&] { return made = new tutti_stop, TUTTI_OK; });
  return made;
}
void tutti_stop_request(tutti_stop* stop) {
  if (stop != nullptr) stop->value = true;
}
void tutti_stop_free(tutti_stop* stop) { delete stop; }

tutti_status tutti_run(const tutti_verdict* verdict, const tutti_run_options* options, tutti_run_summary* summary) {
  return tutti::guarded([&] {
    if (verdict == nullptr) return tutti::refuse_null("the verdict");
    if (!verdict->value.admitted)
      return tutti::status_of({tutti::ErrorCode::InvalidInput,
                               "the deadlines of the set are not guaranteed, so it is not run; see the reasons",
                               {}});
    const tutti_run_options chosen = options == nullptr ? tutti_run_options{} : *options;
    const auto record = tutti::run(*verdict->value.admitted, tutti::kernels_of(chosen.kernels),
                                   tutti::programs_of(chosen), tutti::options_of(chosen));
    return tutti::finish_run(record, chosen, summary);
  });
}

tutti_change_requests* tutti_change_requests_new(const tutti_task_set* set) {
  if (set == nullptr) return tutti::refuse_null("the task set"), nullptr;
  return tutti::made<tutti_change_requests>([&] { return tutti::ChangeRequests::make(set->value); });
}
tutti_status tutti_change_requests_post(tutti_change_requests* requests, int64_t at_ns, const char* leaves,
                                        const char* comes) {
  return tutti::guarded([&] {
    if (requests == nullptr) return tutti::refuse_null("the request list");
    const auto posted = requests->value.post(
        {tutti::Duration{at_ns}, std::string(tutti::text_or_empty(leaves)), std::string(tutti::text_or_empty(comes))});
    return posted ? TUTTI_OK : tutti::status_of(posted.error());
  });
}
void tutti_change_requests_free(tutti_change_requests* requests) { delete requests; }

tutti_status tutti_run_changing(const tutti_change_requests* requests, const char* const* running, size_t count,
                                const char* planner, const tutti_run_options* options, tutti_run_summary* summary) {
  return tutti::guarded([&] {
    if (requests == nullptr) return tutti::refuse_null("the request list");
    const tutti_run_options chosen = options == nullptr ? tutti_run_options{} : *options;
    std::vector<std::string> names;
    for (size_t i = 0; running != nullptr && i < count; ++i) names.emplace_back(tutti::text_or_empty(running[i]));
    const auto record =
        tutti::run_changing(requests->value, names, tutti::kernels_of(chosen.kernels), tutti::programs_of(chosen),
                            tutti::options_of(chosen), tutti::text_or_empty(planner));
    return tutti::finish_run(record, chosen, summary);
  });
}

tutti_task_set* tutti_profile(const tutti_task_set* set, const tutti_run_options* options, int repeats, double margin) {
  if (set == nullptr) return tutti::refuse_null("the task set"), nullptr;
  tutti_run_options chosen{};
  chosen.backend = TUTTI_CUDA;
  if (options != nullptr) chosen = *options;
  return tutti::made_set([&] {
    const tutti::ProfileOptions profile_options{tutti::options_of(chosen).backend, repeats, margin, chosen.seed};
    return tutti::profile(set->value, tutti::kernels_of(chosen.kernels), tutti::programs_of(chosen), profile_options)
        .and_then([&](const std::vector<tutti::KernelTimes>& times) { return tutti::with_times(set->value, times); });
  });
}
