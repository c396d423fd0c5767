#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/base/quantities.hpp"
#include "model/machine/costs.hpp"
#include "model/machine/rate_source.hpp"

/// A machine as a user says it: plain fields with their defaults. Made by a machine file or in C++, changed by
/// searches, written back; `compile` turns it into a `Topology`, or into a list of its faults.
///
///     MachineSpec spec{.name = "station",
///                      .vertices = {{.name = "mem0", .kind = VertexKind::Memory},
///                                   {.name = "gpu0", .kind = VertexKind::Gpu}},
///                      .links = {{.from = "mem0", .to = "gpu0", .bandwidth = GBps{24}, .back = GBps{22}}}};
namespace tutti {

/// Kind of a vertex of the machine's graph. Memories, GPUs and devices (a camera, a disk, a network card) hold data:
/// routes start and end there and never pass through.
enum class VertexKind : std::uint8_t { Memory, Cpu, Hub, Switch, Gpu, Device };

/// "memory", "cpu", "hub", "switch", "gpu", "device".
[[nodiscard]] constexpr std::string_view to_string(VertexKind kind) {
  constexpr std::array<std::string_view, 6> names{"memory", "cpu", "hub", "switch", "gpu", "device"};
  return names[static_cast<std::size_t>(kind)];
}

/// Whether routes start and end at vertices of this kind, and never pass through.
[[nodiscard]] constexpr bool is_end(VertexKind kind) {
  return kind == VertexKind::Memory || kind == VertexKind::Gpu || kind == VertexKind::Device;
}

/// A memory, a processor, a hub, a switch, a GPU or a device.
struct Vertex {
  std::string name;
  VertexKind kind = VertexKind::Hub;
  int copy_engines = 2;   ///< of a GPU, 1 to 64; 1 serves both directions, 2 one each; from 3 on copies between
                          ///< GPUs have their own, too
  int cores = 1;          ///< of a cpu, 1 to 1024: host work that it does at a time where jobs overlap
  bool pageable = false;  ///< of a memory: ordinary memory of the host, which no GPU reaches; threads copy it into and
                          ///< out of pinned buffers
  int producers = 8;      ///< of a pageable memory, 1 to 64: threads that copy beside each copy engine, a core each
  Bytes buffer{4 << 20};  ///< of a pageable memory, 64 KiB to 64 MiB: each of the 2 x producers buffers
  Bytes crossover{1 << 20};  ///< of a pageable memory, at most 1 GiB: copies below go without the producers, by one
                             ///< thread
  std::optional<Bytes> memory = {};  ///< of a GPU, where known
  std::string bus_id = {};           ///< of a GPU, where known
  std::string uuid = {};             ///< of a GPU, where known
  std::string domain = {};           ///< name of its PCIe domain; empty: domains follow from the graph

  friend bool operator==(const Vertex&, const Vertex&) = default;
};

/// Effective bandwidth of one direction of a link.
struct LinkBandwidth : Bandwidth {
  std::optional<GBps> theoretical = {};  ///< what the link's standard promises, where known

  constexpr LinkBandwidth() = default;
  constexpr LinkBandwidth(GBps both) : Bandwidth(both) {}                         // NOLINT: a rate is a bandwidth
  constexpr LinkBandwidth(Bandwidth bandwidth, std::optional<GBps> at_best = {})  // NOLINT
      : Bandwidth(bandwidth), theoretical(at_best) {}
  friend bool operator==(const LinkBandwidth&, const LinkBandwidth&) = default;
  /// Whether the rates are these.
  friend bool operator==(const LinkBandwidth& a, const Bandwidth& b) { return static_cast<const Bandwidth&>(a) == b; }
};

/// A link, in one direction or both.
struct LinkSpec {
  std::string from;
  std::string to;
  LinkBandwidth bandwidth = {};
  std::optional<LinkBandwidth> back = {};  ///< of the other direction; absent: there is none

  friend bool operator==(const LinkSpec&, const LinkSpec&) = default;
};

/// One direction of a link under a shared capacity: each byte over it takes `cost` bytes of the capacity.
struct MemberSpec {
  std::string from;
  std::string to;
  double cost = 1;  ///< 0.001 to 1000

  friend bool operator==(const MemberSpec&, const MemberSpec&) = default;
};

/// A joint limit on several links (a chip set, a memory controller): the sum of cost x rate over the members stays at
/// or below it.
struct SharedSpec {
  std::string name;
  Bandwidth capacity = {};
  std::vector<MemberSpec> members = {};

  friend bool operator==(const SharedSpec&, const SharedSpec&) = default;
};

/// The rate of traffic that no batch issues: what it usually takes, and what it never exceeds. 0 < nominal <= most.
struct LoadRate {
  GBps nominal{};
  GBps most{};

