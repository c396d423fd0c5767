#include "apps/lab/benches/workloads.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "model/base/document.hpp"
#include "model/base/random.hpp"
#include "model/base/suggestion.hpp"
#include "model/transfer/transfer.hpp"

namespace tutti::internal {
namespace {

/// Parts of the published image, 32 : 128 : 128 : 32 MB, and of the wafer image, 40 : 10 : 10 : 40 percent.
constexpr std::array kExampleParts{1, 4, 4, 1};
constexpr std::array kWaferParts{4, 1, 1, 4};
constexpr std::array kEqualParts{1};
/// In the published example kernels process 10 GB/s, behind links of 6 GB/s.
constexpr double kKernelPerLink = 10.0 / 6.0;

/// The published domain decomposition, for an image of the usual size.
constexpr double kDomainBytes = 3.69e9;
constexpr double kBoundaryBytes = 295.2e6;  // between two neighbours, each way
constexpr Duration kBoundaryPoints = std::chrono::milliseconds{1};
constexpr Duration kInnerPoints = std::chrono::milliseconds{23};
constexpr int kExchanges = 100;
constexpr int kDomainRuns = 3;

constexpr int kRandomBatches = 20;
constexpr int kMostStreams = 8;

/// Batches of copies in both directions, with as many streams as those on which a search for plans is measured.
constexpr int kFewestCopies = 4;
constexpr double kDoublings = 6;  ///< from the smallest of these copies to an image
constexpr Duration kLongestWork = std::chrono::milliseconds{2};

/// Splits a whole into `count` parts in the given proportions, repeated cyclically. The parts add up to the whole.
std::vector<Bytes> split(Bytes whole, std::span<const int> proportions, std::size_t count) {
  std::int64_t all = 0;
  for (std::size_t i = 0; i < count; ++i) all += proportions[i % proportions.size()];
  std::vector<Bytes> parts;
  Bytes given{0};
  std::int64_t so_far = 0;
  for (std::size_t i = 0; i < count; ++i) {
    so_far += proportions[i % proportions.size()];
    parts.push_back(Bytes{whole.count * so_far / all} - given);
    given += parts.back();
  }
  return parts;
}

/// Both ends of a possible copy.
struct Route {
  VertexId from, to;
  bool is_up;
};

/// Makes the streams of workloads for one machine.
class Maker {
 public:
  Maker(const Topology& machine, const WorkloadOptions& options) : machine_(machine), options_(options) {}

  [[nodiscard]] const WorkloadOptions& options() const { return options_; }
  [[nodiscard]] std::span<const VertexId> gpus() const { return machine_.gpus(); }
  [[nodiscard]] std::vector<Bytes> parts(Bytes whole, std::span<const int> proportions) const {
    return split(whole, proportions, gpus().size());
  }
  /// A size given for an image of the usual size, scaled to the image of the options.
  [[nodiscard]] Bytes scaled(double bytes) const {
    const double share =
        static_cast<double>(options_.image.count) / static_cast<double>(WorkloadOptions::kUsualImage.count);
    return {std::llround(bytes * share)};
  }

  [[nodiscard]] CommandStream up(std::string_view what, VertexId gpu, Bytes size) const {
    return {name(what, gpu), Transfer{memory(), gpu, size, {}, {}}, {}, {}};
  }
  [[nodiscard]] CommandStream down(std::string_view what, VertexId gpu, Bytes size) const {
    return {name(what, gpu), Transfer{gpu, memory(), size, {}, {}}, {}, {}};
  }
  /// A copy and a kernel on its data; kernel and copy alone take times in the proportion of the published example.
  [[nodiscard]] CommandStream up_and_worked_on(std::string_view what, VertexId gpu, Bytes size) const {
    CommandStream stream = up(what, gpu, size);
    const GBps link = machine_.route_classes()[machine_.route_class(memory(), gpu)].alone.nominal;
    stream.kernel = spin(gpu, round_up_ns(static_cast<double>(size.count) / (link.value * kKernelPerLink)));
    return stream;
  }
  [[nodiscard]] CommandStream work(std::string_view what, VertexId gpu, Duration time) const {
    return {name(what, gpu), {}, spin(gpu, time), {}};
  }
  [[nodiscard]] static Kernel spin(VertexId gpu, Duration time) { return {gpu, time, time, "spin"}; }

