#include "runtime/api/user_program.hpp"

#include <algorithm>

#include "runtime/api/handles.hpp"

namespace tutti {

std::span<std::byte> Job::source(std::size_t batch, std::size_t stream) const {
  return memory_ != nullptr ? memory_->ends(batch, stream).source : std::span<std::byte>{};
}

std::span<std::byte> Job::destination(std::size_t batch, std::size_t stream) const {
  return memory_ != nullptr ? memory_->ends(batch, stream).destination : std::span<std::byte>{};
}

std::span<std::byte> Job::buffer(std::string_view name) const {
  return memory_ != nullptr ? memory_->buffer(name) : std::span<std::byte>{};
}

std::span<std::byte> KeptBuffers::buffer(std::string_view name) const {
  return memory_ != nullptr ? memory_->buffer(name) : std::span<std::byte>{};
}

}  // namespace tutti

namespace tutti::internal {

Expected<void> UserProgram::make_sets(DeviceBackend& backend, std::size_t sets) {
  sets_ = sets;
  return buffers_.make_sets(backend, sets);
}

/// Without those that lie in buffers of other tasks.
std::vector<JobMemory::Ends> UserProgram::own_ends(const Batch& operation, std::vector<JobMemory::Ends> ends) const {
  const auto is_own = [&](BufferId buffer) { return task_->buffers[buffer.index()].owner().empty(); };
  for (std::size_t s = 0; s < ends.size(); ++s)
    if (const auto& copied = operation.streams()[s].copied; copied && !is_own(copied->from)) ends[s].source = {};
  return ends;
}

void UserProgram::sets_are_made(std::size_t choices) {
  choices_.clear();
  own_.clear();
  const NamedMemory& named = buffers_.named();
  for (std::size_t choice = 0; choice < choices; ++choice) {
    JobMemory& memory = choices_.emplace_back();
    if (named.is_used()) memory.name(named.of_host(choice));
  }
  const bool reads_others = choices > sets_;
  for (std::size_t set = 0; reads_others && set < sets_; ++set) own_.emplace_back().name(named.own_of_host(set));
}

Expected<std::vector<StreamBinding>> UserProgram::bind(DeviceBackend& backend, const Batch& operation,
                                                       std::size_t batch, std::size_t choice) {
  auto bindings = buffers_.bind(backend, operation, batch, choice);
  if (!bindings) return bindings;
  std::vector<JobMemory::Ends> ends;
  for (const StreamBinding& binding : *bindings)
    ends.push_back({host_bytes(binding.source), host_bytes(binding.destination)});
  if (choice < own_.size()) own_[choice].add(own_ends(operation, ends));
  choices_[choice].add(std::move(ends));
  if (users_ == nullptr || !users_->parameters) return bindings;
  const auto ask = [&] {
    for (std::size_t s = 0; s < bindings->size(); ++s) {
      (*bindings)[s].parameters = users_->parameters(batch, s);
      for (CallBinding& call : (*bindings)[s].calls) call.parameters = (*bindings)[s].parameters;
    }
  };
  if (auto ok = guard_->call("parameters", task_->name, ask); !ok) return tl::unexpected(std::move(ok.error()));
  return bindings;
}

Expected<void> UserProgram::on_start(Executor& executor) {
  if (users_ == nullptr || !users_->on_start) return buffers_.on_start(executor);
  return buffers_.named().fill_kept(executor, [&](std::span<const HostBytes> kept) {
    JobMemory memory;
    memory.name({kept.begin(), kept.end()});
    KeptBuffers buffers;
    Handles::memory(buffers) = &memory;
    return guard_->call("on_start", task_->name, [&] { users_->on_start(buffers); });
  });
}

void UserProgram::on_ready(const Job& job) {
  if (users_ == nullptr || !users_->on_ready) return;
  guard_->call_or_stop("on_ready", task_->name, [&] { users_->on_ready(job_of(job)); });
}

Expected<void> UserProgram::on_host_step(Job& job, std::size_t step) {
  if (users_ == nullptr || !users_->on_host_step) return TaskProgram::on_host_step(job, step);
  Expected<void> done;
  const HostStepName name{step, std::get<HostStep>(task_->steps[step]).name};
  auto called = guard_->call("on_host_step", task_->name, [&] { done = users_->on_host_step(job_of(job), name); });
  return called ? done : called;
}

void UserProgram::on_finished(const Job& job) {
  if (users_ == nullptr || !users_->on_finished) return;
  guard_->call_or_stop("on_finished", task_->name, [&] { users_->on_finished(job_of(job)); });
}

bool UserProgram::fills_input() const { return users_ != nullptr && users_->on_ready; }

bool UserProgram::hears_of_end() const {
  return users_ != nullptr && (users_->on_finished || users_->on_missed || users_->on_dropped || users_->on_failed);
}

void UserProgram::on_missed(const Job& job, const JobRecord& record) {
  if (users_ == nullptr || !users_->on_missed) return;
  guard_->call_or_stop("on_missed", task_->name, [&] { users_->on_missed(job_of(job), users_record(record)); });
}

void UserProgram::on_dropped(const Job& job, const JobRecord& record) {
  if (users_ == nullptr || !users_->on_dropped) return;
  tutti::Job without_buffers = job_of(job);
  Handles::memory(without_buffers) = nullptr;
  guard_->call_or_stop("on_dropped", task_->name, [&] { users_->on_dropped(without_buffers, users_record(record)); });
}

void UserProgram::on_failed(const Job& job, const JobRecord& record) {
  if (users_ == nullptr || !users_->on_failed) return;
  guard_->call_or_stop("on_failed", task_->name, [&] { users_->on_failed(job_of(job), users_record(record)); });
}

/// Members count tasks of a partition; users know those of the set.
tutti::JobRecord UserProgram::users_record(const JobRecord& record) const {
  tutti::JobRecord made = record_of(record, *task_);
  made.task = position_;
  if (made.broken) made.broken->by.reset();
  return made;
}

tutti::JobRecord record_of(const JobRecord& job, const Task& task) {
  tutti::JobRecord record{job.task.index(), job.index, job.arrival,  job.start,    job.finish,
                          job.deadline,     job.error, job.overruns, job.programs, {}};
  if (job.broken) {
    record.broken = tutti::BrokenBound{to_string(job.broken->cause), job.broken->excess};
    if (job.broken->by) record.broken->by = job.broken->by->index();
  }
  record.verdict = to_string(job.verdict);
  record.task_name = task.name;
  return record;
}

tutti::Job UserProgram::job_of(const Job& job) const {
  tutti::Job users;
  users.task = position_;
  users.index = job.index;
  users.arrival = job.arrival;
  users.deadline = job.deadline;
  if (job.choice)
    Handles::memory(users) = &choices_[*job.choice];
  else if (job.buffer_set < own_.size())
    Handles::memory(users) = &own_[job.buffer_set];
  return users;
}

std::span<std::byte> UserProgram::host_bytes(const BufferView& buffer) const {
  if (buffer.data == nullptr || machine_->vertex(buffer.where).kind != VertexKind::Memory) return {};
  return buffer.bytes();
}

Expected<void> check_programs(const TaskSet& set, const TaskPrograms& programs) {
  for (const auto& [name, program] : programs) {
    const auto task = std::ranges::find(set.tasks, name, &Task::name);
    if (task == set.tasks.end())
      return invalid_input(
          fmt::format("there is a program for task '{:.80}', which the set has not; name one of its tasks", name));
    for (const auto& [buffer, slots] : program.memory)
      if (buffer.find('.') != std::string::npos ||
          std::ranges::find(task->buffers, buffer, &NamedBuffer::name) == task->buffers.end())
        return invalid_input(
            fmt::format("there is memory for buffer '{:.80}', which task '{}' has not; name one of its "
                        "'buffers'",
                        buffer, name));
  }
  return {};
}

UserPrograms::UserPrograms(const TaskSet& set, const TaskPrograms& programs, std::uint64_t seed, CallbackGuard& guard) {
  for (std::size_t i = 0; i < set.tasks.size(); ++i) {
    const auto users = programs.find(set.tasks[i].name);
    programs_.push_back(std::make_unique<UserProgram>(*set.machine, set.tasks[i], i, seed,
                                                      users == programs.end() ? nullptr : &users->second, guard));
    table_.push_back(programs_.back().get());
  }
}

}  // namespace tutti::internal
