#include "runtime/api/runtime.hpp"

#include <atomic>
#include <type_traits>

#include <fmt/format.h>

#include "runtime/api/dlpack.hpp"
#include "runtime/api/handles.hpp"
#include "runtime/dispatch/partition_machines.hpp"

namespace tutti {

struct internal::RuntimeState {
  RuntimeState(Topology the_machine, KernelRegistry the_kernels, const Planner& the_planner)
      : machine(std::move(the_machine)), kernels(std::move(the_kernels)), planner(&the_planner) {}

  Topology machine;
  KernelRegistry kernels;
  const Planner* planner;
  std::optional<BackendStack> stack;  // present once the runtime is open
  std::atomic<const void*> user{};    // the thread that a call is under way in, by an address of its own

  [[nodiscard]] Executor& executor() const { return stack->executor(); }
};

struct internal::BufferState {
  std::shared_ptr<RuntimeState> runtime;  // gone after the memory
  Buffer memory;
  bool is_read_only = false;

  [[nodiscard]] const Vertex& place() const { return runtime->machine.vertex(memory.view().where); }
};

/// A prepared batch, as often as it can be in flight.
struct internal::RunsOfBatch {
  struct Slot {
    PreparedBatch batch;
    bool held = false;    // by a `BatchRun`
    bool issued = false;  // ever
  };

  std::shared_ptr<RuntimeState> runtime;              // gone last
  std::vector<std::shared_ptr<BufferState>> buffers;  // gone after the runs
  std::vector<Slot> slots;

  [[nodiscard]] Executor& executor() const { return runtime->executor(); }
  [[nodiscard]] bool is_free(Slot& slot) const { return !slot.held && (!slot.issued || executor().query(slot.batch)); }
};

namespace {

using internal::Handles;
using internal::RunsOfBatch;
using internal::RuntimeState;

constexpr int kMostInFlight = 64;

/// A call that uses a runtime, for as long as it lives: there is one at a time.
class Use {
 public:
  explicit Use(RuntimeState& runtime) : runtime_(runtime) {
    is_only_ = runtime.user.compare_exchange_strong(before_, &thread_);
  }
  Use(const Use&) = delete;  // it stands for one call
  Use& operator=(const Use&) = delete;
  ~Use() {
    if (is_only_) runtime_.user.store(nullptr, std::memory_order_release);
  }

  [[nodiscard]] Expected<void> check() const {
    if (is_only_) return {};
    if (before_ == &thread_)
      return internal::invalid_input(
          "a kernel calls the runtime that runs it, which would wait for itself; call it behind the batch");
    return internal::invalid_input(
        "another thread is in a call of this runtime, or a kernel of it calls it; use a runtime, and what was made "
        "from it, in one call at a time");
  }

 private:
  static thread_local char thread_;

  RuntimeState& runtime_;
  const void* before_ = nullptr;  // the thread that the runtime is in use by
  bool is_only_ = false;
};
thread_local char Use::thread_ = 0;

/// Does what a call is for, if no other call uses the runtime, and tells owners of memory that is not used any more. It
/// allocates nothing.
/// @param runtime  kept until the call is over: a kernel may free its last handle meanwhile
template <class Call>
std::invoke_result_t<Call> use(const std::shared_ptr<RuntimeState> runtime, const Call& call) {
  const auto made = [&]() -> std::invoke_result_t<Call> {
    const Use one(*runtime);
    if (auto ok = one.check(); !ok) return tl::unexpected(std::move(ok.error()));
    return call();
  };
  std::invoke_result_t<Call> result = made();
  runtime->executor().backend().unpin_given_up();  // owners of the program's memory go here, which may use the runtime
  return result;
}

Expected<void> check_machine(const RuntimeState& runtime, const internal::Batch& batch) {
  if (batch.machine() == runtime.machine) return {};
  return internal::invalid_input(fmt::format(
      "the batch was made for machine '{}', and the runtime runs '{}', which is not equal to it; make it for this one",
      batch.machine().name(), runtime.machine.name()));
}

/// Translates buffers of the user, and keeps their memory.
class Translation {
 public:
  explicit Translation(const std::shared_ptr<RuntimeState>& runtime) : runtime_(runtime) {}

