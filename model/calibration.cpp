#include "model/calibration.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <numeric>

#include <fmt/format.h>

#include "model/graph_fit.hpp"
#include "model/rate_corrections.hpp"
#include "model/steady_rates.hpp"

namespace tutti {
namespace {

constexpr std::size_t kMostEnumerated = 4;  // GPUs of which every combination is looked at
constexpr std::size_t kMostRows = 2'000;

std::size_t sets_of(std::size_t gpus) { return std::size_t{1} << (2 * gpus); }

/// Rates of the table and guaranteed bandwidths have four digits: finer than any measurement repeats.
double unit_of(double rate) { return std::pow(10, std::floor(std::log10(rate)) - 3); }
double rounded(double rate) {
  const double inverse = std::round(1 / unit_of(rate));
  return inverse >= 1 ? std::round(rate * inverse) / inverse : std::round(rate);
}
double rounded_down(double rate) {
  const double inverse = std::round(1 / unit_of(rate));
  return inverse >= 1 ? std::floor(rate * inverse) / inverse : std::floor(rate);
}

// ---- before the fit

/// One memory, one processor, every GPU on a link of its own. The bandwidths are to be fitted.
Topology star(std::size_t gpus) {
  const Bandwidth any{{50}, {50}};
  TopologyBuilder builder("calibrated");
  const auto add = [&](std::string vertex_name, VertexKind kind) {
    Vertex vertex;
    vertex.name = std::move(vertex_name);
    vertex.kind = kind;
    builder.vertex({std::move(vertex)});
  };
  add("mem0", VertexKind::Memory);
  add("cpu0", VertexKind::Cpu);
  for (std::size_t g = 0; g < gpus; ++g) add(fmt::format("gpu{}", g), VertexKind::Gpu);
  builder.link({"mem0", "cpu0", any, any});
  for (std::size_t g = 0; g < gpus; ++g) builder.link({"cpu0", fmt::format("gpu{}", g), any, any});
  return builder.build().value();
}

/// Leaves out combinations that move more over a link than it can carry by its standard.
void leave_out_impossible(const Topology& machine, CleanMeasurements& clean) {
  constexpr double kSlack = 1.02;
  const auto exceeded = [&](const Combination& combination) {
    if (!has_ways(machine, combination.streams)) return false;
    std::vector<double> load(machine.links().size(), 0);
    const auto positions = positions_of(combination.streams);
    for (std::size_t i = 0; i < positions.size(); ++i) {
      const auto [from, to] = ends_of(machine, HostStream::at(positions[i]));
      for (const LinkId link : machine.route(from, to)) load[link.index()] += combination.rates[i];
    }
    for (std::size_t l = 0; l < load.size(); ++l) {
      const Link& link = machine.links()[l];
      if (!link.theoretical || load[l] <= kSlack * link.theoretical->value) continue;
      clean.left_out.push_back(fmt::format("{} moves {:.1f} GB/s over {} -> {}, which carries {} at most",
                                           streams_text(combination.streams), load[l], machine.vertex(link.from).name,
                                           machine.vertex(link.to).name, to_string(*link.theoretical)));
      return true;
    }
    return false;
  };
  std::erase_if(clean.combinations, exceeded);
}

/// What keeps the measurements from being used with the machine.
std::optional<std::string> misfit(const Topology& machine, const CleanMeasurements& clean, std::size_t measured_gpus) {
  if (clean.combinations.empty()) return "there is no combination of streams that can be used; measure some rates";
  if (machine.memories().empty()) return "the machine has no memory; add a vertex of kind memory";
  if (measured_gpus > machine.gpus().size()) {
    return fmt::format("gpu {} was measured, and the machine '{}' has {} GPUs; name the machine that was measured",
                       measured_gpus - 1, machine.name(), machine.gpus().size());
  }
  if (machine.gpus().size() > MeasuredTable::kMostGpus) {
    return fmt::format("{} GPUs; a calibration serves {} at most", machine.gpus().size(), MeasuredTable::kMostGpus);
  }
  StreamSet measured = 0;
  for (const Combination& combination : clean.combinations) measured |= combination.streams;
  for (std::uint32_t position = 0; position < 2 * machine.gpus().size(); ++position) {
    if (!has_ways(machine, StreamSet{1} << position))
      return fmt::format("the machine '{}' has no way for {}; add the missing links", machine.name(),
                         streams_text(StreamSet{1} << position));
    if ((measured >> position & 1U) == 0)
      return fmt::format("{} was never measured; measure every stream at least once, best alone",
                         streams_text(StreamSet{1} << position));
  }
  return std::nullopt;
}

// ---- what is guaranteed

/// Rates that must not be undercut.
struct Floor {
  StreamSet streams;
  std::vector<double> rates;
};

/// Lowers the guaranteed side of a machine's bandwidths until none of the floors is above what the graph says.
///
/// Where a stream is too fast, that one of its capacities is lowered which has to lose the least part to hold it back,
/// by what the stream alone has too much. Each round lowers something, and rates fall with the capacities in the end,
/// though not always at once.
class Guarantee {
 public:
  explicit Guarantee(const Topology& machine) : machine_(machine) {
    for (const double value : machine.capacities(Basis::Guaranteed)) values_.push_back(value);
  }

