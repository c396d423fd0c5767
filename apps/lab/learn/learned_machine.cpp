#include "apps/lab/learn/learned_machine.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>

#include <fmt/format.h>

#include "model/base/joined.hpp"
#include "model/machine/machine_yaml.hpp"

namespace tutti::internal {
namespace {

/// A rate of links that no copy of the trace has used.
constexpr double kGuessedRate = 25;
/// Rates beyond these are damage of the trace, GB/s.
constexpr double kLowestRate = 0.001, kHighestRate = 10'000;
/// Copies together are slower than alone where they reach less than this share of the sum.
constexpr double kSumWhereFree = 0.97;
/// Ports were active together where they were for this long, ns.
constexpr double kLongEnough = 50'000;

/// Rates as files have them, to the safe side where they are guaranteed.
GBps nearest(double rate) { return {std::clamp(std::round(rate * 1000) / 1000, kLowestRate, kHighestRate)}; }
GBps below(double rate) { return {std::clamp(std::floor(rate * 1000) / 1000, kLowestRate, kHighestRate)}; }
Bandwidth bandwidth_of(double usual, double lowest) {
  const GBps guaranteed = below(std::min(usual, lowest > 0 ? lowest : usual));
  return {std::max(nearest(usual), guaranteed), guaranteed};
}

/// The directions of a link.
struct LinkRates {
  Bandwidth rate;
  bool seen = false;
};

class MachineMaker {
 public:
  MachineMaker(const TraceRates& rates, std::size_t gpus, int cores) : rates_(&rates), gpus_(gpus) {
    make_vertices(cores);
  }

  LearnedMachine make() {
    for (std::size_t gpu = 0; gpu < gpus_; ++gpu) add_gpu(gpu);
    add_memory(false, learned_memory_name(false));
    if (has_pageable()) add_memory(true, learned_memory_name(true));
    for (std::size_t port = 0; port < rates_->ports.size(); ++port) add_peer(port);
    share_where_slower();
    add_costs();
    machine_.guessed.push_back("how many copy engines the GPUs have: one for each direction");
    machine_.guessed.push_back("how many cores the host has for the steps between batches: one a task");
    return std::move(machine_);
  }

 private:
  [[nodiscard]] bool has_pageable() const { return std::ranges::any_of(rates_->ports, &RecordedPort::pageable); }
  void make_vertices(int cores) {
    machine_.spec.name = "learned";
    machine_.spec.vertices.push_back({.name = learned_memory_name(false), .kind = VertexKind::Memory});
    if (has_pageable())
      machine_.spec.vertices.push_back({.name = learned_memory_name(true), .kind = VertexKind::Memory});
    machine_.spec.vertices.push_back({.name = "cpu0", .kind = VertexKind::Cpu, .cores = std::clamp(cores, 1, 1024)});
    for (std::size_t gpu = 0; gpu < gpus_; ++gpu)
      machine_.spec.vertices.push_back({.name = learned_gpu_name(gpu), .kind = VertexKind::Gpu});
    machine_.spec.peer_access.mode = PeerMode::None;
  }

  /// The rate of a port alone; where it never was, the highest with others.
  LinkRates port_rate(RecordedPort wanted) {
    for (std::size_t port = 0; port < rates_->ports.size(); ++port)
      if (rates_->ports[port] == wanted) {
        if (const auto alone = rates_->alone(port)) return {bandwidth_of(alone->usual, alone->lowest), true};
        if (const double highest = rates_->highest(port); highest > 0) {
          machine_.guessed.push_back(fmt::format("{} alone: as fast as the fastest with others", name_of(wanted)));
          return {bandwidth_of(highest, highest), true};
        }
      }
    return {GBps{kGuessedRate}, false};
  }
  static std::string name_of(RecordedPort port) {
    const std::string gpu = learned_gpu_name(port.gpu), memory = learned_memory_name(port.pageable);
    if (port.kind == RecordedKind::Up) return memory + " to " + gpu;
    if (port.kind == RecordedKind::Down) return gpu + " to " + memory;
    return gpu + " to " + learned_gpu_name(port.to_gpu);
  }

