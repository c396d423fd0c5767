#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/command_costs.hpp"
#include "model/error.hpp"
#include "model/ids.hpp"
#include "model/measured_table.hpp"
#include "model/units.hpp"

namespace tutti::internal {

/// Kind of a vertex of the machine's graph. Memories and GPUs hold data: routes start and end there and never pass
/// through.
enum class VertexKind : std::uint8_t { Memory, Cpu, Hub, Switch, Gpu };

/// "memory", "cpu", "hub", "switch", "gpu".
[[nodiscard]] std::string_view to_string(VertexKind kind);

/// From this many copy engines on, copies between GPUs have engines of their own.
inline constexpr int kPeerEngines = 3;

/// A memory, a processor, a hub, a switch or a GPU.
struct Vertex {
  std::string name;
  VertexKind kind = VertexKind::Hub;
  int copy_engines = 2;         ///< of a GPU; 1 serves both directions, 2 one each; from 3 on copies between GPUs have
                                ///< their own, too
  std::optional<Bytes> memory;  ///< of a GPU, where known
  std::string bus_id;           ///< of a GPU, where known
  std::string uuid;             ///< of a GPU, where known
  std::string domain;           ///< the PCIe domain's name, where the file gives one

  friend bool operator==(const Vertex&, const Vertex&) = default;
};

/// One direction of one physical link.
struct Link {
  VertexId from;
  VertexId to;
  Bandwidth bandwidth;
  std::optional<GBps> theoretical = {};  ///< what the link's standard promises, where known

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

/// Use of one capacity by one link.
struct CapacityUse {
  CapacityId capacity;
  double cost = 1;

  friend bool operator==(const CapacityUse&, const CapacityUse&) = default;
};

/// Properties of a route that predictions need. Routes with equal properties are of one class: a large machine has few.
struct RouteClass {
  std::vector<CapacityUse> uses;  ///< of capacities that transfers of other copy engines can cross too; each once
  Bandwidth alone;                ///< rate of a transfer with nothing else active
  double weight = 1;              ///< sharing weight
  PortSet streams = 0;            ///< its stream of the measured table; empty where it has none
  bool capped = false;            ///< never faster than `alone`, even where the table has more: small copies

  friend bool operator==(const RouteClass&, const RouteClass&) = default;
};

/// Weights of transfers in the sharing of a contended capacity, by kind of copy. > 0.
struct SharingWeights {
  double h2d = 1;   ///< memory to GPU
  double d2h = 1;   ///< GPU to memory
  double peer = 1;  ///< GPU to GPU, staged or not

  friend bool operator==(const SharingWeights&, const SharingWeights&) = default;
};

/// Which GPUs reach each other without a detour through a memory.
struct PeerAccess {
  enum class Mode : std::uint8_t { All, None, SameDomain, Pairs };

  Mode mode = Mode::SameDomain;
  std::vector<std::pair<VertexId, VertexId>> pairs;  ///< with Mode::Pairs; each holds in both directions

  friend bool operator==(const PeerAccess&, const PeerAccess&) = default;
};

/// Mechanism that holds the streams of a batch until their planned instants, on hardware.
enum class GateKind : std::uint8_t {
  PollingKernel,  ///< a kernel of one thread looks at a word in memory until it is time
  MemoryWait,     ///< the stream itself waits for the word; on H200s it does not see it while another copy of its GPU
                  ///< runs
  HostTimed,      ///< none: the host submits at the planned instant
  DeviceTimer,  ///< a kernel of one thread waits for an instant on its GPU's own timer; one word opens all that a batch
                ///< starts with, and later gates need no host
};

/// "polling_kernel", "memory_wait", "host_timed", "device_timer".
[[nodiscard]] std::string_view to_string(GateKind kind);
/// Every kind; the first is the default.
inline constexpr std::array kGateKinds{GateKind::PollingKernel, GateKind::MemoryWait, GateKind::HostTimed,
                                       GateKind::DeviceTimer};

/// Margin that makes a Wcet of a batch's predicted length: length x (1 + relative) + absolute.
struct Margin {
  double relative = 0;  ///< >= 0; 0.05 is 5 %
  Duration absolute{};  ///< >= 0

  friend bool operator==(const Margin&, const Margin&) = default;
};

/// Largest spread of a machine's rates: with more, they are not known.
inline constexpr double kWidestSpread = 0.5;

/// Where a machine's bandwidths come from: what a calibration knew of its measurements.
struct Provenance {
  std::string date;         ///< of the measurements, as they give it
  std::string host;         ///< host that they were made on
  std::string fingerprint;  ///< of the measurements: equal data have equal fingerprints
  int combinations = 0;     ///< that were used
  int batches = 0;          ///< that were used
  int repetitions = 1;      ///< of each combination, at least
  std::string sizes;        ///< of the copies