  Expected<std::vector<internal::StreamBinding>> bindings(std::vector<StreamBinding> users) {
    std::vector<internal::StreamBinding> translated;
    for (StreamBinding& user : users) {
      internal::StreamBinding& own = translated.emplace_back();
      own = {view(user.source),        view(user.destination),     view(user.kernel_input),
             view(user.kernel_output), std::move(user.parameters), {}};
      for (const Buffer* const written : {&user.destination, &user.kernel_output}) note_written(*written);
      for (KernelBinding& kernel : user.kernels) {
        for (const Buffer& written : kernel.writes) note_written(written);
        own.calls.push_back({views(kernel.reads), views(kernel.writes), std::move(kernel.parameters)});
      }
    }
    if (writes_read_only_)
      return internal::invalid_input(
          "a batch would write a tensor that is read-only; give that stream or kernel memory that may be written");
    if (foreign_) return internal::invalid_input("a buffer belongs to another runtime; allocate it from this one");
    return translated;
  }
  std::vector<std::shared_ptr<internal::BufferState>> buffers;  // that were met

 private:
  std::vector<internal::NamedView> views(const std::vector<Buffer>& users) {
    std::vector<internal::NamedView> all;
    for (const Buffer& buffer : users) all.push_back({"", view(buffer)});
    return all;
  }
  internal::BufferView view(const Buffer& buffer) {
    const auto& state = Handles::state(buffer);
    if (!state) return {};
    foreign_ = foreign_ || state->runtime != runtime_;
    buffers.push_back(state);
    return {state->memory.view().where, buffer.data(), buffer.size()};
  }

  void note_written(const Buffer& buffer) {
    const auto& state = Handles::state(buffer);
    writes_read_only_ = writes_read_only_ || (state && state->is_read_only);
  }