  Topology under(const std::vector<Floor>& floors) {
    constexpr int kMostRounds = 1'000;
    for (int round = 0; round < kMostRounds; ++round) {
      const Topology now = build(false);
      std::vector<double> lowered = values_;
      for (const Floor& floor : floors) lower(now, floor, lowered);
      if (lowered == values_) break;
      values_ = lowered;
    }
    return build(true);
  }

 private:
  /// @param round  down, for the file.
  [[nodiscard]] Topology build(bool round) const {
    auto links = link_entries(machine_);
    auto shared = shared_entries(machine_);
    const auto before = machine_.capacities(Basis::Guaranteed);
    const auto write = [&](Bandwidth& bandwidth, std::size_t c) {
      bandwidth.guaranteed = {round && values_[c] < before[c] ? rounded_down(values_[c]) : values_[c]};
    };
    for (std::size_t i = 0; i < links.size(); ++i) write(links[i].bandwidth, i);
    for (std::size_t i = 0; i < shared.size(); ++i) write(shared[i].capacity, links.size() + i);
    return TopologyBuilder(machine_).links(links).shared(shared).build().value();
  }

  void lower(const Topology& now, const Floor& floor, std::vector<double>& lowered) {
    constexpr double kTolerance = 1e-7;
    const auto rates = steady_.find(now, Basis::Guaranteed, floor.streams).rates;
    std::vector<double> load(values_.size(), 0);
    const auto positions = positions_of(floor.streams);
    for (std::size_t i = 0; i < positions.size(); ++i)
      for_uses(now, positions[i], [&](const CapacityUse& use) { load[use.capacity.index()] += use.cost * rates[i]; });
    for (std::size_t i = 0; i < positions.size(); ++i) {
      if (rates[i] <= floor.rates[i] * (1 + kTolerance)) continue;
      double least = 1;  // part that a capacity must lose, to hold the stream back alone
      std::size_t chosen = 0;
      double enough = 0;
      for_uses(now, positions[i], [&](const CapacityUse& use) {
        const std::size_t c = use.capacity.index();
        const double value = load[c] - use.cost * (rates[i] - floor.rates[i]);
        if (1 - value / values_[c] >= least) return;
        least = 1 - value / values_[c];
        chosen = c;
        enough = value;
      });
      lowered[chosen] = std::min(lowered[chosen], enough);
    }
  }

  template <class Visit>
  static void for_uses(const Topology& machine, std::uint32_t position, Visit visit) {
    const auto [from, to] = ends_of(machine, HostStream::at(position));
    for (const LinkId link : machine.route(from, to))
      for (const CapacityUse& use : machine.uses(link)) visit(use);
  }