  /// The routes up to every GPU, then down from every GPU, then between GPUs that reach each other.
  [[nodiscard]] std::vector<Route> routes() const {
    std::vector<Route> routes;
    for (const VertexId gpu : gpus()) routes.push_back({memory(), gpu, true});
    for (const VertexId gpu : gpus()) routes.push_back({gpu, memory(), false});
    for (const VertexId from : gpus())
      for (const VertexId to : gpus())
        if (reaches(from, to)) routes.push_back({from, to, false});
    return routes;
  }
  /// Whether a copy between two GPUs needs no staging through a memory.
  [[nodiscard]] bool reaches(VertexId from, VertexId to) const {
    return from != to && machine_.has_peer_access(from, to) && !machine_.route(from, to).empty();
  }
  [[nodiscard]] CommandStream copy(VertexId from, VertexId to, Bytes size) const {
    return {name(machine_.vertex(from).name, to), Transfer{from, to, size, {}, {}}, {}, {}};
  }

  [[nodiscard]] Workload workload(std::string name, std::vector<std::vector<CommandStream>> batches,
                                  std::vector<std::size_t> order = {0},
                                  int most_runs = std::numeric_limits<int>::max()) const {
    Workload made{std::move(name), {}, {}, std::move(order), most_runs};
    for (auto& streams : batches) made.batches.push_back(value_at({}, Batch::make(machine_, std::move(streams))));
    std::vector<const Batch*> all;
    for (const Batch& batch : made.batches) all.push_back(&batch);
    const ApplicationLoad application(all);
    for (Batch& batch : made.batches) batch = batch.within(application);
    return made;
  }

 private:
  [[nodiscard]] VertexId memory() const { return machine_.memories().front(); }
  [[nodiscard]] std::string name(std::string_view what, VertexId place) const {
    return fmt::format("{}-{}", what, machine_.vertex(place).name);
  }

