#include "runtime/cuda/led_recorder.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "runtime/cuda/builtin_kernels.hpp"
#include "runtime/cuda/copies.hpp"
#include "runtime/cuda/graph_check.hpp"

namespace tutti::internal::cuda {
namespace {

/// Records the lanes of one batch, one after the other.
class LaneRecorder {
 public:
  LaneRecorder(BoundDevices& backend, const BoundPlan& plan, const CommandList& list, std::span<const LedStream> lanes)
      : backend_(backend), plan_(plan), list_(list), lanes_(lanes), steps_(lanes.size()), step_(list.commands.size()) {
    for (const Command& command : list.commands)
      for (const std::uint32_t before : command.waits) step_[before] = 1;
    for (std::size_t i = 0; i < step_.size(); ++i)
      if (step_[i] != 0) step_[i] = ++steps_[list.commands[i].last_lane];
    waits_for_time_ = std::ranges::any_of(list.gates, [](Duration at) { return at > Duration{0}; });
  }

  Expected<RecordedLane> record(std::uint32_t lane) {
    const LedStream& on = lanes_[lane];
    const DeviceGuard guard(on.device);
    if (auto ok = check(cudaStreamBeginCapture(on.stream, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
        !ok)
      return tl::unexpected(std::move(ok.error()));
    Expected<void> done = enqueue(lane);
    cudaGraph_t recorded = nullptr;
    const cudaError_t status = cudaStreamEndCapture(on.stream, &recorded);
    const Graph graph(recorded);
    static_cast<void>(cudaGetLastError());  // what spoiled the capture is in `status`
    if (!done) return tl::unexpected(std::move(done.error()));
    return check(status, "cudaStreamEndCapture").and_then([&] { return put_in_line(graph.get()); }).and_then([&] {
      return load_graph(graph.get(), backend_.lanes.at(on.device).service()).map([&](ExecutableGraph&& loaded) {
        return RecordedLane{std::move(loaded), places_of_graph(graph.get())};
      });
    });
  }

 private:
  Expected<void> enqueue(std::uint32_t lane) {
    const LedStream& on = lanes_[lane];
    bool first = true;
    for (std::uint32_t position = 0; position < list_.commands.size(); ++position) {
      const Command& command = list_.commands[position];
      if (command.lane != lane) continue;
      if (command.gate || (std::exchange(first, false) && command.waits.empty()))
        launch_led_gate(on.stream, on.gate, on.lane, waits_for_time_,
                        static_cast<std::uint64_t>(command.gate ? list_.gates[*command.gate].count() : 0));
      for (const std::uint32_t before : command.waits) {
        const std::uint32_t other = list_.commands[before].last_lane;
        launch_led_wait(on.stream, lanes_[other].lane, steps_[other], step_[before], on.lane);
      }
      if (auto ok = do_work(command, on.stream); !ok) return ok;
      if (step_[position] != 0) launch_led_step(on.stream, on.lane);
    }
    launch_led_end(on.stream, on.lane, on.ended);
    return check(cudaGetLastError(), "launch_led_end");
  }

  Expected<void> do_work(const Command& command, cudaStream_t stream) {
    const StreamBinding& binding = plan_.bindings[command.stream];
    std::byte* const to = binding.destination.data + command.offset;
    const std::byte* const from = binding.source.data + command.offset;
    switch (command.kind) {
      case Command::Kind::Copy:
        return check(cudaMemcpyAsync(to, from, command.bytes, cudaMemcpyDefault, stream), "cudaMemcpyAsync");
      case Command::Kind::Rows:
        return check(
            copy_rows(backend_.machine, *plan_.plan.batch.streams()[command.stream].transfer, to, from, stream),
            "cudaMemcpy2DAsync");
      case Command::Kind::SmCopy:
        launch_copy(stream, to, from, command.bytes);
        return check(cudaGetLastError(), "launch_copy");
      case Command::Kind::Kernel: return launch(command, stream);
      case Command::Kind::Nothing: return {};
      default: break;
    }
    TUTTI_EXPECTS(false, "a led batch has no command that only the host can do");
  }

  Expected<void> launch(const Command& command, cudaStream_t stream) {
    const CommandStream& of_batch = plan_.plan.batch.streams()[command.stream];
    const auto calls = calls_of(backend_.kernels, backend_.machine, of_batch, plan_.bindings[command.stream]);
    auto on_gpu = device_calls_of(of_batch, calls);
    if (!on_gpu) return tl::unexpected(std::move(on_gpu.error()));
    for (const DeviceCall& call : *on_gpu) {
      try {
        call.form(call.bound.launch(), stream);
      } catch (const std::exception& exception) {
        return tl::unexpected(tutti::internal::kernel_failed(of_batch, call.bound.name, exception.what()));
      } catch (...) {
        return tl::unexpected(
            tutti::internal::kernel_failed(of_batch, call.bound.name, "it threw something that is no std::exception"));
      }
    }
    return check(cudaGetLastError(), "the kernel's launch");
  }

  BoundDevices& backend_;
  const BoundPlan& plan_;
  const CommandList& list_;
  std::span<const LedStream> lanes_;
  std::vector<std::uint32_t> steps_;  // [lanes] that others wait for, in a run
  std::vector<std::uint32_t> step_;   // [commands] of its lane, from 1; 0: nobody waits for it
  bool waits_for_time_ = false;       // some gate has an offset
};

}  // namespace

Expected<std::vector<RecordedLane>> record_lanes(BoundDevices& backend, const BoundPlan& plan, const CommandList& list,
                                                 std::span<const LedStream> lanes) {
  LaneRecorder recorder(backend, plan, list, lanes);
  std::vector<RecordedLane> recorded;
  for (std::uint32_t lane = 0; lane < lanes.size(); ++lane) {
    auto one = recorder.record(lane);
    if (!one) return tl::unexpected(std::move(one.error()));
    recorded.push_back(*std::move(one));
  }
  return recorded;
}

}  // namespace tutti::internal::cuda