  void add_gpu(std::size_t gpu) {
    const auto number = static_cast<std::uint16_t>(gpu);
    LinkRates up = port_rate({RecordedKind::Up, number, number, false}),
              down = port_rate({RecordedKind::Down, number, number, false});
    const std::string name = learned_gpu_name(gpu);
    if (!up.seen && !down.seen)
      machine_.guessed.push_back(fmt::format(
          "both directions of {}: {} GB/s, since it has no copy from or to pinned memory", name, kGuessedRate));
    else if (!up.seen)
      machine_.guessed.push_back(fmt::format("copies to {}: as fast as from it", name));
    else if (!down.seen)
      machine_.guessed.push_back(fmt::format("copies from {}: as fast as to it", name));
    if (up.seen) machine_.seen.push_back(fmt::format("{}: {:.2f} GB/s to it", name, up.rate.nominal.value));
    if (down.seen) machine_.seen.push_back(fmt::format("{}: {:.2f} GB/s from it", name, down.rate.nominal.value));
    if (!up.seen && down.seen) up = down;
    if (!down.seen && up.seen) down = up;
    machine_.spec.links.push_back({"cpu0", name, up.rate, LinkBandwidth(down.rate)});
  }

  /// A memory is as wide as all of its copies together, as far as they were seen together.
  void add_memory(bool pageable, const std::string& name) {
    const auto width = [&](RecordedKind kind) {
      double sum = 0, most = 0, lowest = 0;
      std::size_t count = 0;
      for (std::size_t port = 0; port < rates_->ports.size(); ++port) {
        const RecordedPort& each = rates_->ports[port];
        if (each.kind != kind || each.pageable != pageable) continue;
        const auto alone = rates_->alone(port);
        const double rate = alone ? alone->usual : rates_->highest(port);
        sum += rate, ++count;
        most = std::max(most, rate);
        lowest = std::max(lowest, alone && alone->lowest > 0 ? alone->lowest : rate);
      }
      if (count == 0 || sum <= 0) return LinkRates{GBps{kGuessedRate * static_cast<double>(gpus_)}, false};
      if (pageable) return LinkRates{bandwidth_of(most, lowest), true};
      const auto [usual, least] = most_together(kind);
      if (count > 1 && usual <= 0)
        machine_.guessed.push_back(
            fmt::format("{} together: the sum of each alone, and no more than one for a guarantee",
                        kind == RecordedKind::Up ? "copies to several GPUs" : "copies from several GPUs"));
      const double nominal = std::max(sum, usual), guaranteed = count > 1 ? std::max(least, lowest) : lowest;
      return LinkRates{bandwidth_of(nominal, guaranteed), true};
    };
    const LinkRates up = width(RecordedKind::Up), down = width(RecordedKind::Down);
    machine_.spec.links.push_back({name, "cpu0", up.seen ? up.rate : std::max(up.rate, down.rate, slower),
                                   LinkBandwidth(down.seen ? down.rate : std::max(up.rate, down.rate, slower))});
  }
  static bool slower(const Bandwidth& a, const Bandwidth& b) { return a.nominal < b.nominal; }

  /// The sum of the rates of one direction, where all of its ports were active: usual, and the lowest.
  [[nodiscard]] std::pair<double, double> most_together(RecordedKind kind) const {
    return together_of([&](const RecordedPort& port) { return port.kind == kind && !port.pageable; });
  }

  /// @return usual and lowest sum of the rates of these ports, where the most of them were active together; 0: never
  /// two
  [[nodiscard]] std::pair<double, double> together_of(const std::function<bool(const RecordedPort&)>& belongs) const {
    int most = 1;
    double usual = 0, lowest = 0, time = 0;
    for (const auto& [active, seen] : rates_->together) {
      if (rates_->time.at(active) < kLongEnough) continue;
      const auto [count, sum, least] = sum_of(active, seen, belongs);
      if (count < 2 || sum <= 0 || count < most) continue;
      if (count > most) most = count, usual = lowest = time = 0;
      const double weight = rates_->time.at(active);
      usual = (usual * time + sum * weight) / (time + weight);
      time += weight;
      if (least > 0) lowest = lowest > 0 ? std::min(lowest, least) : least;
    }
    return {usual, lowest > 0 ? lowest : usual};
  }

  struct Sum {
    int count;
    double usual, lowest;
  };
  [[nodiscard]] Sum sum_of(ActivePorts active, const std::vector<SeenRate>& seen,
                           const std::function<bool(const RecordedPort&)>& belongs) const {
    Sum sum{0, 0, 0};
    std::size_t rank = 0;
    bool all_lowest = true;
    for (std::size_t port = 0; port < rates_->ports.size(); ++port) {
      if ((active >> port & 1) == 0) continue;
      const SeenRate& rate = seen[rank++];
      if (!belongs(rates_->ports[port]) || rate.usual <= 0) continue;
      ++sum.count;
      sum.usual += rate.usual;
      sum.lowest += rate.lowest;
      all_lowest = all_lowest && rate.lowest > 0;
    }
    if (!all_lowest) sum.lowest = 0;
    return sum;
  }