  friend bool operator==(const Provenance&, const Provenance&) = default;
};

/// The machine: what it consists of, what it can move, and the routes through it. An immutable value, cheap to copy.
///
/// All ids are dense positions. All come from `TopologyBuilder::build()`, so every one that exists is valid.
class Topology {
 public:
  struct Parts;

  [[nodiscard]] const std::string& name() const;
  [[nodiscard]] std::span<const Vertex> vertices() const;
  [[nodiscard]] std::span<const Link> links() const;
  [[nodiscard]] std::span<const SharedCapacity> shared() const;
  [[nodiscard]] const SharingWeights& weights() const;
  [[nodiscard]] const PeerAccess& peer_access() const;
  [[nodiscard]] const SetupTimes& setup() const;
  [[nodiscard]] const Margin& margin() const;
  /// How far rates vary from run to run, relative, 0 to `kWidestSpread`.
  [[nodiscard]] double spread() const;
  /// Measured rates of streams between the first memory and the GPUs; null where there are none. They count with
  /// nominal bandwidths: what is guaranteed stays with the graph, which guarantees no combination more than its row.
  [[nodiscard]] const MeasuredTable* table() const;
  /// A sentence, with its place where known, for each guaranteed bandwidth that the builder lowered since a row of the
  /// table is slower.
  [[nodiscard]] std::span<const std::string> notes() const;
  /// Where the bandwidths come from; absent where the file does not say.
  [[nodiscard]] const std::optional<Provenance>& provenance() const;
  /// Size of one chunk of a staged copy; 0: the copy is one chunk, and its second leg waits for the whole of the first.
  [[nodiscard]] Bytes staging_chunk() const;
  /// Mechanism that holds streams on hardware.
  [[nodiscard]] GateKind gate() const;

  [[nodiscard]] const Vertex& vertex(VertexId id) const { return vertices()[id.index()]; }
  [[nodiscard]] const Link& link(LinkId id) const { return links()[id.index()]; }
  [[nodiscard]] std::optional<VertexId> find_vertex(std::string_view name) const;
  [[nodiscard]] std::optional<LinkId> find_link(VertexId from, VertexId to) const;
  /// All vertices of one kind, in the order of the file.
  [[nodiscard]] std::span<const VertexId> memories() const;
  [[nodiscard]] std::span<const VertexId> gpus() const;

  /// The limits on rates, in byte/ns: every link's own, then every shared capacity's.
  [[nodiscard]] std::span<const double> capacities(Basis basis) const;
  /// Capacity uses of a byte over this link: the link itself, then each shared capacity that it is a member of.
  [[nodiscard]] std::span<const CapacityUse> uses(LinkId link) const;

  /// The links from one memory or GPU to another: fewest links, ties by the order of the links in the file; memories
  /// and GPUs are not passed through. Empty where there is none, and from a vertex to itself.
  [[nodiscard]] std::span<const LinkId> route(VertexId from, VertexId to) const;
  /// The classes of all routes between memories and GPUs, ready for predictions.
  [[nodiscard]] std::span<const RouteClass> route_classes() const;
  /// Position of a route's class in `route_classes()`; kNone where there is no route, or not a memory at one end and a
  /// GPU at the other.
  [[nodiscard]] std::uint32_t route_class(VertexId from, VertexId to) const;

  /// PCIe domain: the vertices that stay connected without memories, cpus and the links between cpus; or the file's
  /// own.
  /// @pre a hub, a switch or a GPU.
  [[nodiscard]] DomainId domain(VertexId vertex) const;
  /// Whether data may go from one GPU to the other without a detour through a memory.
  [[nodiscard]] bool has_peer_access(VertexId from, VertexId to) const;
  /// This machine, with its table, but data goes from GPU to GPU through a memory alone.
  [[nodiscard]] Topology without_peer_access() const;

  /// The engine that moves data into this GPU, and the one that moves it out; the same one where the GPU has but one.
  [[nodiscard]] EngineId engine_in(VertexId gpu) const;
  [[nodiscard]] EngineId engine_out(VertexId gpu) const;
  /// Engines for copies between GPUs without a memory between: `engine_in` and `engine_out` where the GPU has fewer
  /// than three.
  [[nodiscard]] EngineId peer_engine_in(VertexId gpu) const;
  [[nodiscard]] EngineId peer_engine_out(VertexId gpu) const;
  [[nodiscard]] std::size_t engine_count() const;

