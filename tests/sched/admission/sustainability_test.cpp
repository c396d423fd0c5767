// Better is not worse: a set that just holds still holds with less work, a faster machine or more time. Two of the
// exceptions in sched/README.md concern the sets that are drawn here, which are sporadic: under dm a later deadline is
// another order, and the search for local deadlines may fail.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "sched/admission/admission.hpp"
#include "tests/support/overlap_sets.hpp"
#include "tests/support/random.hpp"
#include "tests/support/yaml_text.hpp"

namespace tutti::internal {
namespace {

using test::Random;
using test::stretched;

template <class T>
T& one_of(std::vector<T>& all, Random& random) {
  return all[random.below(all.size())];
}

Duration shorter(Duration time, Random& random) { return time * random.between(0, 9) / 10; }
Duration longer(Duration time, Random& random) { return time * random.between(11, 20) / 10; }

template <class Step>
std::vector<Step*> steps_of(TaskSet& set) {
  std::vector<Step*> steps;
  for (Task& task : set.tasks)
    for (JobStep& step : task.steps)
      if (auto* const one = std::get_if<Step>(&step)) steps.push_back(one);
  return steps;
}

/// The set with one of its streams changed; as it was where there is none.
/// @param change  of a `CommandStream&`
template <class Change>
TaskSet with_a_stream(TaskSet set, Random& random, Change change) {
  std::vector<std::pair<Batch*, std::size_t>> places;
  for (Batch* const batch : steps_of<Batch>(set))
    for (std::size_t s = 0; s < batch->streams().size(); ++s) places.emplace_back(batch, s);
  if (places.empty()) return set;
  const auto [batch, place] = one_of(places, random);
  std::vector<CommandStream> streams(batch->streams().begin(), batch->streams().end());
  change(streams[place]);
  *batch = Batch::make(*set.machine, std::move(streams), batch->merging()).value();
  return set;
}

template <class Change>
TaskSet on_better_machine(const TaskSet& set, Change change) {
  return test::on_machine(set, test::changed(*set.machine, change));
}

/// A link's rate in one direction, raised; the other one keeps its own.
void raise(MachineSpec& spec, Random& random, Basis basis) {
  LinkSpec& link = one_of(spec.links, random);
  LinkBandwidth& rate = link.back && random.one_in(2) ? *link.back : link.bandwidth;
  const double factor = random.between(11, 20) / 10.0;
  (basis == Basis::Guaranteed ? rate.guaranteed : rate.nominal).value *= factor;
  rate.nominal = std::max(rate.nominal, rate.guaranteed);
  if (rate.theoretical) rate.theoretical = std::max(*rate.theoretical, rate.nominal);
}

/// One way to be better.
struct Way {
  std::string_view name;
  TaskSet (*improve)(TaskSet set, Random& random);
  bool reorders = false;  ///< jobs under dm
};
constexpr std::array kWays{
    Way{"a smaller copy",
        [](TaskSet set, Random& random) {
          return with_a_stream(std::move(set), random, [&](CommandStream& stream) {
            if (stream.transfer) stream.transfer->size.count = stream.transfer->size.count * random.between(0, 9) / 10;
          });
        }},
    Way{"a shorter kernel",
        [](TaskSet set, Random& random) {
          return with_a_stream(std::move(set), random, [&](CommandStream& stream) {
            if (stream.kernel) stream.kernel->time = stream.kernel->worst = shorter(stream.kernel->worst, random);
          });
        }},
    Way{"a shorter host step",
        [](TaskSet set, Random& random) {
          std::vector<HostStep*> steps = steps_of<HostStep>(set);
          if (steps.empty()) return set;
          HostStep& step = *one_of(steps, random);
          step.time = shorter(step.time, random);
          return set;
        }},
    Way{"a faster link",
        [](TaskSet set, Random& random) {
          return on_better_machine(set, [&](MachineSpec& spec) { raise(spec, random, Basis::Nominal); });
        }},
    Way{"a link that guarantees more",
        [](TaskSet set, Random& random) {
          return on_better_machine(set, [&](MachineSpec& spec) { raise(spec, random, Basis::Guaranteed); });
        }},
    Way{"a later deadline",
        [](TaskSet set, Random& random) {
          Task& task = one_of(set.tasks, random);
          task.deadline = longer(task.deadline, random);
          return set;
        },
        true},
    Way{"a longer period",
        [](TaskSet set, Random& random) {
          Task& task = one_of(set.tasks, random);
          task.period = longer(task.period, random);
          return set;
        }},
    Way{"less jitter",
        [](TaskSet set, Random& random) {
          Task& task = one_of(set.tasks, random);
          task.jitter = shorter(task.jitter, random);
          return set;
        }},
    Way{"a copy engine more",
        [](TaskSet set, Random& random) {
          const VertexId gpu = set.machine->gpus()[random.below(set.machine->gpus().size())];
          return on_better_machine(set, [&](MachineSpec& spec) { ++spec.vertices[gpu.index()].copy_engines; });
        }},
    Way{"a core more",
        [](TaskSet set, Random&) {
          return on_better_machine(set, [](MachineSpec& spec) {
            for (Vertex& vertex : spec.vertices) vertex.cores += vertex.kind == VertexKind::Cpu ? 1 : 0;
          });
        }},
    Way{"a GPU more",
        [](TaskSet set, Random&) {
          return on_better_machine(set, [](MachineSpec& spec) {
            Vertex gpu = *std::ranges::find(spec.vertices, VertexKind::Gpu, &Vertex::kind);
            gpu.name = "gpu9";
            spec.vertices.push_back(gpu);
            spec.links.push_back(spec.links[1]);
            spec.links.back().to = "gpu9";
          });
        }},
    Way{"smaller costs",
        [](TaskSet set, Random&) { return on_better_machine(set, [](MachineSpec& spec) { spec.setup = {}; }); }},
};

bool holds(const TaskSet& set) { return AdmissionController(planners().front()).answer(set) == Answer::Schedulable; }

/// A random set whose periods and deadlines are as short as it holds with, to 2 %.
TaskSet set_at_the_edge(Random& random, Overlap overlap) {
  const Topology machine = test::changed(test::overlap_machine(), [&](MachineSpec& spec) {
    if (random.one_in(2)) return;
    spec.setup.batch = Duration{random.between(0, 200)};
    spec.setup.transfer = Duration{random.between(0, 100)};
    spec.setup.kernel = Duration{random.between(0, 100)};
    spec.setup.dispatch = Duration{random.between(0, 100)};
    spec.setup.job = Duration{random.between(0, 100)};
  });
  TaskSet set = test::random_overlap_set(random, machine);
  set.overlap = overlap;
  double low = 0.02, high = 64;
  while (high > 1.02 * low) {
    const double middle = std::sqrt(low * high);
    (holds(stretched(set, middle)) ? high : low) = middle;
  }
  return stretched(set, high);
}

struct Found {
  int tries = 0;
  std::array<int, kWays.size()> worse{};  ///< by way
};

Found tried(int sets, Overlap overlap) {
  Found found;
  for (int seed = 1; seed <= sets; ++seed) {
    Random random(static_cast<std::uint64_t>(seed));
    const TaskSet set = set_at_the_edge(random, overlap);
    if (!holds(set)) continue;
    for (std::size_t way = 0; way < kWays.size(); ++way) {
      const TaskSet better = kWays[way].improve(set, random);
      if (kWays[way].reorders && set.policy == Policy::Dm) continue;
      ++found.tries;
      found.worse[way] += holds(better) ? 0 : 1;
    }
  }
  return found;
}

int sets_to_try() {
  const char* const asked = std::getenv("TUTTI_EDGE_SETS");
  return asked != nullptr ? std::atoi(asked) : test::rounds(48);
}

class Sustainability : public testing::TestWithParam<Overlap> {};

TEST_P(Sustainability, BetterIsNotWorse) {
  const Found found = tried(sets_to_try(), GetParam());
  std::string each = fmt::format("of {} tries", found.tries);
  for (std::size_t way = 0; way < kWays.size(); ++way)
    if (found.worse[way] > 0) each += fmt::format(", {} with {}", found.worse[way], kWays[way].name);
  const int worse = std::accumulate(found.worse.begin(), found.worse.end(), 0);
  if (GetParam() == Overlap::Off)
    EXPECT_EQ(worse, 0) << each;
  else
    EXPECT_LE(200 * worse, found.tries) << each;
  EXPECT_GT(found.tries, 5 * sets_to_try()) << "sets that hold when stretched";
  RecordProperty("worse", each);
}
INSTANTIATE_TEST_SUITE_P(Admission, Sustainability, testing::Values(Overlap::Off, Overlap::On, Overlap::Auto),
                         [](const auto& of) { return std::string(to_string(of.param)); });

}  // namespace
}  // namespace tutti::internal