  const Topology& machine_;
  std::vector<double> values_;  // [capacities]
  SteadyRates steady_;
};

// ---- the table

/// A combination with the parts of two GPUs exchanged.
StreamSet exchanged(StreamSet streams, std::uint32_t a, std::uint32_t b) {
  const StreamSet differ = (streams >> (2 * a) ^ streams >> (2 * b)) & 3U;
  return streams ^ differ << (2 * a) ^ differ << (2 * b);
}

std::uint32_t exchanged_position(std::uint32_t position, std::uint32_t a, std::uint32_t b) {
  const std::uint32_t gpu = position / 2;
  return gpu == a ? 2 * b + position % 2 : gpu == b ? 2 * a + position % 2 : position;
}

class TableMaker {
 public:
  TableMaker(std::size_t gpus, const CleanMeasurements& clean, const RateCorrections& corrections)
      : gpus_(gpus), clean_(clean), corrections_(corrections) {
    for (const Combination& combination : clean.combinations) measured_.push_back(combination.streams);
    if (gpus > kMostEnumerated) {
      all_ = measured_;
    } else {
      for (StreamSet streams = 1; streams < sets_of(gpus); ++streams) all_.push_back(streams);
    }
  }

  /// GPUs whose exchange changes no rate, in groups of two and more. Where that leaves too many combinations to write
  /// down, larger changes are let pass.
  std::vector<std::vector<std::uint32_t>> find_alike() {
    for (;; tolerance_ *= 1.5) {
      auto groups = find_alike_now();
      if (count_classes(groups) <= kMostRows) return groups;
    }
  }
  /// By how much more than usual the rates of GPUs that are taken for alike may differ.
  [[nodiscard]] double tolerance() const { return tolerance_; }

 private:
  std::vector<std::vector<std::uint32_t>> find_alike_now() {
    std::vector<std::vector<std::uint32_t>> groups;
    for (std::uint32_t gpu = 0; gpu < gpus_; ++gpu) {
      const auto fits = [&](const auto& group) {
        return std::all_of(group.begin(), group.end(), [&](std::uint32_t other) { return alike(other, gpu); });
      };
      const auto group = std::find_if(groups.begin(), groups.end(), fits);
      if (group == groups.end()) {
        groups.push_back({gpu});
      } else {
        group->push_back(gpu);
      }
    }
    std::erase_if(groups, [](const auto& group) { return group.size() < 2; });
    return groups;
  }

  /// Classes of combinations: of n GPUs that are alike so many may go up, down, both ways: C(n + 3, 3).
  [[nodiscard]] std::size_t count_classes(const std::vector<std::vector<std::uint32_t>>& alike) const {
    std::size_t classes = 1, grouped = 0;
    for (const auto& group : alike) {
      classes *= (group.size() + 3) * (group.size() + 2) * (group.size() + 1) / 6;
      grouped += group.size();
    }
    return classes * sets_of(gpus_ - grouped) - 1;
  }

 public:
  /// One row of every class of combinations: what was measured of it, or else the corrected rates.
  std::vector<StreamRates> rows(const std::vector<std::vector<std::uint32_t>>& alike) {
    group_of_.assign(gpus_, 0);
    std::iota(group_of_.begin(), group_of_.end(), 0U);
    for (const auto& group : alike)
      for (const std::uint32_t gpu : group) group_of_[gpu] = group.front();
    std::map<StreamSet, Row> classes;
    for (const Combination& combination : clean_.combinations) {
      Row& row = classes[canonical(combination.streams)];
      row.source = RateSource::Table;
      add(row, combination.streams, combination.rates);
    }
    for (StreamSet streams = 1; streams < sets_of(gpus_); ++streams)
      if (canonical(streams) == streams) classes.try_emplace(streams);
    for (const StreamSet streams : all_) {
      const auto row = classes.find(canonical(streams));
      if (row != classes.end() && row->second.source != RateSource::Table) add(row->second, streams, rates(streams));
    }
    std::vector<StreamRates> rows;
    for (auto& [streams, row] : classes) {
      if (row.sums.empty()) add(row, streams, rates(streams));
      rows.push_back({streams, {}, row.source});
      for (const std::uint32_t position : positions_of(streams)) {
        const auto& [sum, count] = row.sums.at(role(streams, position));
        rows.back().rates.push_back(rounded(sum / count));
      }
    }
    return rows;
  }

 private:
  using Role = std::pair<std::uint32_t, std::uint32_t>;  // group; direction, and whether its GPU does both
  struct Row {
    RateSource source = RateSource::Interpolated;
    std::map<Role, std::pair<double, double>> sums;  // of rates, and how many
  };