  friend bool operator==(const Topology& a, const Topology& b);

 private:
  friend class TopologyBuilder;
  explicit Topology(std::shared_ptr<const Parts> parts) : parts_(std::move(parts)) {}

  std::shared_ptr<const Parts> parts_;
};

/// A file's entries for a vertex, a link and a shared capacity; errors point at `place`.
struct VertexEntry {
  Vertex vertex;
  Place place = {};
};
struct LinkEntry {
  std::string from;
  std::string to;
  Bandwidth bandwidth;
  std::optional<Bandwidth> back;  ///< absent: one direction only
  Place place = {};
  std::optional<GBps> theoretical = {};
  std::optional<GBps> back_theoretical = {};
};
struct MemberEntry {
  std::string from;
  std::string to;
  double cost = 1;
  Place place = {};
};
struct SharedEntry {
  std::string name;
  Bandwidth capacity;
  std::vector<MemberEntry> members;
  Place place = {};
};
struct TableEntry {
  std::vector<std::pair<std::string, double>> h2d;  ///< GPU and rate, GB/s
  std::vector<std::pair<std::string, double>> d2h;
  RateSource source = RateSource::Table;
  Place place = {};
};
struct PeerAccessEntry {
  PeerAccess::Mode mode = PeerAccess::Mode::SameDomain;
  std::vector<std::pair<std::string, std::string>> pairs;
  Place place = {};
};

/// A machine's links, one entry for each direction; its shared capacities.
[[nodiscard]] std::vector<LinkEntry> link_entries(const Topology& machine);
[[nodiscard]] std::vector<SharedEntry> shared_entries(const Topology& machine);

/// Collects the parts of a machine and checks them together; the only maker of a `Topology`.
class TopologyBuilder {
 public:
  explicit TopologyBuilder(std::string name) : name_(std::move(name)) {}
  /// Begins with all that a machine has but its table.
  explicit TopologyBuilder(const Topology& machine);

  TopologyBuilder& vertex(VertexEntry entry);
  TopologyBuilder& link(LinkEntry entry);
  TopologyBuilder& shared(SharedEntry entry);
  TopologyBuilder& weights(SharingWeights weights);
  TopologyBuilder& peer_access(PeerAccessEntry entry);
  TopologyBuilder& setup(SetupTimes setup);
  TopologyBuilder& margin(Margin margin);
  TopologyBuilder& spread(double relative);
  TopologyBuilder& staging_chunk(Bytes chunk);
  TopologyBuilder& gate(GateKind kind);
  TopologyBuilder& provenance(Provenance provenance);
  /// GPUs that may change places in the table.
  TopologyBuilder& symmetric(std::vector<std::string> gpus, Place place = {});
  TopologyBuilder& table(TableEntry entry);
  /// [GPUs] Other numbers of copy engines, in the order of the vertices.
  TopologyBuilder& copy_engines(const std::vector<int>& engines);
  /// Other figures for all links or shared capacities, in their order.
  TopologyBuilder& links(std::vector<LinkEntry> entries);
  TopologyBuilder& shared(std::vector<SharedEntry> entries);

  /// @errors InvalidInput, with the entry's place: no vertices, doubled or missing names, a link from a vertex to
  /// itself
  ///         or to nowhere, doubled links, a rate that is not above 0 and finite, a cost or weight outside 0.001 to
  ///         1000, guaranteed above nominal, a graph in two pieces, memory or engines of what is no GPU, more than 1024
  ///         memories and GPUs; a set-up time that is negative, or guaranteed to be below its nominal one.
  ///
  /// Where the graph guarantees more than a row of the table gives, guaranteed bandwidths become lower, and `notes`
  /// says so: no table makes a promise false.
  [[nodiscard]] Expected<Topology> build() const;

 private:
  std::string name_;
  std::vector<VertexEntry> vertices_;
  std::vector<LinkEntry> links_;
  std::vector<SharedEntry> shared_;
  SharingWeights weights_;
  PeerAccessEntry peer_access_;
  SetupTimes setup_;
  Margin margin_;
  double spread_ = 0;
  Bytes staging_chunk_{8LL << 20};
  GateKind gate_ = kGateKinds.front();
  std::optional<Provenance> provenance_;
  std::vector<std::pair<std::vector<std::string>, Place>> symmetric_;
  std::vector<TableEntry> table_;
};

}  // namespace tutti::internal