  const Topology& machine_;
  const WorkloadOptions& options_;
};

// ---- the kinds

std::vector<Workload> make_example(const Maker& make) {
  const auto parts = make.parts(make.options().image, kExampleParts);
  std::vector<CommandStream> streams;
  for (std::size_t i = 0; i < parts.size(); ++i)
    streams.push_back(make.up_and_worked_on("image", make.gpus()[i], parts[i]));
  return {make.workload("example", {std::move(streams)})};
}

std::vector<Workload> make_wafer(const Maker& make) {
  const auto parts = make.parts(make.options().image, kWaferParts);
  std::vector<CommandStream> streams;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    streams.push_back(make.up_and_worked_on("image", make.gpus()[i], parts[i]));
    streams.push_back(make.down("report", make.gpus()[i], parts[i]));
  }
  return {make.workload("wafer", {std::move(streams)})};
}

/// The domain is cut into slabs, one a GPU: a GPU has a neighbour on each side, the first and the last one on one side.
/// Boundary points are computed first, so that neighbours exchange them while each computes its inner points.
std::vector<Workload> make_domain(const Maker& make) {
  enum : std::size_t { kScatter, kBoundary, kExchange, kGather };
  std::vector<std::vector<CommandStream>> batches(kGather + 1);
  const auto domain = make.parts(make.scaled(kDomainBytes), kEqualParts);
  const Bytes boundary = make.scaled(kBoundaryBytes);
  for (std::size_t i = 0; i < domain.size(); ++i) {
    const VertexId gpu = make.gpus()[i];
    batches[kScatter].push_back(make.up("scatter", gpu, domain[i]));
    batches[kBoundary].push_back(make.work("boundary", gpu, kBoundaryPoints));
    if (i > 0) {
      batches[kExchange].push_back(make.copy(make.gpus()[i - 1], gpu, boundary));
      batches[kExchange].push_back(make.copy(gpu, make.gpus()[i - 1], boundary));
    }
    batches[kExchange].push_back(make.work("inner", gpu, kInnerPoints));
    batches[kGather].push_back(make.down("gather", gpu, domain[i]));
  }
  std::vector<std::size_t> order{kScatter};
  for (int i = 0; i < kExchanges; ++i) order.insert(order.end(), {kBoundary, kExchange});
  order.push_back(kGather);
  return {make.workload("domain", std::move(batches), std::move(order), kDomainRuns)};
}

/// GPU i sends to GPU i + step, for each of these steps, where it reaches that GPU. Empty where no GPU reaches another.
std::vector<Workload> make_exchange(const Maker& make, std::string name, std::span<const std::size_t> steps,
                                    Bytes all) {
  const auto gpus = make.gpus();
  std::vector<CommandStream> streams;
  for (const std::size_t step : steps)
    for (std::size_t i = 0; i < gpus.size(); ++i)
      if (const VertexId to = gpus[(i + step) % gpus.size()]; make.reaches(gpus[i], to))
        streams.push_back(make.copy(gpus[i], to, Bytes{0}));
  if (streams.empty()) return {};
  const auto parts = split(all, kEqualParts, streams.size());
  for (std::size_t i = 0; i < streams.size(); ++i) streams[i].transfer->size = parts[i];
  return {make.workload(std::move(name), {std::move(streams)})};
}

std::vector<Workload> make_all_to_all(const Maker& make) {
  std::vector<std::size_t> steps;
  for (std::size_t step = 1; step < make.gpus().size(); ++step) steps.push_back(step);
  return make_exchange(make, "all-to-all", steps, make.options().image);
}

std::vector<Workload> make_ring(const Maker& make) {
  return make_exchange(make, "ring", std::array<std::size_t, 1>{1}, make.options().image);
}

/// Each GPU sends to both neighbours; of two GPUs, each has one.
std::vector<Workload> make_halo(const Maker& make) {
  std::vector<std::size_t> steps{1};
  if (make.gpus().size() > 2) steps.push_back(make.gpus().size() - 1);
  return make_exchange(make, "halo", steps, make.scaled(kBoundaryBytes));
}

/// Streams on 2 to 8 different routes, at least one up and one down. A copy up has a kernel with probability 1/2.
std::vector<CommandStream> random_streams(const Maker& make, Random& random) {
  auto routes = make.routes();
  const std::size_t gpus = make.gpus().size();
  std::vector<CommandStream> streams;
  const auto add_one_of = [&](std::size_t first, std::size_t count) {
    const auto route = routes.begin() + random.between(static_cast<int>(first), static_cast<int>(first + count - 1));
    const Bytes size{make.options().image.count * random.between(4, 512) / 512};
    CommandStream& stream = streams.emplace_back(make.copy(route->from, route->to, size));
    if (route->is_up && random.one_in(2))
      stream.kernel = make.spin(route->to, std::chrono::microseconds{random.between(200, 5000)});
    routes.erase(route);
  };
  add_one_of(0, gpus);
  add_one_of(gpus - 1, gpus);  // one route up is used and erased
  const int more = random.between(0, std::min(kMostStreams - 2, static_cast<int>(routes.size())));
  for (int i = 0; i < more; ++i) add_one_of(0, routes.size());
  return streams;
}

std::vector<Workload> make_random(const Maker& make) {
  Random random(make.options().seed);
  std::vector<Workload> made;
  for (int i = 1; i <= kRandomBatches; ++i)
    made.push_back(make.workload(fmt::format("random-{}", i), {random_streams(make, random)}));
  return made;
}

/// 4 to 8 copies up and down, on different routes as long as there are unused ones. Sizes are log-uniform from a 64th
/// of an image to a whole one. Half of the copies up have a kernel behind them, or none has.
std::vector<CommandStream> copies_both_ways(const Maker& make, bool kernels, Random& random) {
  std::vector<Route> routes = make.routes();
  routes.resize(2 * make.gpus().size());
  for (std::size_t i = routes.size(); i-- > 1;)
    std::swap(routes[i], routes[static_cast<std::size_t>(random.between(0, static_cast<int>(i)))]);
  std::vector<CommandStream> streams;
  const int count = random.between(kFewestCopies, kMostStreams);
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
    const Route& route = routes[i % routes.size()];
    const double doublings = kDoublings * (random.between(0, 1'000'000) / 1e6 - 1);
    const Bytes size{std::llround(static_cast<double>(make.options().image.count) * std::exp2(doublings))};
    CommandStream& stream = streams.emplace_back(make.copy(route.from, route.to, size));
    stream.name += fmt::format("-{}", i + 1);  // with fewer routes than copies, routes repeat
    if (kernels && route.is_up && random.one_in(2))
      stream.kernel = make.spin(route.to, kLongestWork * random.between(1, 1000) / 1000);
  }
  return streams;
}

