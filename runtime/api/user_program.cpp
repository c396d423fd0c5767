#include "runtime/api/user_program.hpp"

#include <algorithm>
#include <functional>

#include "runtime/api/handles.hpp"
#include "sched/tasks/buffer_flow.hpp"
#include "sched/tasks/shared_buffers.hpp"

namespace tutti {

std::span<std::byte> Job::source(std::size_t batch, std::size_t stream) const {
  return memory_ != nullptr ? memory_->source(batch, stream) : std::span<std::byte>{};
}

std::span<std::byte> Job::destination(std::size_t batch, std::size_t stream) const {
  return memory_ != nullptr ? memory_->destination(batch, stream) : std::span<std::byte>{};
}

std::span<std::byte> Job::buffer(std::string_view name) const {
  return memory_ != nullptr ? memory_->buffer(name) : std::span<std::byte>{};
}

std::optional<RingSlot> Job::slot(std::string_view buffer) const {
  const auto ring = memory_ != nullptr ? memory_->ring(buffer) : std::nullopt;
  if (!ring || *ring >= slots_.size()) return std::nullopt;
  const internal::HeldSlot& held = slots_[*ring];
  return RingSlot{held.slot(), held.number(), held.is_new()};
}

bool Job::overwritten() const { return internal::is_overwritten(taken_, whole_until_); }

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
    memory.lie_in(named.rings());
    if (!named.is_used()) continue;
    memory.name(named.of_host(choice));
    memory.watch(positions_);
  }
  const std::size_t own_choices = named.is_used() ? named.own_choices() : sets_;
  for (std::size_t own = 0; choices > own_choices && own < own_choices; ++own) {
    JobMemory& memory = own_.emplace_back();
    memory.name(named.own_of_host(own));
    memory.lie_in(named.rings());
    memory.watch(positions_);
  }
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
  const auto tells = [](const auto& row) { return row.second->tells(); };
  if (std::ranges::any_of(buffers_.named().rings(), tells)) return true;
  return users_ != nullptr && (users_->on_finished || users_->on_missed || users_->on_dropped || users_->on_failed);
}

bool UserProgram::is_reached() const { return users_ != nullptr || hears_of_end(); }

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
  record.overwritten = job.overwritten;
  record.reused_input = job.reused_input;
  record.seen = job.seen;
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
  else if (job.own_choice < own_.size())
    Handles::memory(users) = &own_[job.own_choice];
  Handles::slots(users) = job.slots;
  Handles::watch(users, job.taken, job.whole_until);
  return users;
}

std::optional<std::string> UserProgram::note_on_positions() const {
  const auto call = positions_.first();
  if (!call) return std::nullopt;
  const CommandStream& stream = batches_of(*task_)[call->batch]->streams()[call->stream];
  if (!stream.copied) return std::nullopt;
  const BufferId buffer = call->is_source ? stream.copied->from : stream.copied->to;
  return fmt::format(
      "the program of task '{}' calls job.{}({}, {}), by position, and its file names the buffers: call "
      "job.buffer(\"{}\"); positions stay for one version",
      task_->name, call->is_source ? "source" : "destination", call->batch, call->stream,
      task_->buffers[buffer.index()].name);
}

std::span<std::byte> UserProgram::host_bytes(const BufferView& buffer) const {
  if (buffer.data == nullptr || machine_->vertex(buffer.where).kind != VertexKind::Memory) return {};
  return buffer.bytes();
}