  [[nodiscard]] const std::vector<double>& rates(StreamSet streams) {
    auto& known = rates_[streams];
    if (known.empty()) known = corrections_.rates(streams);
    return known;
  }

  [[nodiscard]] double rate(StreamSet streams, std::uint32_t position) {
    return rates(streams)[place_in(streams, position)];
  }

  [[nodiscard]] bool alike(std::uint32_t a, std::uint32_t b) {
    const double tolerance = tolerance_ * std::max(0.02, 4 * corrections_.noise());
    for (const StreamSet streams : all_) {
      const StreamSet other = exchanged(streams, a, b);
      for (const std::uint32_t position : positions_of(streams)) {
        const double ratio = rate(other, exchanged_position(position, a, b)) / rate(streams, position);
        if (std::abs(std::log(ratio)) > tolerance) return false;
      }
    }
    return true;
  }

  /// The first of the combinations that come from one another by exchanging GPUs that are alike.
  [[nodiscard]] StreamSet canonical(StreamSet streams) const {
    std::vector<std::vector<std::uint32_t>> states(gpus_);  // by group
    for (std::uint32_t gpu = 0; gpu < gpus_; ++gpu) states[group_of_[gpu]].push_back(state_of(streams, gpu));
    for (auto& of_group : states) std::sort(of_group.begin(), of_group.end());
    StreamSet result = 0;
    for (std::uint32_t gpu = 0; gpu < gpus_; ++gpu) {
      result |= states[group_of_[gpu]].back() << (2 * gpu);
      states[group_of_[gpu]].pop_back();
    }
    return result;
  }

  [[nodiscard]] Role role(StreamSet streams, std::uint32_t position) const {
    const std::uint32_t gpu = position / 2;
    const std::uint32_t both = state_of(streams, gpu) == 3 ? 2 : 0;
    return {group_of_[gpu], position % 2 + both};
  }

  void add(Row& row, StreamSet streams, const std::vector<double>& rates) {
    const auto positions = positions_of(streams);
    for (std::size_t i = 0; i < positions.size(); ++i) {
      auto& [sum, count] = row.sums[role(streams, positions[i])];
      sum += rates[i];
      count += 1;
    }
  }

