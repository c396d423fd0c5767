#include "runtime/cuda/led/led_recorder.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "runtime/cuda/base/copies.hpp"
#include "runtime/cuda/lanes/builtin_kernels.hpp"
#include "runtime/cuda/lanes/graph_check.hpp"

namespace tutti::internal::cuda {
namespace {

/// What waits for which steps of which lanes, in a run of a batch.
struct Steps {
  explicit Steps(const CommandList& list) : of_lane(list.lanes.size()), of_command(list.commands.size()) {
    for (const Command& command : list.commands)
      for (const std::uint32_t before : command.waits) of_command[before] = 1;
    for (std::size_t i = 0; i < of_command.size(); ++i)
      if (of_command[i] != 0) of_command[i] = ++of_lane[list.commands[i].last_lane];
  }

  std::vector<std::uint32_t> of_lane;     ///< [lanes] that others wait for
  std::vector<std::uint32_t> of_command;  ///< [commands] of its lane, from 1; 0: nobody waits for it
};

/// Records one lane of a batch.
class LaneRecorder {
 public:
  LaneRecorder(BoundDevices& backend, const BoundPlan& plan, const CommandList& list, const Steps& steps,
               std::span<const LedStream> lanes, std::uint32_t lane)
      : backend_(backend), plan_(plan), list_(list), steps_(steps), lanes_(lanes), lane_(lane), on_(lanes[lane]) {}

  Expected<RecordedLane> record() {
    const DeviceGuard guard(on_.device);
    bool first = true;
    for (const Run& run : list_.runs) {
      const Command& command = list_.commands[run.begin];
      if (command.lane != lane_) continue;
      hold(command, std::exchange(first, false));
      if (auto ok = add_work(run); !ok) return tl::unexpected(std::move(ok.error()));
      if (steps_.of_command[run.end - 1] != 0) add([on = on_] { launch_led_step(on.stream, on.lane); });
    }
    add([on = on_] { launch_led_end(on.stream, on.lane, on.ended); });
    return flush().map([&] { return std::move(recorded_); });
  }

 private:
  using Launch = std::function<void()>;  // enqueues into the lane's stream

  void add(Launch launch) { pending_.push_back(std::move(launch)); }

  /// Before a command: its gate and the lanes that it waits for. The first one of a lane is held in any case.
  void hold(const Command& command, bool first) {
    const bool timed = std::ranges::any_of(list_.gates, [](Duration at) { return at > Duration{0}; });
    const auto offset = static_cast<std::uint64_t>(command.gate ? list_.gates[*command.gate].count() : 0);
    if (command.gate || (first && command.waits.empty()))
      add([=, on = on_] { launch_led_gate(on.stream, {on.gate, on.lane, timed, offset}); });
    for (const std::uint32_t before : command.waits) {
      const std::uint32_t other = list_.commands[before].last_lane;
      add([=, on = on_, other_lane = lanes_[other].lane, of_run = steps_.of_lane[other],
           step = steps_.of_command[before]] { launch_led_wait(on.stream, other_lane, of_run, step, on.lane); });
    }
  }

  Expected<void> add_work(const Run& run) {
    const Command& command = list_.commands[run.begin];
    const StreamBinding& binding = plan_.bindings[command.stream];
    std::byte* const to = binding.destination.data + command.offset;
    const std::byte* const from = binding.source.data + command.offset;
    switch (command.kind) {
      case Command::Kind::Copy: return add_copies(run);
      case Command::Kind::Rows:
        add([=, this, stream = on_.stream, transfer = *plan_.plan.batch.streams()[command.stream].transfer] {
          note(copy_rows(backend_.machine, transfer, to, from, stream), "cudaMemcpy2DAsync");
        });
        needs_graph_ = true;
        return {};
      case Command::Kind::SmCopy:
        add([=, stream = on_.stream, bytes = command.bytes] { launch_copy(stream, to, from, bytes); });
        return {};
      case Command::Kind::Kernel: return add_kernels(command);
      case Command::Kind::Nothing: return {};
      default: break;
    }
    TUTTI_EXPECTS(false, "a led batch has no command that only the host can do");
  }