std::vector<Workload> make_both_ways(const Maker& make, std::string_view name, bool kernels) {
  Random random(make.options().seed);
  std::vector<Workload> made;
  for (int i = 1; i <= kRandomBatches; ++i)
    made.push_back(make.workload(fmt::format("{}-{}", name, i), {copies_both_ways(make, kernels, random)}));
  return made;
}

std::vector<Workload> make_copies(const Maker& make) { return make_both_ways(make, "copies", false); }
std::vector<Workload> make_copies_and_kernels(const Maker& make) {
  return make_both_ways(make, "copies-and-kernels", true);
}

struct Kind {
  std::string_view name;
  std::string_view summary;
  std::vector<Workload> (*make)(const Maker& make);
  bool when_asked = false;  ///< run only when it is named
};

constexpr std::array kKinds{
    Kind{"example", "the published example: an image, 1 : 4 : 4 : 1 over the GPUs, with a kernel behind each part",
         make_example},
    Kind{"wafer", "an image up, 4 : 1 : 1 : 4, with kernels, while the reports of the last one come down", make_wafer},
    Kind{"domain", "scatter, 100 x (boundaries, then their exchange between GPUs beside the inner points), gather",
         make_domain},
    Kind{"all-to-all", "an image's bytes, from every GPU to every other, where GPUs reach each other", make_all_to_all},
    Kind{"ring", "an image's bytes, from every GPU to the next one", make_ring},
    Kind{"halo", "from every GPU to both neighbours, in all as much as one boundary of domain", make_halo},
    Kind{"random", "20 batches of 2 to 8 streams, up, down and between GPUs, kernels behind some", make_random},
    Kind{"copies", "when asked for: 20 batches of 4 to 8 copies up and down, a 64th of an image to a whole one",
         make_copies, true},
    Kind{"copies-and-kernels", "when asked for: the same, with kernels of up to 2 ms behind half of what goes up",
         make_copies_and_kernels, true},
};

void check_machine(const Topology& machine) {
  if (machine.memories().empty() || machine.gpus().empty())
    fail({}, fmt::format("the workloads need a memory and a GPU; '{}' is a machine without", machine.name()));
  const VertexId memory = machine.memories().front();
  for (const VertexId gpu : machine.gpus())
    if (machine.route(memory, gpu).empty() || machine.route(gpu, memory).empty())
      fail({}, fmt::format("the workloads copy to and from every GPU; '{}' lacks a way to or from '{}'",
                           machine.vertex(gpu).name, machine.vertex(memory).name));
}

}  // namespace

Bytes Workload::moved() const {
  Bytes sum{0};
  for (const std::size_t batch : order)
    for (const CommandStream& stream : batches[batch].streams())
      if (stream.transfer) sum += stream.transfer->size;
  return sum;
}

std::string workload_list() {
  std::string list;
  for (const Kind& kind : kKinds) list += fmt::format("\n    {:<20}{}", kind.name, kind.summary);
  return list;
}

Expected<std::vector<Workload>> make_workloads(const Topology& machine, const WorkloadOptions& options,
                                               std::string_view only) {
  return reading([&] {
    check_machine(machine);
    std::vector<Workload> chosen;
    std::vector<std::string_view> names;
    for (const Kind& kind : kKinds) {
      names.push_back(kind.name);
      for (Workload& workload : kind.make(Maker(machine, options))) {
        workload.kind = kind.name;
        if ((only.empty() && !kind.when_asked) || only == kind.name || only == workload.name)
          chosen.push_back(std::move(workload));
      }
    }
    if (chosen.empty()) {
      if (std::ranges::find(names, only) != names.end())
        fail({},
             fmt::format("--only: '{}' needs GPUs that reach each other; those of '{}' do not", only, machine.name()));
      fail({}, fmt::format("--only: there is no workload '{:.80}';{}", only,
                           suggestion_or(only, names, "--help lists them")));
    }
    return chosen;
  });
}

}  // namespace tutti::internal
