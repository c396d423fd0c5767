#include "model/batch/choose_methods.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "model/batch/batch_simulation.hpp"
#include "model/transfer/transfer_method.hpp"

namespace tutti::internal {
namespace {

/// Groups of copies that are tried; a large batch has few sizes.
constexpr std::size_t kMostGroups = 64;
/// A smaller gain is rounding.
constexpr double kClearlyShorter = 1 - 1e-6;

/// Copies with the same ends and size.
struct Group {
  std::vector<std::size_t> streams;
  std::vector<CopyMethod> faster;  ///< methods by which such a copy is faster, the fastest first
  double gain = 0;                 ///< ns, of all of them by the first of these
};

/// Whether the machine says what a class of copies by another method than an engine costs.
bool is_known(const Topology& machine, CopyKind kind) {
  return kind != base_of(kind) && !is_of_rows(kind) && machine.setup().transfer.counted(kind) == kind;
}

class Choosing {
 public:
  Choosing(const Batch& batch, Basis basis, const HeldByOthers& held) : batch_(batch), basis_(basis), held_(held) {}

  Batch choose() {
    const std::vector<Group> groups = find_groups();
    Batch best = by_engines();
    if (groups.empty()) return best;
    double shortest = length(best);
    const auto keep_if_shorter = [&](Batch other) {
      const double ns = length(other);
      if (ns >= shortest * kClearlyShorter) return;
      shortest = ns;
      best = std::move(other);
    };
    Batch all = best;
    for (const Group& group : groups) all = with(all, group, group.faster.front());
    keep_if_shorter(std::move(all));
    for (const Group& group : groups) {
      keep_if_shorter(with(best, group, CopyMethod::Automatic));
      for (const CopyMethod method : group.faster) keep_if_shorter(with(best, group, method));
    }
    return best;
  }

 private:
  [[nodiscard]] const Topology& machine() const { return batch_.machine(); }

  [[nodiscard]] Batch by_engines() const {
    Group chosen;
    for (std::size_t s = 0; s < batch_.streams().size(); ++s)
      if (batch_.streams()[s].transfer && batch_.streams()[s].transfer->chosen) chosen.streams.push_back(s);
    return chosen.streams.empty() ? batch_ : with(batch_, chosen, CopyMethod::Automatic);
  }

  std::vector<Group> find_groups() {
    std::map<std::pair<VertexId, VertexId>, std::size_t> copies;
    for (const CommandStream& stream : batch_.streams())
      if (stream.transfer && stream.transfer->size > Bytes{0}) ++copies[{stream.transfer->from, stream.transfer->to}];
    std::map<std::tuple<VertexId, VertexId, std::int64_t>, std::size_t> places;
    std::vector<Group> groups;
    for (std::size_t s = 0; s < batch_.streams().size(); ++s) {
      const auto& transfer = batch_.streams()[s].transfer;
      if (!transfer || !may_choose(*transfer)) continue;
      const auto [place, is_new] =
          places.try_emplace({transfer->from, transfer->to, transfer->size.count}, groups.size());
      if (is_new) groups.push_back(group_of(*transfer, copies[{transfer->from, transfer->to}] > 1));
      groups[place->second].streams.push_back(s);
    }
    for (Group& group : groups) group.gain *= static_cast<double>(group.streams.size());
    std::erase_if(groups, [](const Group& group) { return group.faster.empty(); });
    std::ranges::stable_sort(groups, std::greater<>{}, &Group::gain);
    if (groups.size() > kMostGroups) groups.resize(kMostGroups);
    return groups;
  }

  [[nodiscard]] bool may_choose(const Transfer& transfer) const {
    return goes_up(machine(), transfer) && transfer.size > Bytes{0} &&
           (transfer.method == CopyMethod::Automatic || transfer.chosen);
  }

  /// Whether a method moves a copy here for costs of its own, and nothing else is against it.
  [[nodiscard]] bool is_candidate(Transfer transfer, CopyMethod asked) const {
    transfer.method = asked;
    const RouteView route = find_route(machine(), transfer);
    if (!route.found() || !is_known(machine(), route.kind)) return false;
    const TransferMethod& method = route.method;
    const VertexId gpu = machine().vertex(transfer.to).kind == VertexKind::Gpu ? transfer.to : transfer.from;
    if (method.by_kernel && held_.gpus.contains(gpu)) return false;
    if (method.mapped && held_.host) return false;
    return !machine().is_led_by_gpu() || !(method.captured || method.mapped);
  }

  /// @param with_others  whether other copies of the batch have the same ends: then no command carries it
  [[nodiscard]] Group group_of(const Transfer& transfer, bool with_others) const {
    std::vector<std::pair<double, CopyMethod>> faster;  // by minus what they gain for a copy
    const auto compare = [&](std::size_t copies) {
      const auto engine = time_of(transfer, CopyMethod::Engine, copies);
      for (const CopyMethod method : kCopyMethods)
        if (engine && is_candidate(transfer, method))
          if (const auto ns = time_of(transfer, method, copies); ns && *ns < *engine)
            faster.emplace_back((*ns - *engine) / static_cast<double>(copies), method);
    };
    compare(1);
    if (with_others) compare(2);
    std::ranges::sort(faster);
    Group group;
    for (const auto& [ns, method] : faster)
      if (std::ranges::find(group.faster, method) == group.faster.end()) group.faster.push_back(method);
    if (!faster.empty()) group.gain = -faster.front().first;
    return group;
  }

  /// How long so many copies by a method take with nothing beside; none where it moves none.
  [[nodiscard]] std::optional<double> time_of(Transfer transfer, CopyMethod method, std::size_t copies) const {
    transfer.method = method;
    std::vector<CommandStream> streams;
    for (std::size_t i = 0; i < copies; ++i) streams.push_back({std::to_string(i), transfer, {}, {}});
    auto batch = Batch::make(machine(), std::move(streams));
    return batch ? std::optional(length(*batch)) : std::nullopt;
  }

  [[nodiscard]] double length(const Batch& batch) const {
    simulation_.load(machine(), basis_, batch, RateRule::MaxMin);
    simulation_.run_forward({});
    return simulation_.latency_ns();
  }

  [[nodiscard]] Batch with(const Batch& batch, const Group& group, CopyMethod method) const {
    std::vector<CommandStream> streams(batch.streams().begin(), batch.streams().end());
    for (const std::size_t s : group.streams) {
      streams[s].transfer->method = method;
      streams[s].transfer->chosen = method != CopyMethod::Automatic;
    }
    return Batch::make(machine(), std::move(streams), batch.merging()).value();
  }

  const Batch& batch_;
  Basis basis_;
  const HeldByOthers& held_;
  mutable BatchSimulation simulation_;
};

bool has_choice(const Topology& machine) {
  return std::ranges::any_of(kCopyKinds, [&](CopyKind kind) { return is_known(machine, kind); });
}

}  // namespace

Batch choose_methods(Batch batch, Basis basis, const HeldByOthers& held) {
  return has_choice(batch.machine()) ? Choosing(batch, basis, held).choose() : batch;
}

}  // namespace tutti::internal