  void add_peer(std::size_t port) {
    const RecordedPort& peer = rates_->ports[port];
    if (peer.kind != RecordedKind::Peer) return;
    const LinkRates rate = port_rate(peer);
    const std::string from = learned_gpu_name(peer.gpu), to = learned_gpu_name(peer.to_gpu);
    auto& links = machine_.spec.links;
    const auto other =
        std::ranges::find_if(links, [&](const LinkSpec& link) { return link.from == to && link.to == from; });
    if (other != links.end()) {
      other->back = LinkBandwidth(rate.rate);
      return;
    }
    links.push_back({from, to, rate.rate, LinkBandwidth(rate.rate)});
    machine_.spec.peer_access.mode = PeerMode::Pairs;
    machine_.spec.peer_access.pairs.emplace_back(from, to);
    machine_.seen.push_back(fmt::format("{} to {}: {:.2f} GB/s", from, to, rate.rate.nominal.value));
  }

  /// Both directions of a GPU, each direction of all GPUs, and all of them may share something.
  void share_where_slower() {
    for (std::size_t gpu = 0; gpu < gpus_; ++gpu)
      share(learned_gpu_name(gpu) + "-both-ways", [gpu](const RecordedPort& port) {
        return port.gpu == gpu && port.kind != RecordedKind::Peer && !port.pageable;
      });
    if (gpus_ < 2) return;
    share("all-h2d", [](const RecordedPort& port) { return port.kind == RecordedKind::Up && !port.pageable; });
    share("all-d2h", [](const RecordedPort& port) { return port.kind == RecordedKind::Down && !port.pageable; });
    share("host-memory", [](const RecordedPort& port) { return port.kind != RecordedKind::Peer && !port.pageable; });
  }
  void share(const std::string& name, const std::function<bool(const RecordedPort&)>& belongs) {
    const auto [usual, lowest] = together_of(belongs);
    if (usual <= 0) return;
    double alone = 0;
    SharedSpec shared{.name = name};
    for (std::size_t port = 0; port < rates_->ports.size(); ++port) {
      if (!belongs(rates_->ports[port])) continue;
      alone += rates_->alone(port).value_or(SeenRate{rates_->highest(port), 0}).usual;
      const std::string gpu = learned_gpu_name(rates_->ports[port].gpu);
      shared.members.push_back(rates_->ports[port].kind == RecordedKind::Up ? MemberSpec{"cpu0", gpu}
                                                                            : MemberSpec{gpu, "cpu0"});
    }
    machine_.seen.push_back(fmt::format("{} together: {:.2f} GB/s", name, usual));
    if (usual >= kSumWhereFree * alone) return;
    shared.capacity = bandwidth_of(usual, lowest);
    machine_.spec.shared.push_back(std::move(shared));
  }

  /// The largest of all ports of a class of copies.
  void add_costs() {
    for (std::size_t port = 0; port < rates_->ports.size(); ++port) {
      Cost& cost = machine_.spec.setup.transfer.of(learned_copy_kind(rates_->ports[port].kind)).each;
      cost.nominal = std::max(cost.nominal, Duration(std::llround(rates_->setup[port])));
      cost.guaranteed = std::max(
          {cost.guaranteed, cost.nominal, Duration(static_cast<std::int64_t>(std::ceil(rates_->most_setup[port])))});
    }
  }

  const TraceRates* rates_;
  std::size_t gpus_;
  LearnedMachine machine_;
};

}  // namespace

std::string learned_gpu_name(std::size_t gpu) { return fmt::format("gpu{}", gpu); }
std::string learned_memory_name(bool pageable) { return pageable ? "heap0" : "mem0"; }

CopyKind learned_copy_kind(RecordedKind copy) {
  if (copy == RecordedKind::Up) return CopyKind::Up;
  return copy == RecordedKind::Down ? CopyKind::Down : CopyKind::Peer;
}

LearnedMachine learned_machine(const TraceRates& rates, std::size_t gpus, int cores) {
  return MachineMaker(rates, gpus, cores).make();
}

std::string learned_machine_text(const LearnedMachine& machine, const std::string& source) {
  std::string text = fmt::format(
      "# Written by 'tutti learn' from {}. Usual rates are medians, guaranteed ones the lowest that were seen.\n",
      source);
  for (const std::string& sentence : machine.seen) text += fmt::format("# Seen: {}.\n", sentence);
  for (const std::string& sentence : machine.guessed) text += fmt::format("# Guess: {}.\n", sentence);
  text += "# No ground for a guarantee until 'tutti calibrate --machine FILE --out FILE' has measured the host.\n";
  return text + machine_text(machine.spec);
}

}  // namespace tutti::internal