  constexpr LoadRate() = default;
  /// One rate for both.
  constexpr LoadRate(GBps both) : nominal(both), most(both) {}  // NOLINT: a rate is a load
  constexpr LoadRate(GBps usual, GBps at_most) : nominal(usual), most(at_most) {}
  [[nodiscard]] GBps at(Basis basis) const { return basis == Basis::Nominal ? nominal : most; }
  friend bool operator==(const LoadRate&, const LoadRate&) = default;
};

/// Traffic that no batch issues: a frame grabber writes into memory, a disk reads, the host copies. Its rate is taken
/// off every link and shared capacity of its route before transfers share what is left.
struct BackgroundSpec {
  std::string from;  ///< a memory, a GPU or a device
  std::string to;    ///< another one; the same memory for copies of the host inside it
  LoadRate bandwidth = {};

  friend bool operator==(const BackgroundSpec&, const BackgroundSpec&) = default;
};

/// Weights of transfers in the sharing of a contended capacity, by kind of copy; 0.001 to 1000.
struct SharingWeights {
  double h2d = 1;   ///< memory to GPU
  double d2h = 1;   ///< GPU to memory
  double peer = 1;  ///< GPU to GPU, staged or not

  friend bool operator==(const SharingWeights&, const SharingWeights&) = default;
};

/// Which GPUs reach each other without a detour through a memory.
enum class PeerMode : std::uint8_t { All, None, SameDomain, Pairs };

struct PeerSpec {
  PeerMode mode = PeerMode::SameDomain;
  std::vector<std::pair<std::string, std::string>> pairs = {};  ///< with PeerMode::Pairs; each holds both ways

  friend bool operator==(const PeerSpec&, const PeerSpec&) = default;
};

/// Margin that makes a Wcet of a batch's predicted length: length x (1 + relative) + absolute.
struct Margin {
  double relative = 0;  ///< >= 0; 0.05 is 5 %
  Duration absolute{};  ///< >= 0

  friend bool operator==(const Margin&, const Margin&) = default;
};

/// How staged copies (GPU to GPU through a memory) are cut.
struct StagingSpec {
  Bytes chunk{
      8LL << 20};  ///< size of one chunk; 0: the copy is one chunk, and its second leg waits for all of the first

  friend bool operator==(const StagingSpec&, const StagingSpec&) = default;
};

/// What a machine may say of how its host holds the streams of a batch until their planned instants; the first is the
/// default. `GateKind` of the runtime gives them their meaning.
inline constexpr std::array<std::string_view, 4> kGateWords{"polling_kernel", "memory_wait", "host_timed",
                                                            "device_timer"};

/// Where a machine's bandwidths come from: what a calibration knew of its measurements.
struct Provenance {
  std::string date;         ///< of the measurements, as they give it
  std::string host;         ///< host that they were made on
  std::string fingerprint;  ///< of the measurements: equal data have equal fingerprints
  int combinations = 0;     ///< that were used
  int batches = 0;          ///< that were used
  int repetitions = 1;      ///< of each combination, at least
  std::string sizes = {};   ///< of the copies

  friend bool operator==(const Provenance&, const Provenance&) = default;
};

/// A copy of a measured combination, and its steady rate.
struct CopyRate {
  std::string from;  ///< a memory or a GPU
  std::string to;
  GBps rate;

  friend bool operator==(const CopyRate&, const CopyRate&) = default;
};

/// Copies that are active together, and the steady rate of each.
struct TableRow {
  using Rates = std::vector<std::pair<std::string, GBps>>;  ///< by GPU

  Rates h2d = {};                         ///< from the first memory
  Rates d2h = {};                         ///< to the first memory
  std::vector<CopyRate> copies = {};      ///< from and to further memories, and between GPUs
  RateSource source = RateSource::Table;  ///< measured or interpolated

  friend bool operator==(const TableRow&, const TableRow&) = default;
};

/// Most multiprocessors of a GPU that gates have for themselves: a few are enough for any number of gates.
inline constexpr int kMostGateSms = 64;

/// Largest spread of a machine's rates: with more, they are not known.
inline constexpr double kWidestSpread = 0.5;

struct MachineSpec {
  std::string name;
  std::optional<Provenance> provenance = {};
  std::vector<Vertex> vertices = {};
  std::vector<LinkSpec> links = {};
  std::vector<SharedSpec> shared = {};
  std::vector<BackgroundSpec> background = {};
  SharingWeights weights = {};
  PeerSpec peer_access = {};
  SetupTimes setup = {};
  Margin margin = {};
  double spread = 0;  ///< how far rates vary from run to run, relative, 0 to `kWidestSpread`
  StagingSpec staging = {};
  std::string gate{kGateWords.front()};  ///< for hardware: one of `kGateWords`
  int conductor_sms = 0;  ///< multiprocessors of each GPU on which gates alone run where a GPU leads jobs; kernels of
                          ///< these jobs have the others; 0: they share all
  std::vector<std::vector<std::string>> symmetric = {};  ///< groups of GPUs that may change places in the table
  std::vector<TableRow> table = {};                      ///< measured combinations

  friend bool operator==(const MachineSpec&, const MachineSpec&) = default;
};

}  // namespace tutti
