#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/batch/application_load.hpp"
#include "model/batch/batch_spec.hpp"
#include "model/machine/topology.hpp"
#include "model/transfer/transfer.hpp"

namespace tutti::internal {

/// A kernel with memory of its own.
struct KernelCall {
  std::string name;               ///< a registered kernel
  Duration time{};                ///< usual duration
  std::vector<BufferId> reads{};  ///< in the order in which the kernel gets them
  std::vector<BufferId> writes{};
  std::optional<BufferId> of{};  ///< whose bytes its time counts

  friend bool operator==(const KernelCall&, const KernelCall&) = default;
};

/// Work on one GPU (where kernels exclude each other) or on one cpu (where they overlap).
struct Kernel {
  VertexId on;
  Duration time{};            ///< usual duration
  Duration worst{};           ///< upper bound; >= time
  std::string name = "spin";  ///< a registered kernel; of several their names
  Capture capture = Capture::Once;
  /// The kernels that run one after the other, on buffers with names; `time` and `worst` are of all together. Empty:
  /// it is one, which works on what its stream has brought.
  std::vector<KernelCall> calls = {};

  friend bool operator==(const Kernel&, const Kernel&) = default;
};

/// The kernels that run there, by name.
[[nodiscard]] inline std::vector<std::string> kernels_of(const Kernel& kernel) {
  if (kernel.calls.empty()) return {kernel.name};
  std::vector<std::string> names;
  for (const KernelCall& call : kernel.calls) names.push_back(call.name);
  return names;
}

/// Where the transfer of a stream begins and ends, in buffers with names.
struct CopiedBuffers {
  BufferId from, to;
  Bytes at{}, to_at{};  ///< from the first byte of each

  friend bool operator==(const CopiedBuffers&, const CopiedBuffers&) = default;
};

/// An optional transfer, then an optional kernel; nothing overlaps inside.
struct CommandStream {
  std::string name;
  std::optional<Transfer> transfer;
  std::optional<Kernel> kernel;
  Place place = {};                          ///< where the user's file declares it
  std::optional<CopiedBuffers> copied = {};  ///< absent: the transfer has memory of its own at both ends

  friend bool operator==(const CommandStream&, const CommandStream&) = default;
};

/// A stream as predictions use it: numbers and positions only, its route resolved.
struct StreamWork {
  double bytes = 0;
  std::uint32_t route_class = kNone;  ///< of its route: the machine's, then the batch's own; kNone: no transfer
  std::uint32_t fill = kNone;         ///< route class of a chunked copy's first leg; otherwise kNone
  std::array<EngineId, 2> engines{};  ///< held during the copy, the issuing one first; the same one twice where there
                                      ///< is but one
  std::uint32_t last_hop =
      kNone;  ///< last link of its route, where it contends for that: such copies cross it one at a time; or kNone
  CopyKind route = CopyKind::Up;  ///< class of the costs of its transfer
  bool peer_traffic = false;      ///< of its transfer
  bool by_kernel = false;         ///< of its transfer: it holds a GPU
  double kernel = 0;              ///< ns, usual duration
  double kernel_worst = 0;        ///< ns
  bool has_kernel = false;
  std::uint32_t gpu = kNone;  ///< vertex of the kernel's GPU; kNone on a cpu

  friend bool operator==(const StreamWork&, const StreamWork&) = default;
};

/// Streams that may run in parallel, with one completion. A value that fits the machine it was made for.
class Batch {
 public:
  static constexpr std::size_t kMostStreams = 4096;

  /// @errors InvalidInput, a fault for each stream, at `streams[position]`: no stream or more than 4096, a doubled
  /// name, a stream with neither transfer nor kernel; ends
  ///         that are no memory or GPU, a GPU to itself, memory to memory, no route from one end to the other, a route
  ///         that does not fit its ends or comes to one place twice; a kernel elsewhere than on a GPU or cpu, a time
  ///         below 0 or above 2^53 ns, worst below time.
  /// @param list  the path of the streams in faults
  [[nodiscard]] static Expected<Batch> make(const Topology& machine, std::vector<CommandStream> streams,
                                            Merging merging = Merging::On, const std::string& list = "streams");

  /// Adds the faults of `make`.
  /// @param sound  [streams] whether a stream is checked by itself; of others only the name is
  static void check(const Topology& machine, std::span<const CommandStream> streams, std::span<const char> sound,
                    Faults& faults, const std::string& list);

  /// The batch that runs in place of this planned one: equal streams with other sizes and kernel times, in the same
  /// queues, order and turns.
  /// @param machine  the machine that it runs on: the batch's, with other bandwidths and costs.
  /// @pre    the streams have the names, ends and routes of this batch's.
  /// @errors as `make`.
  [[nodiscard]] Expected<Batch> with_sizes_of(const Topology& machine, std::vector<CommandStream> streams) const;
  /// This batch, but no copy waits for one of another engine: for measuring links.
  [[nodiscard]] Batch without_turns() const;

  /// This batch as one of an application. Only static allocation depends on it.
  [[nodiscard]] Batch within(ApplicationLoad application) const;

  /// The machine it was made for.
  [[nodiscard]] const Topology& machine() const { return machine_; }
  [[nodiscard]] std::span<const CommandStream> streams() const { return streams_; }
  [[nodiscard]] Merging merging() const { return merging_; }
  /// [streams]
  [[nodiscard]] std::span<const StreamWork> work() const { return work_; }
  /// Route classes that the machine does not have: of copies between GPUs, and of the user's routes.
  [[nodiscard]] std::span<const RouteClass> own_classes() const { return own_classes_; }
  /// A route class by position: the machine's, then the batch's own. @pre not kNone
  [[nodiscard]] const RouteClass& route_class(std::uint32_t route_class) const {
    const auto of_machine = machine_.route_classes();
    return route_class < of_machine.size() ? of_machine[route_class] : own_classes_[route_class - of_machine.size()];
  }
  /// [streams] the order in which queues take them: that of the file, but copies between GPUs in rounds; empty where
  /// that is the order of the file.
  [[nodiscard]] std::span<const std::uint32_t> order() const { return order_; }
  /// Whether two queues may want one copy engine, or one last hop.
  [[nodiscard]] bool shares_engines() const { return shares_engines_; }

  /// What its application puts on the machine; empty: it is one by itself.
  [[nodiscard]] const ApplicationLoad& application() const { return application_; }

  friend bool operator==(const Batch&, const Batch&) = default;

 private:
  Batch(const Topology& machine, std::vector<CommandStream> streams, Merging merging);
  StreamWork make_work(const CommandStream& stream, std::span<const LinkId> met);
  void drop_lone_landings();
  [[nodiscard]] bool finds_shared_engines() const;

  Topology machine_;
  std::vector<CommandStream> streams_;
  Merging merging_;
  bool shares_engines_ = false;
  std::vector<StreamWork> work_;
  std::vector<RouteClass> own_classes_;
  std::vector<std::uint32_t> order_;
  ApplicationLoad application_;
};

}  // namespace tutti::internal