  Expected<void> add_copies(const Run& run) {
    auto copies = std::make_shared<Copies>();
    for (std::uint32_t i = run.begin; i < run.end; ++i) {
      const Command& command = list_.commands[i];
      const StreamBinding& binding = plan_.bindings[command.stream];
      copies->add(binding.destination.data + command.offset, binding.source.data + command.offset, command.bytes);
    }
    if (!backend_.batches_copies || !copies->go_together()) {
      add([=, this, stream = on_.stream] {
        note(copies->enqueue_each(stream, 0, copies->count()), "cudaMemcpyAsync");
      });
      needs_graph_ = true;
      return {};
    }
    return flush().map([&] {
      recorded_.places += copies->count();
      recorded_.calls.push_back([copies, stream = on_.stream] { return copies->enqueue(stream, 0, copies->count()); });
    });
  }

  Expected<void> add_kernels(const Command& command) {
    const CommandStream& of_batch = plan_.plan.batch.streams()[command.stream];
    const auto calls = calls_of(backend_.kernels, backend_.machine, of_batch, plan_.bindings[command.stream]);
    auto on_gpu = device_calls_of(of_batch, calls);
    if (!on_gpu) return tl::unexpected(std::move(on_gpu.error()));
    needs_graph_ = true;
    for (const DeviceCall& call : *on_gpu)
      add([=, this, stream = on_.stream, &of_batch] {
        if (const auto thrown = thrown_by([&] { call.form(call.bound.launch(), stream); }))
          note(tutti::internal::kernel_failed(of_batch, call.bound.name, *thrown));
      });
    return {};
  }

  /// Makes a call of what was added since the last flush: a graph, or the launch of a single kernel of this project.
  Expected<void> flush() {
    if (pending_.empty()) return {};
    if (!needs_graph_ && pending_.size() == 1) {
      recorded_.calls.push_back([launch = std::move(pending_.front())] { return launch(), cudaGetLastError(); });
      ++recorded_.places;
      pending_.clear();
      return {};
    }
    auto graph = capture();
    if (!graph) return tl::unexpected(std::move(graph.error()));
    recorded_.places += places_of_graph(graph->get());
    auto loaded = put_in_line(graph->get()).and_then([&] {
      return load_graph(graph->get(), backend_.lanes.at(on_.device).service());
    });
    if (!loaded) return tl::unexpected(std::move(loaded.error()));
    recorded_.calls.push_back([graph = loaded->get(), stream = on_.stream] { return cudaGraphLaunch(graph, stream); });
    recorded_.graphs.push_back(*std::move(loaded));
    pending_.clear();
    needs_graph_ = false;
    return {};
  }

  Expected<Graph> capture() {
    if (auto ok = check(cudaStreamBeginCapture(on_.stream, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
        !ok)
      return tl::unexpected(std::move(ok.error()));
    for (const Launch& launch : pending_) launch();
    note(cudaGetLastError(), "a launch");
    cudaGraph_t recorded = nullptr;
    note(cudaStreamEndCapture(on_.stream, &recorded), "cudaStreamEndCapture");
    Graph graph(recorded);
    static_cast<void>(cudaGetLastError());
    if (error_) return tl::unexpected(*std::exchange(error_, std::nullopt));
    return graph;
  }

  void note(Error error) {
    if (!error_) error_ = std::move(error);
  }
  void note(cudaError_t status, const char* call) {
    if (auto ok = check(status, call); !ok) note(std::move(ok.error()));
  }

  BoundDevices& backend_;
  const BoundPlan& plan_;
  const CommandList& list_;
  const Steps& steps_;
  std::span<const LedStream> lanes_;
  std::uint32_t lane_;
  const LedStream& on_;
  std::vector<Launch> pending_;
  bool needs_graph_ = false;  // for what is pending: what is called may be the user's, or slower by itself
  std::optional<Error> error_;
  RecordedLane recorded_;
};

}  // namespace

Expected<std::vector<RecordedLane>> record_lanes(BoundDevices& backend, const BoundPlan& plan, const CommandList& list,
                                                 std::span<const LedStream> lanes) {
  const Steps steps(list);
  std::vector<RecordedLane> recorded;
  for (std::uint32_t lane = 0; lane < lanes.size(); ++lane) {
    auto one = LaneRecorder(backend, plan, list, steps, lanes, lane).record();
    if (!one) return tl::unexpected(std::move(one.error()));
    recorded.push_back(*std::move(one));
  }
  return recorded;
}

}  // namespace tutti::internal::cuda