  const std::shared_ptr<RuntimeState>& runtime_;
  bool foreign_ = false, writes_read_only_ = false;
};

}  // namespace

std::string Buffer::place() const { return state_ ? state_->place().name : ""; }

std::byte* Buffer::data() const { return state_ ? state_->memory.view().data + offset_.count : nullptr; }

std::span<std::byte> Buffer::bytes() const {
  if (!state_ || state_->place().kind != VertexKind::Memory) return {};
  return {data(), static_cast<std::size_t>(size_.count)};
}

Expected<Buffer> Buffer::part(Bytes offset, Bytes size) const {
  if (offset.count < 0 || size.count < 0 || offset > size_ || size > size_ - offset)
    return internal::invalid_input(
        fmt::format("a buffer of {} B has no {} B from {} on; ask for less", size_.count, size.count, offset.count));
  Buffer part = *this;
  part.offset_ += offset;
  part.size_ = size;
  return part;
}

BatchRun::BatchRun(BatchRun&& other) noexcept : state_(std::move(other.state_)), place_(other.place_) {}

BatchRun& BatchRun::operator=(BatchRun&& other) noexcept {
  std::swap(state_, other.state_);
  std::swap(place_, other.place_);
  return *this;
}

BatchRun::~BatchRun() {
  if (state_) state_->slots[place_].held = false;
}

Expected<Runtime> Runtime::open(const Machine& machine, const Kernels& kernels, const BackendOptions& options,
                                std::string_view planner) {
  const auto& topology = Handles::state(machine);
  const auto& registry = Handles::state(kernels);
  if (!topology) return internal::empty_handle("machine");
  if (!registry) return internal::empty_handle("kernel table");
  const auto chosen = internal::planner_of(planner);
  if (!chosen) return tl::unexpected(chosen.error());
  auto state = std::make_shared<State>(*topology, *registry, **chosen);
  return internal::BackendStack::make(options, state->machine, state->kernels).map([&](internal::BackendStack&& stack) {
    state->stack.emplace(std::move(stack));
    return Runtime(std::move(state));
  });
}

namespace {

/// Gives a tensor back, once it is the runtime's.
struct TensorOwner {
  TensorOwner() = default;
  TensorOwner(const TensorOwner&) = delete;  // it is given back once
  TensorOwner& operator=(const TensorOwner&) = delete;
  ~TensorOwner() {
    if (tensor != nullptr && tensor->deleter != nullptr) tensor->deleter(tensor);
  }
  internal::ManagedTensor* tensor = nullptr;
};

/// That a tensor of a GPU lies in the one that a place is.
Expected<void> check_device(const internal::DeviceBackend& backend, const Vertex& place, internal::VertexId where,
                            const internal::TensorMemory& tensor) {
  const int device = backend.cuda_device(where);
  if (tensor.cuda_device < 0 || tensor.cuda_device == device) return {};
  const std::string is = device < 0 ? "no GPU of CUDA here" : fmt::format("GPU {}", device);
  return internal::invalid_input(
      fmt::format("the tensor lies in GPU {} of CUDA, and '{}' is {}; name the place of that GPU", tensor.cuda_device,
                  place.name, is));
}

/// @param make  (backend, vertex) -> Expected<internal::Buffer>
template <class Make>
Expected<Buffer> make_buffer(const std::shared_ptr<internal::RuntimeState>& state, std::string_view place, Bytes size,
                             const Make& make) {
  if (!state) return internal::empty_handle("runtime");
  const auto vertex = state->machine.find_vertex(place);
  if (!vertex)
    return internal::invalid_input(
        fmt::format("machine '{}' has no '{:.80}'; name one of its memories or GPUs", state->machine.name(), place));
  return use(state, [&] {
    return make(state->executor().backend(), *vertex).map([&](internal::Buffer&& memory) {
      return Handles::make<Buffer>(
          std::make_shared<internal::BufferState>(internal::BufferState{state, std::move(memory)}), size);
    });
  });
}

}  // namespace

Expected<Buffer> Runtime::allocate(std::string_view place, Bytes size) {
  return make_buffer(state_, place, size, [&](internal::DeviceBackend& backend, internal::VertexId where) {
    return backend.allocate(where, size);
  });
}

Expected<Buffer> Runtime::allocate_unwritten(std::string_view place, Bytes size) {
  return make_buffer(state_, place, size, [&](internal::DeviceBackend& backend, internal::VertexId where) {
    return backend.allocate_unwritten(where, size);
  });
}

Expected<Buffer> Runtime::wrap(std::string_view place, std::span<std::byte> memory, std::shared_ptr<void> owner) {
  return make_buffer(state_, place, Bytes{static_cast<std::int64_t>(memory.size())},
                     [&](internal::DeviceBackend& backend, internal::VertexId where) {
                       return backend.wrap(where, memory, std::move(owner));
                     });
}

Expected<Buffer> Runtime::wrap_tensor(std::string_view place, DLManagedTensorVersioned* tensor) {
  if (tensor == nullptr) return internal::invalid_input("there is no tensor; give one");
  auto* const managed = reinterpret_cast<internal::ManagedTensor*>(tensor);
  const auto memory = internal::memory_of(*managed);
  if (!memory) return tl::unexpected(memory.error());
  const auto owner = std::make_shared<TensorOwner>();
  const Bytes size{static_cast<std::int64_t>(memory->bytes.size())};
  auto made = make_buffer(state_, place, size, [&](internal::DeviceBackend& backend, internal::VertexId where) {
    return check_device(backend, state_->machine.vertex(where), where, *memory).and_then([&] {
      return backend.wrap(where, memory->bytes, owner);
    });
  });
  if (!made) return made;
  owner->tensor = managed;
  Handles::state(*made)->is_read_only = memory->is_read_only;
  return made;
}

Expected<DLManagedTensorVersioned*> Runtime::lend_tensor(const Buffer& buffer) {
  const auto& lent = Handles::state(buffer);
  if (!state_) return internal::empty_handle("runtime");
  if (!lent) return internal::empty_handle("buffer");
  if (lent->runtime != state_) return internal::invalid_input("the buffer belongs to another runtime; ask that one");
  const internal::TensorMemory memory{{buffer.data(), static_cast<std::size_t>(buffer.size().count)},
                                      state_->stack->backend().cuda_device(lent->memory.view().where),
                                      lent->is_read_only};
  return reinterpret_cast<DLManagedTensorVersioned*>(internal::tensor_of(memory, [held = buffer] {}));
}

Expected<std::vector<StreamBinding>> Runtime::allocate_for(const Batch& batch) {
  const auto& operation = Handles::state(batch);
  if (!state_) return internal::empty_handle("runtime");
  if (!operation) return internal::empty_handle("batch");
  if (auto ok = check_machine(*state_, *operation); !ok) return tl::unexpected(std::move(ok.error()));
  std::vector<StreamBinding> bindings;
  for (const internal::CommandStream& stream : operation->streams()) {
    StreamBinding& binding = bindings.emplace_back();
    if (!stream.transfer) continue;
    for (const auto& [vertex, buffer] :
         {std::pair(stream.transfer->from, &binding.source), std::pair(stream.transfer->to, &binding.destination)}) {
      auto made =
          allocate(state_->machine.vertex(vertex).name, internal::bytes_at(state_->machine, *stream.transfer, vertex));
      if (!made) return tl::unexpected(std::move(made.error()));
      *buffer = *std::move(made);
    }
  }
  return bindings;
}

Expected<PreparedBatch> Runtime::prepare(const Batch& batch, std::vector<StreamBinding> bindings, int in_flight) {
  const auto& operation = Handles::state(batch);
  if (!state_) return internal::empty_handle("runtime");
  if (!operation) return internal::empty_handle("batch");
  if (in_flight < 1 || in_flight > kMostInFlight)
    return internal::invalid_input(
        fmt::format("{} runs in flight are none or too many; ask for 1 to {}", in_flight, kMostInFlight));
  if (auto ok = check_machine(*state_, *operation); !ok) return tl::unexpected(std::move(ok.error()));
  Translation translation(state_);
  const auto translated = translation.bindings(std::move(bindings));
  if (!translated) return tl::unexpected(translated.error());
  auto runs = std::make_shared<RunsOfBatch>(RunsOfBatch{state_, std::move(translation.buffers), {}});
  return use(state_, [&]() -> Expected<PreparedBatch> {
    const internal::ExecutionPlan planned = plan(*runs->runtime->planner, *operation);
    for (int i = 0; i < in_flight; ++i) {
      auto prepared = runs->executor().prepare(planned, *translated);
      if (!prepared) return tl::unexpected(std::move(prepared.error()));
      runs->slots.push_back({*std::move(prepared)});
    }
    return Handles::make<PreparedBatch>(std::move(runs));
  });
}

std::vector<std::string> Runtime::notes() const {
  std::vector<std::string> notes;
  if (state_) state_->stack->add_notes(notes);
  return notes;
}

std::vector<PinnedUse> Runtime::pinned_memory() const {
  return state_ ? state_->stack->backend().pinned_memory() : std::vector<PinnedUse>{};
}

Expected<BatchRun> batchOpAsync(PreparedBatch& batch) {
  const std::shared_ptr<RunsOfBatch> runs = Handles::state(batch);
  if (!runs) return internal::empty_handle("prepared batch");
  return use(runs->runtime, [&]() -> Expected<BatchRun> {
    for (std::size_t i = 0; i < runs->slots.size(); ++i) {
      RunsOfBatch::Slot& slot = runs->slots[i];
      if (!runs->is_free(slot)) continue;
      return runs->executor().issue(slot.batch).map([&] {
        slot.held = slot.issued = true;
        return Handles::make<BatchRun>(runs, i);
      });
    }
    return internal::invalid_input(
        fmt::format("{} runs of the batch are in flight; synchronize one, or prepare it for more", runs->slots.size()));
  });
}

Expected<BatchRun> batchOpAsync(Runtime& runtime, const Batch& batch, std::vector<StreamBinding> bindings) {
  return runtime.prepare(batch, std::move(bindings)).and_then([](PreparedBatch&& prepared) {
    return batchOpAsync(prepared);
  });
}

Expected<BatchResult> batchOp(PreparedBatch& batch) {
  return batchOpAsync(batch).and_then([](BatchRun&& run) { return batchOpSynchronize(run); });
}

Expected<BatchResult> batchOp(Runtime& runtime, const Batch& batch, std::vector<StreamBinding> bindings) {
  return batchOpAsync(runtime, batch, std::move(bindings)).and_then([](BatchRun&& run) {
    return batchOpSynchronize(run);
  });
}

Expected<bool> batchOpQuery(BatchRun& run) {
  const std::shared_ptr<RunsOfBatch> runs = Handles::state(run);
  if (!runs) return internal::empty_handle("run");
  return use(runs->runtime,
             [&]() -> Expected<bool> { return runs->executor().query(runs->slots[Handles::place(run)].batch); });
}

Expected<BatchResult> batchOpSynchronize(BatchRun& run) {
  const std::shared_ptr<RunsOfBatch> runs = Handles::state(run);
  if (!runs) return internal::empty_handle("run");
  return use(runs->runtime, [&]() -> Expected<BatchResult> {
    const BatchRun ended = std::move(run);
    return runs->executor()
        .synchronize(runs->slots[Handles::place(ended)].batch)
        .map([](const internal::BatchResult& result) {
          return BatchResult{result.start, result.finish, result.overruns};
        });
  });
}

}  // namespace tutti