  std::size_t gpus_;
  double tolerance_ = 1;
  const CleanMeasurements& clean_;
  const RateCorrections& corrections_;
  std::vector<StreamSet> measured_, all_;
  std::map<StreamSet, std::vector<double>> rates_;
  std::vector<std::uint32_t> group_of_;
};

// ---- together

/// The same measurements, the same word.
std::string fingerprint(const CleanMeasurements& clean) {
  std::uint64_t hash = 0xcbf2'9ce4'8422'2325U;  // FNV-1a
  const auto add = [&](double value) {
    for (auto bits = std::bit_cast<std::uint64_t>(value); const int shift : {0, 8, 16, 24, 32, 40, 48, 56})
      hash = (hash ^ (bits >> shift & 0xffU)) * 0x100'0000'01b3U;
  };
  for (const Combination& combination : clean.combinations) {
    add(combination.streams);
    for (const double rate : combination.rates) add(rate);
    for (const double rate : combination.lowest) add(rate);
  }
  for (const MeasuredBatch& batch : clean.batches)
    for (const auto& stream : batch.streams) {
      add(stream.stream.position());
      add(stream.bytes);
      add(stream.finish_ns);
    }
  return fmt::format("{:016x}", hash);
}

Provenance provenance(const Measurements& measurements, const CleanMeasurements& clean) {
  constexpr std::size_t kLongest = 300;
  Provenance result;
  result.date = measurements.date.empty() ? "unknown" : measurements.date.substr(0, kLongest);
  result.host = measurements.host.substr(0, kLongest);
  result.sizes = measurements.sizes.empty() ? "unknown" : measurements.sizes.substr(0, kLongest);
  result.fingerprint = fingerprint(clean);
  result.combinations = static_cast<int>(clean.combinations.size());
  result.batches = static_cast<int>(clean.batches.size());
  result.repetitions = clean.combinations.front().repetitions;
  for (const Combination& combination : clean.combinations)
    result.repetitions = std::min(result.repetitions, combination.repetitions);
  return result;
}

/// The lowest that was measured of each combination, and the rows of the table: up to four GPUs for all GPUs that are
/// alike, beyond that for those that stand in the row.
std::vector<Floor> floors(const CleanMeasurements& clean, const MeasuredTable& table, std::size_t gpus) {
  std::vector<Floor> floors;
  for (const auto& combinations : {clean.combinations, clean.doubtful})
    for (const Combination& combination : combinations) floors.push_back({combination.streams, combination.lowest});
  if (gpus > kMostEnumerated) {
    for (const StreamRates& row : table.entries()) floors.push_back({row.streams, row.rates});
    return floors;
  }
  for (StreamSet streams = 1; streams < sets_of(gpus); ++streams) {
    if (table.row(streams) == MeasuredTable::kNoRow) continue;
    floors.push_back({streams, {}});
    for (const std::uint32_t position : positions_of(streams))
      floors.back().rates.push_back(table.rate(table.row(streams), streams, position).value);
  }
  return floors;
}

}  // namespace

Expected<Calibration> calibrate(const Measurements& measurements, const std::optional<Topology>& base) {
  CleanMeasurements clean_data = clean(measurements);
  const std::size_t gpus = measurements.gpus();
  if (gpus > MeasuredTable::kMostGpus)
    return invalid_input(
        fmt::format("gpu {} was measured; a calibration serves {} GPUs at most", gpus - 1, MeasuredTable::kMostGpus));
  const Topology blank = base ? *base : star(gpus);
  leave_out_impossible(blank, clean_data);
  if (auto sentence = misfit(blank, clean_data, gpus)) {
    for (const std::string& left_out : clean_data.left_out) *sentence += "\n  left out: " + left_out;
    return invalid_input(*std::move(sentence));
  }
  GraphFit fit = fit_graph(blank, clean_data.combinations);
  SteadyRates steady;
  const auto graph = [&](StreamSet streams) { return steady.find(fit.machine, Basis::Nominal, streams).rates; };
  const RateCorrections corrections(blank.gpus().size(), graph, clean_data.combinations, clean_data.batches);
  TableMaker maker(blank.gpus().size(), clean_data, corrections);
  const auto alike = maker.find_alike();
  const auto rows = maker.rows(alike);
  if (maker.tolerance() > 1)
    fit.undetermined.push_back(
        "GPUs are taken for alike whose rates differ more than the measurements scatter: the "
        "table would have too many rows otherwise");

  const auto table = MeasuredTable::make(blank.gpus().size(), alike, rows).value();
  const Topology guaranteed = Guarantee(fit.machine).under(floors(clean_data, table, blank.gpus().size()));
  TopologyBuilder builder(guaranteed);
  builder.provenance(provenance(measurements, clean_data));
  if (!clean_data.batches.empty()) {
    SetupTimes setup = blank.setup();
    setup.batch = round_up_ns(std::round(corrections.setup_ns() / 100) * 100);
    builder.setup(setup);
  }
  const Topology by_graph = builder.build().value();
  const auto gpu_name = [&](std::uint32_t gpu) { return by_graph.vertex(by_graph.gpus()[gpu]).name; };
  for (const auto& group : alike) {
    std::vector<std::string> names;
    for (const std::uint32_t gpu : group) names.push_back(gpu_name(gpu));
    builder.alike(std::move(names));
  }
  for (const StreamRates& row : rows) {
    TableEntry entry;
    entry.source = row.source;
    const auto positions = positions_of(row.streams);
    for (std::size_t i = 0; i < positions.size(); ++i) {
      const auto [gpu, direction] = HostStream::at(positions[i]);
      (direction == Direction::HostToDevice ? entry.h2d : entry.d2h).emplace_back(gpu_name(gpu), row.rates[i]);
    }
    builder.table(std::move(entry));
  }
  const Topology machine = builder.build().value();
  return Calibration{machine,
                     compare_with(by_graph, clean_data),
                     compare_with(plain_model(by_graph), clean_data),
                     compare_with(machine, clean_data),
                     corrections.noise(),
                     corrections.batch_speed(),
                     std::move(clean_data.left_out),
                     std::move(fit.undetermined)};
}

}  // namespace tutti
