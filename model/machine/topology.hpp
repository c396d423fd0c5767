#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/base/error.hpp"
#include "model/base/ids.hpp"
#include "model/base/units.hpp"
#include "model/machine/machine_spec.hpp"
#include "model/machine/measured_table.hpp"

namespace tutti::internal {

class Faults;

/// From this many copy engines on, copies between GPUs have engines of their own.
inline constexpr int kPeerEngines = 3;

/// One direction of one physical link.
struct Link {
  VertexId from;
  VertexId to;
  LinkBandwidth bandwidth;

  friend bool operator==(const Link&, const Link&) = default;
};

/// A link under a shared capacity: each byte over it takes `cost` bytes of the capacity.
struct CapacityMember {
  LinkId link;
  double cost = 1;  ///< > 0

  friend bool operator==(const CapacityMember&, const CapacityMember&) = default;
};

/// A joint limit on several links (a chip set, a memory controller): the sum of cost x rate over the members stays at
/// or below it.
struct SharedCapacity {
  std::string name;
  Bandwidth capacity;
  std::vector<CapacityMember> members;

  friend bool operator==(const SharedCapacity&, const SharedCapacity&) = default;
};

/// Traffic that no batch issues.
struct BackgroundFlow {
  std::vector<LinkId> route;  ///< never empty
  LoadRate bandwidth;

  friend bool operator==(const BackgroundFlow&, const BackgroundFlow&) = default;
};

/// Use of one capacity by one link.
struct CapacityUse {
  CapacityId capacity;
  double cost = 1;

  friend bool operator==(const CapacityUse&, const CapacityUse&) = default;
};

/// Properties of a route that predictions need. Routes with equal properties are of one class: a large machine has few.
struct RouteClass {
  std::vector<CapacityUse> uses;  ///< of capacities that transfers of other copy engines can cross too; each once
  std::vector<CapacityUse> guaranteed_uses;  ///< of the same capacities, at guaranteed rates
  Bandwidth alone;                           ///< rate of a transfer with nothing else active
  double weight = 1;                         ///< sharing weight
  std::optional<PortId> port;                ///< its port in the measured table; absent where that does not cover it
  bool capped = false;                       ///< never faster than `alone`, even where the table has more: small copies

  [[nodiscard]] const std::vector<CapacityUse>& uses_at(Basis basis) const {
    return basis == Basis::Nominal ? uses : guaranteed_uses;
  }
  friend bool operator==(const RouteClass&, const RouteClass&) = default;
};

/// Which GPUs reach each other without a detour through a memory.
struct PeerAccess {
  PeerMode mode = PeerMode::SameDomain;
  std::vector<std::pair<VertexId, VertexId>> pairs;  ///< with PeerMode::Pairs; each holds in both directions

  friend bool operator==(const PeerAccess&, const PeerAccess&) = default;
};

/// The machine: what it consists of, what it can move, and the routes through it. An immutable value, cheap to copy.
///
/// All ids are dense positions. Every one that exists was assembled from a spec without faults.
class Topology {
 public:
  struct Parts;

  /// Makes the machine of a spec as it stands; `compile` also holds the guaranteed bandwidths below the table, and
  /// takes off what background flows take.
  /// @errors InvalidInput, a fault for each field: no vertices, doubled or missing names, a link from a vertex to
  /// itself
  ///         or to nowhere, doubled links, a rate that is not above 0 and finite, guaranteed above nominal, a number
  ///         out of its range, a graph in two pieces, memory or engines of what is no GPU, more than 1024 memories,
  ///         GPUs and devices, a background flow without a route, a set-up time that is negative, or guaranteed to be
  ///         below its nominal one.
  /// @param faults  of reading the spec
  [[nodiscard]] static Expected<Topology> assemble(MachineSpec spec, Faults faults);

  /// What the machine was made from, with a link for each direction.
  [[nodiscard]] const MachineSpec& spec() const;
  [[nodiscard]] const std::string& name() const { return spec().name; }
  [[nodiscard]] std::span<const Vertex> vertices() const { return spec().vertices; }
  [[nodiscard]] std::span<const Link> links() const;
  [[nodiscard]] std::span<const SharedCapacity> shared() const;
  /// Traffic that no batch issues, in the order of the file.
  [[nodiscard]] std::span<const BackgroundFlow> background() const;
  [[nodiscard]] const SharingWeights& weights() const { return spec().weights; }
  [[nodiscard]] const PeerAccess& peer_access() const;
  /// Costs of commands, and around jobs those of what leads them.
  [[nodiscard]] const SetupTimes& setup() const;
  /// Whether a GPU leads the jobs on it, in place of a thread of the host.
  [[nodiscard]] bool is_led_by_gpu() const;
  [[nodiscard]] const Margin& margin() const { return spec().margin; }
  /// How far rates vary from run to run, relative, 0 to `kWidestSpread`.
  [[nodiscard]] double spread() const { return spec().spread; }
  /// Measured rates of copies that are active together; null where there are none. They count with nominal bandwidths:
  /// what is guaranteed stays with the graph, which guarantees no combination more than its row.
  [[nodiscard]] const MeasuredTable* table() const { return shared_table().get(); }
  [[nodiscard]] const std::shared_ptr<const MeasuredTable>& shared_table() const;
  /// A sentence, with its row of the table, for each guaranteed bandwidth that was lowered below what the spec says
  /// since that row is slower.
  [[nodiscard]] std::span<const Error> notes() const;
  /// Size of one chunk of a staged copy; 0: the copy is one chunk, and its second leg waits for the whole of the first.
  [[nodiscard]] Bytes staging_chunk() const { return spec().staging.chunk; }

