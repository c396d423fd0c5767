#include "runtime/dispatch/named_memory.hpp"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "model/base/random.hpp"
#include "model/batch/choose_methods.hpp"
#include "model/planners/planner.hpp"
#include "sched/tasks/buffer_flow.hpp"

namespace tutti::internal {
namespace {

/// A batch that copies into a buffer of a GPU, from the first memory of the host that leads there.
Expected<Batch> upload_to(const Topology& machine, const BufferView& to) {
  const auto from = memory_before(machine, to.where);
  if (!from) return machine_error("no memory of the host leads to it");
  Transfer up;
  up.from = *from;
  up.to = to.where;
  up.size = to.size;
  return Batch::make(machine, {{"upload", up, {}}}).map([](Batch&& batch) {
    return choose_methods(std::move(batch), Basis::Nominal);
  });
}

/// What goes into a buffer of a GPU before the first job, in memory of the host until then.
struct Upload {
  Batch batch;
  Buffer from;
  BufferView to;
};

Expected<Upload> make_upload(Executor& executor, const NamedBuffer& buffer, const BufferView& to) {
  auto batch = upload_to(executor.machine(), to);
  if (!batch)
    return machine_error(
        fmt::format("buffer '{}' cannot be filled before the first job: {}", buffer.name, batch.error().message));
  const VertexId memory = batch->streams().front().transfer->from;
  return executor.backend().allocate(memory, to.size).map([&](Buffer&& from) {
    return Upload{*std::move(batch), std::move(from), to};
  });
}

Expected<void> run(Executor& executor, const Upload& upload) {
  BoundPlan bound{plan(planners().front(), upload.batch), "the upload of a kept buffer", {{}}};
  bound.bindings.front().source = upload.from.view();
  bound.bindings.front().destination = upload.to;
  auto batch = executor.backend().prepare(std::move(bound));
  if (!batch) return tl::unexpected(std::move(batch.error()));
  (*batch)->submit(executor.clock().now());
  (*batch)->wait();
  if (auto error = (*batch)->result().error) return tl::unexpected(*std::move(error));
  return {};
}

}  // namespace

void fill_with_pattern(std::span<std::byte> bytes, std::uint64_t seed) {
  Random random(seed);
  for (std::size_t at = 0; at < bytes.size(); at += 8) {
    const std::uint64_t x = random.next();
    std::memcpy(bytes.data() + at, &x, std::min<std::size_t>(8, bytes.size() - at));
  }
}

Expected<void> NamedMemory::make_sets(DeviceBackend& backend, std::size_t sets) {
  sets_.clear();
  memory_.clear();
  others_.clear();
  borrowed_.assign(buffers_.size(), std::nullopt);
  is_lent_.assign(buffers_.size(), false);
  while (is_used() && sets_.size() < sets)
    if (auto ok = add_set(backend); !ok) return ok;
  for (const auto& [name, ring] : rings_) {
    const auto found = std::ranges::find(buffers_, name, &NamedBuffer::name);
    if (auto ok = add_ring(backend, static_cast<std::size_t>(found - buffers_.begin()), *ring); !ok) return ok;
  }
  return {};
}

Expected<Buffer> NamedMemory::wrap(DeviceBackend& backend, const NamedBuffer& buffer, std::size_t slot,
                                   std::span<std::byte> memory) const {
  const auto size = static_cast<std::size_t>(buffer.size.count);
  if (memory.size() < size)
    return invalid_input(fmt::format("slot {} of buffer '{}' has {} bytes of the program's memory; it needs {}", slot,
                                     buffer.name, memory.size(), size));
  return backend.wrap(buffer.in, memory.first(size), nullptr).map_error([&](Error error) {
    error.message = fmt::format("buffer '{}': {}", buffer.name, error.message);
    return error;
  });
}

Expected<void> NamedMemory::add_ring(DeviceBackend& backend, std::size_t buffer, const SlotRing& ring) {
  Other& made = others_.emplace_back(Other{nullptr, true});
  for (const std::span<std::byte> slot : ring.slots()) {
    auto memory = wrap(backend, buffers_[buffer], made.slots.size(), slot);
    if (!memory) return tl::unexpected(std::move(memory.error()));
    made.slots.push_back(memory->view());
    memory_.push_back(*std::move(memory));
  }
  borrowed_[buffer] = {others_.size() - 1, 0};
  return {};
}

Expected<std::optional<std::span<std::byte>>> NamedMemory::users_slot(const NamedBuffer& buffer) const {
  if (users_ == nullptr) return std::nullopt;
  const auto users = users_->find(buffer.name);
  if (users == users_->end()) return std::nullopt;
  const std::size_t set = buffer.is_kept ? 0 : sets_.size();
  const std::vector<std::span<std::byte>>& slots = users->second;
  if (set >= slots.size())
    return invalid_input(
        fmt::format("the program has {} slots of memory for buffer '{}', and more are needed: one for each of its "
                    "'slots', or for each job that can be alive, and where other tasks read it one more, and one for "
                    "each of their jobs",
                    slots.size(), buffer.name));
  return slots[set];
}

Expected<Buffer> NamedMemory::make(DeviceBackend& backend, const NamedBuffer& buffer) {
  const auto users = users_slot(buffer);
  if (!users) return tl::unexpected(users.error());
  if (*users) return wrap(backend, buffer, buffer.is_kept ? 0 : sets_.size(), **users);
  return backend.allocate(buffer.in, buffer.size).map([&](Buffer&& memory) {
    if (!buffer.is_kept && machine_.vertex(buffer.in).kind == VertexKind::Memory)
      fill_with_pattern(memory.view().bytes(), seed_ + memory_.size());
    return std::move(memory);
  });
}

Expected<void> NamedMemory::add_set(DeviceBackend& backend) {
  std::vector<BufferView> views;
  for (std::size_t i = 0; i < buffers_.size(); ++i) {
    if (!is_own(i)) {
      views.emplace_back();
      continue;
    }
    if (buffers_[i].is_kept && !sets_.empty()) {
      views.push_back(sets_.front()[i]);
      continue;
    }
    auto memory = make(backend, buffers_[i]);
    if (!memory) return tl::unexpected(std::move(memory.error()));
    views.push_back(memory->view());
    memory_.push_back(*std::move(memory));
  }
  sets_.push_back(std::move(views));
  return {};
}

void NamedMemory::read(std::string_view owner, NamedMemory& other) {
  Other& made = others_.emplace_back(Other{&other});
  for (std::size_t i = 0; i < buffers_.size(); ++i) {
    if (buffers_[i].owner() != owner) continue;
    const auto found = std::ranges::find(other.buffers_, buffers_[i].own_name(), &NamedBuffer::name);
    const auto theirs = static_cast<std::size_t>(found - other.buffers_.begin());
    borrowed_[i] = {others_.size() - 1, theirs};
    other.is_lent_[theirs] = true;
    made.varies = made.varies || !found->is_kept;
  }
}

std::size_t NamedMemory::choices() const {
  std::size_t choices = sets_.size();
  for (const Other& other : others_) choices *= other.varies ? other.count() : 1;
  return choices;
}

std::size_t NamedMemory::own_choices() const {
  std::size_t choices = sets_.size();
  for (const auto& [name, ring] : rings_) choices *= ring->count();
  return choices;
}

std::size_t NamedMemory::choice(std::size_t own, std::span<const std::size_t> others) const {
  std::size_t choice = own, step = sets_.size(), next = 0;
  for (const Other& other : others_) {
    if (next == others.size()) break;
    if (!other.varies) continue;
    choice += step * others[next++];
    step *= other.count();
  }
  return choice;
}

BufferView NamedMemory::memory_of(std::size_t buffer, std::size_t choice) const {
  const std::size_t own = choice % sets_.size();
  if (!borrowed_[buffer]) return sets_[own][buffer];
  choice /= sets_.size();
  for (std::size_t other = 0;; ++other) {
    const std::size_t count = others_[other].varies ? others_[other].count() : 1;
    if (other == borrowed_[buffer]->other) return others_[other].view(choice % count, borrowed_[buffer]->buffer);
    choice /= count;
  }
}

std::vector<StreamBinding> NamedMemory::bind(const Batch& operation, std::size_t choice) const {
  const auto memory = [&](BufferId buffer) { return memory_of(buffer.index(), choice); };
  const auto views_of = [&](const std::vector<BufferId>& buffers) {
    std::vector<NamedView> views;
    for (const BufferId buffer : buffers) views.push_back({buffers_[buffer.index()].name, memory(buffer)});
    return views;
  };
  std::vector<StreamBinding> bindings;
  for (const CommandStream& stream : operation.streams()) {
    StreamBinding& binding = bindings.emplace_back();
    if (stream.copied) {
      const auto& [from, to, at, to_at] = *stream.copied;
      const Transfer& transfer = *stream.transfer;
      binding.source = memory(from).part(at, bytes_at(machine_, transfer, transfer.from));
      binding.destination = memory(to).part(to_at, bytes_at(machine_, transfer, transfer.to));
    }
    if (!stream.kernel) continue;
    for (const KernelCall& call : stream.kernel->calls)
      binding.calls.push_back({views_of(call.reads), views_of(call.writes), {}});
  }
  return bindings;
}

HostBytes NamedMemory::host_bytes(std::size_t buffer, const BufferView& memory) const {
  return {buffers_[buffer].name, is_of_host(buffer) ? memory.bytes() : std::span<std::byte>{}};
}

std::vector<HostBytes> NamedMemory::of_host(std::size_t choice) const {
  std::vector<HostBytes> all;
  for (std::size_t i = 0; i < buffers_.size(); ++i) all.push_back(host_bytes(i, memory_of(i, choice)));
  return all;
}

std::vector<HostBytes> NamedMemory::own_of_host(std::size_t choice) const {
  std::vector<HostBytes> own;
  for (std::size_t i = 0; i < buffers_.size(); ++i)
    if (buffers_[i].owner().empty()) own.push_back(host_bytes(i, memory_of(i, choice)));
  return own;
}

Expected<void> NamedMemory::fill_kept(Executor& executor,
                                      const std::function<Expected<void>(std::span<const HostBytes>)>& write) {
  std::vector<Upload> uploads;
  std::vector<HostBytes> kept;
  for (std::size_t i = 0; i < buffers_.size() && !sets_.empty(); ++i) {
    const BufferView& view = sets_.back()[i];  // of what others read, the set that no job has had
    const bool is_of_device = machine_.vertex(buffers_[i].in).kind == VertexKind::Device;  // which fills it
    const bool is_filled = (buffers_[i].is_kept || (is_lent_[i] && !is_of_device)) && !is_users(i);
    if (buffers_[i].size == Bytes{0} || !is_filled) continue;
    std::span<std::byte> bytes;
    if (is_of_host(i)) {
      bytes = view.bytes();
      std::ranges::fill(bytes, std::byte{0});
    } else {
      auto upload = make_upload(executor, buffers_[i], view);
      if (!upload) return tl::unexpected(std::move(upload.error()));
      uploads.push_back(*std::move(upload));
      bytes = uploads.back().from.view().bytes();
    }
    if (buffers_[i].is_kept) kept.push_back({buffers_[i].name, bytes});
  }
  if (auto ok = write(kept); !ok) return ok;
  for (const Upload& upload : uploads)
    if (auto ok = run(executor, upload); !ok) return ok;
  return {};
}

}  // namespace tutti::internal