namespace {

/// Why jobs of a task cannot have the newest slot of a ring; empty where they can.
std::string refusal_of(const TaskSet& set, const Task& task, const std::string& name) {
  const auto found = std::ranges::find(task.buffers, name, &NamedBuffer::name);
  if (found == task.buffers.end() || !found->owner().empty())
    return "the task has no buffer of that name; name one of its 'buffers'";
  if (found->is_kept) return "a kept buffer is one for all jobs; leave 'keep' out";
  if (slots_of(task) > 0) return "jobs of a task with 'slots' take all buffers in turn; leave 'slots' out";
  if (uses_of(task)[static_cast<std::size_t>(found - task.buffers.begin())].is_written)
    return "jobs write it, and a slot may be that of several jobs; let them write another buffer";
  const std::string shared = fmt::format("{}.{}", task.name, name);
  for (const Task& other : set.tasks)
    if (std::ranges::find(other.buffers, shared, &NamedBuffer::name) != other.buffers.end())
      return fmt::format("task '{}' reads it; give that task a ring of its own", other.name);
  return "";
}

/// That rings suffice for the jobs that can be alive.
Expected<void> check_rings(const TaskSet& set, const Task& task, const tutti::TaskProgram& program) {
  if (program.rings.empty()) return {};
  const std::int64_t alive = jobs_alive(task.period, task.deadline, task.jitter);
  std::int64_t choices = alive;
  for (const auto& [name, ring] : program.rings) {
    const auto refuse = [&](std::string_view why) {
      return invalid_input(fmt::format("the ring for buffer '{:.80}' of task '{}': {}", name, task.name, why));
    };
    const std::shared_ptr<SlotRing>& state = Handles::state(ring);
    if (!state) return refuse("its handle is empty; use the one that it was moved to");
    const auto slots = static_cast<std::int64_t>(state->count());
    if (const std::string why = refusal_of(set, task, name); !why.empty()) return refuse(why);
    if (program.memory.contains(name))
      return refuse("the program has memory for the buffer as well; give one of the two");
    if (slots < alive || slots - alive < 2)
      return refuse(
          fmt::format("it has {} slots, and {} jobs can be alive; give {} or more: one for each job, the newest "
                      "complete one, and one to write to",
                      slots, alive, alive + 2));
    if (choices > kMostChoices / slots)
      return refuse(
          fmt::format("a job can have more than {} combinations of buffers and slots; give fewer slots, or let "
                      "fewer jobs be alive",
                      kMostChoices));
    choices *= slots;
  }
  return {};
}

/// That jobs which overlap do not write to the same bytes: slots that they only read may share memory.
/// @pre the task has the buffer
Expected<void> check_slots(const Task& task, const std::string& buffer, std::vector<std::span<std::byte>> slots) {
  const auto position = std::ranges::find(task.buffers, buffer, &NamedBuffer::name) - task.buffers.begin();
  if (!uses_of(task)[static_cast<std::size_t>(position)].is_written) return {};
  std::ranges::sort(slots, std::less<>{}, [](std::span<std::byte> slot) { return slot.data(); });
  for (std::size_t i = 1; i < slots.size(); ++i)
    if (slots[i].data() < slots[i - 1].data() + slots[i - 1].size())
      return invalid_input(
          fmt::format("jobs write buffer '{:.80}' of task '{}', and two of its slots have memory in common; give each "
                      "slot its own",
                      buffer, task.name));
  return {};
}

/// Rings in the form of the run. @pre each is the ring of one buffer
UsersRings rings_of(const tutti::TaskProgram* users) {
  UsersRings rings;
  if (users == nullptr) return rings;
  for (const auto& [name, ring] : users->rings) rings.emplace(name, Handles::state(ring));
  return rings;
}

}  // namespace

Expected<void> check_programs(const TaskSet& set, const TaskPrograms& programs) {
  for (const auto& [name, program] : programs) {
    const auto task = std::ranges::find(set.tasks, name, &Task::name);
    if (task == set.tasks.end())
      return invalid_input(
          fmt::format("there is a program for task '{:.80}', which the set has not; name one of its tasks", name));
    for (const auto& [buffer, slots] : program.memory) {
      if (buffer.find('.') != std::string::npos ||
          std::ranges::find(task->buffers, buffer, &NamedBuffer::name) == task->buffers.end())
        return invalid_input(
            fmt::format("there is memory for buffer '{:.80}', which task '{}' has not; name one of its "
                        "'buffers'",
                        buffer, name));
      if (auto ok = check_slots(*task, buffer, slots); !ok) return ok;
    }
    if (auto ok = check_rings(set, *task, program); !ok) return ok;
  }
  return {};
}

Expected<void> TakenRings::take(const TaskPrograms& programs) {
  for (const auto& [task, program] : programs)
    for (const auto& [name, ring] : program.rings) {
      const std::shared_ptr<SlotRing>& state = Handles::state(ring);
      if (!state->join())
        return invalid_input(
            fmt::format("the ring for buffer '{:.80}' of task '{}' is that of another run or buffer; "
                        "make one for each",
                        name, task));
      rings_.push_back(state);
    }
  return {};
}

TakenRings::~TakenRings() {
  for (const auto& ring : rings_) ring->leave();
}

UserProgram::UserProgram(const Topology& machine, const Task& task, std::size_t position, std::uint64_t seed,
                         const tutti::TaskProgram* users, CallbackGuard& guard)
    : machine_(&machine),
      task_(&task),
      position_(position),
      users_(users),
      guard_(&guard),
      buffers_(machine, task, seed, users == nullptr ? nullptr : &users->memory, rings_of(users)) {}

UserPrograms::UserPrograms(const TaskSet& set, const TaskPrograms& programs, std::uint64_t seed, CallbackGuard& guard) {
  for (std::size_t i = 0; i < set.tasks.size(); ++i) {
    const auto users = programs.find(set.tasks[i].name);
    programs_.push_back(std::make_unique<UserProgram>(*set.machine, set.tasks[i], i, seed,
                                                      users == programs.end() ? nullptr : &users->second, guard));
    table_.push_back(programs_.back().get());
  }
}

std::vector<std::string> UserPrograms::notes() const {
  std::vector<std::string> notes;
  for (const auto& program : programs_)
    if (auto note = program->note_on_positions()) notes.push_back(*std::move(note));
  return notes;
}

}  // namespace tutti::internal