  [[nodiscard]] const Vertex& vertex(VertexId id) const { return vertices()[id.index()]; }
  [[nodiscard]] const Link& link(LinkId id) const { return links()[id.index()]; }
  [[nodiscard]] std::optional<VertexId> find_vertex(std::string_view name) const;
  [[nodiscard]] std::optional<LinkId> find_link(VertexId from, VertexId to) const;
  /// All vertices of one kind, in the order of the file.
  [[nodiscard]] std::span<const VertexId> memories() const;
  [[nodiscard]] std::span<const VertexId> gpus() const;
  [[nodiscard]] std::span<const VertexId> devices() const;

  /// The limits on rates, in byte/ns: every link's own, then every shared capacity's; each without what background
  /// flows take, which `links` and `shared` still have.
  [[nodiscard]] std::span<const double> capacities(Basis basis) const;
  /// "the link cpu0 -> gpu0", "the shared capacity chip".
  [[nodiscard]] std::string capacity_name(CapacityId capacity) const;
  /// Capacity uses of a byte over this link: the link itself, then each shared capacity that it is a member of.
  [[nodiscard]] std::span<const CapacityUse> uses(LinkId link) const;

  /// The links from one memory, GPU or device to another: fewest links, ties by the order of the links in the file;
  /// none of these is passed through. Empty where there is none, and from a vertex to itself.
  [[nodiscard]] std::span<const LinkId> route(VertexId from, VertexId to) const;
  /// The classes of all routes between memories and GPUs, ready for predictions.
  [[nodiscard]] std::span<const RouteClass> route_classes() const;
  /// Position of a route's class in `route_classes()`; kNone where there is no route, or not a memory at one end and a
  /// GPU at the other.
  [[nodiscard]] std::uint32_t route_class(VertexId from, VertexId to) const;

  /// PCIe domain: the vertices that stay connected without memories, cpus and the links between cpus; or the file's
  /// own.
  /// @pre no memory and no cpu.
  [[nodiscard]] DomainId domain(VertexId vertex) const;
  /// Whether data may go from one GPU to the other without a detour through a memory.
  [[nodiscard]] bool has_peer_access(VertexId from, VertexId to) const;
  /// This machine, with its table, but data goes from GPU to GPU through a memory alone.
  [[nodiscard]] Topology without_peer_access() const;
  /// This machine while a GPU leads the jobs on it: `setup` has the conductor's costs in place of the dispatcher's;
  /// `spec` remains. Nothing where the spec has no such costs.
  /// @param lanes  that wait beside those of a batch
  [[nodiscard]] std::optional<Topology> led_by_gpu(std::size_t lanes = 0) const;
  [[nodiscard]] Topology led_by_host() const;
  /// This machine with other guaranteed bandwidths.
  /// @param guaranteed  [capacities] GB/s; > 0, at most the nominal ones
  [[nodiscard]] Topology with_guaranteed(std::span<const double> guaranteed) const;
  /// This machine with less of its capacities and slower rows; `spec`, `links` and `shared` remain.
  /// @param nominal,guaranteed  [capacities] GB/s; > 0, guaranteed at most nominal
  /// @param table  null: none
  [[nodiscard]] Topology with_left(std::vector<double> nominal, std::vector<double> guaranteed,
                                   std::shared_ptr<const MeasuredTable> table) const;
  /// This machine with other notes.
  [[nodiscard]] Topology with_notes(std::vector<Error> notes) const;

  /// The engine that moves data into this GPU or device, and the one that moves it out; the same one where a GPU has
  /// but one.
  [[nodiscard]] EngineId engine_in(VertexId end) const;
  [[nodiscard]] EngineId engine_out(VertexId end) const;
  /// Engines for copies between GPUs without a memory between: `engine_in` and `engine_out` where the GPU has fewer
  /// than three.
  [[nodiscard]] EngineId peer_engine_in(VertexId gpu) const;
  [[nodiscard]] EngineId peer_engine_out(VertexId gpu) const;
  [[nodiscard]] std::size_t engine_count() const;
  /// What stands for the engine where a vertex itself moves data: a GPU whose kernel copies, a memory for which a
  /// thread of the host does. Behind all engines.
  [[nodiscard]] EngineId mover(VertexId vertex) const { return EngineId(engine_count() + vertex.index()); }
  /// The vertex whose `mover` this is; nothing: an engine of a GPU or device.
  [[nodiscard]] std::optional<VertexId> moving_vertex(EngineId engine) const {
    return engine.index() < engine_count() ? std::nullopt : std::optional(VertexId(engine.index() - engine_count()));
  }

  friend bool operator==(const Topology& a, const Topology& b);

 private:
  explicit Topology(std::shared_ptr<const Parts> parts) : parts_(std::move(parts)) {}

  std::shared_ptr<const Parts> parts_;
};

}  // namespace tutti::internal
