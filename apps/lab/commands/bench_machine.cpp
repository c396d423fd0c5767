#include "apps/lab/commands/bench_machine.hpp"

#include <algorithm>
#include <array>
#include <memory>

#include <fmt/format.h>

#include "apps/lab/commands/rig.hpp"
#include "apps/lab/measuring/measuring.hpp"
#include "apps/table.hpp"
#include "apps/tutti/commands/command.hpp"
#include "apps/tutti/commands/file_kind.hpp"
#include "apps/tutti/reports/report.hpp"
#include "model/base/quantile.hpp"
#include "model/machine/ports.hpp"
#include "model/sharing/compile_machine.hpp"
#include "runtime/core/baselines.hpp"
#include "runtime/core/scratch_buffers.hpp"

namespace tutti::internal {
namespace {

struct BenchOptions {
  BenchOptions() { backend.backend = "cuda"; }

  std::string machine;
  programs::BackendWords backend;
  int runs = 1000;
  int copies = 15;
  std::string staged = "512 MiB";
  bool json = false;
};

constexpr Bytes kPinned{512 << 20};
constexpr Bytes kSmall{64 << 10};
constexpr Bytes kBefore{1 << 20};
constexpr Bytes kLarge{32 << 20};
constexpr Duration kAhead = std::chrono::milliseconds{1};
/// Queues of copies up to the first GPU, perhaps with a kernel behind each.
struct EngineQueue {
  int count;
  Bytes size;
  Duration kernel;
};
constexpr std::array kQueues{EngineQueue{100, Bytes{64 << 10}, {}}, EngineQueue{64, Bytes{16 << 10}, {}},
                             EngineQueue{1000, Bytes{4 << 10}, {}},
                             EngineQueue{50, Bytes{64 << 10}, std::chrono::microseconds{20}}};
constexpr int kQueueRuns = 101;
constexpr std::array kDirect{Bytes{16 << 20}, Bytes{64 << 20}, Bytes{256 << 20}};

double us(Duration duration) { return static_cast<double>(duration.count()) / 1e3; }

/// One measured quantity: a row with the median and the 99th percentile of its values.
struct Row {
  std::string what;
  std::string unit;
  std::vector<double> values;
};

CommandStream copy_stream(VertexId from, VertexId to, Bytes size) {
  return {"copy", Transfer{from, to, size, {}, {}}, {}, {}};
}

/// Start of each stream relative to its planned instant; the streams are one copy up and one down for each GPU. Small
/// ones, released by the host; and with the start given ahead, small ones and large ones, which start beside others.
Expected<std::vector<Row>> release(Rig& rig, int runs) {
  struct Kind {
    std::string_view words;
    Bytes up;
    Duration ahead;
    int runs;
  };
  const std::array kinds{Kind{"", kSmall, {}, runs}, Kind{", given 1 ms ahead", kSmall, kAhead, runs},
                         Kind{", given 1 ms ahead, beside large copies both ways", kLarge, kAhead, runs / 10 + 1}};
  std::vector<Row> rows;
  programs::Progress progress("starts of streams", kinds.size());
  for (const Kind& kind : kinds) {
    const Bytes down{kind.up.count / 8 * 9};
    auto delays = measure_gates(rig.executor(), planners().front(), kind.up, down, kind.runs, kind.ahead);
    if (!delays) return tl::unexpected(std::move(delays.error()));
    rows.push_back(
        {fmt::format("start of {} streams after their planned instants{}", 2 * rig.machine().gpus().size(), kind.words),
         "us", std::move(delays->start_us)});
    progress.step();
  }
  return rows;
}

/// How long a large buffer of pinned memory takes: one that the driver pins, and one that was given back.
Expected<std::vector<Row>> pinning(Rig& rig, int copies) {
  const VertexId memory = rig.machine().memories().front();
  std::vector<Row> rows{{fmt::format("a buffer of {}, pinned", to_string(kPinned)), "us", {}},
                        {fmt::format("a buffer of {}, taken again", to_string(kPinned)), "us", {}}};
  programs::Progress progress("pinned buffers", 1 + static_cast<std::size_t>(copies));
  for (int i = 0; i < 1 + copies; ++i) {
    const Duration start = rig.clock().now();
    const auto buffer = rig.executor().backend().allocate_unwritten(memory, kPinned);
    const Duration end = rig.clock().now();
    if (!buffer) return tl::unexpected(buffer.error());
    rows[i == 0 ? 0 : 1].values.push_back(us(end - start));
    progress.step();
  }
  return rows;
}

/// The time from one batch's last completion to the first byte of the next one, which was armed behind it.
Expected<Row> handover(Rig& rig, int runs) {
  const VertexId memory = rig.machine().memories().front();
  const VertexId gpu = rig.machine().gpus().front();
  auto first = prepare_with_buffers(rig.executor(), planners().front(), {copy_stream(memory, gpu, kBefore)});
  auto second = prepare_with_buffers(rig.executor(), planners().front(), {copy_stream(memory, gpu, kBefore)});
  if (!first) return tl::unexpected(std::move(first.error()));
  if (!second) return tl::unexpected(std::move(second.error()));
  Row row{"last completion to the next batch's first byte", "us", {}};
  programs::Progress progress("batches behind each other", static_cast<std::size_t>(runs));
  for (int run = 0; run < runs; ++run) {
    rig.executor().arm(first->batch);
    rig.executor().arm_behind(first->batch, second->batch);
    rest(rig.executor());
    for (auto* prepared : {&*first, &*second})
      if (auto ok = rig.executor().issue(prepared->batch); !ok) return tl::unexpected(std::move(ok.error()));
    const auto before = rig.executor().synchronize(first->batch);
    const auto after = rig.executor().synchronize(second->batch);
    if (!before) return tl::unexpected(before.error());
    if (!after) return tl::unexpected(after.error());
    const Duration end = before->start + first->batch.measured().streams.front().end();
    row.values.push_back(us(after->start + second->batch.measured().streams.front().start() - end));
    progress.step();
  }
  return row;
}

/// The time of a batch's only transfer: on the GPU from start mark to completion mark, on the host from start signal to
/// completion signal.
Expected<CopyTimes> time_our_copy(Rig& rig, PreparedBatch& batch) {
  return run_armed(rig.executor(), batch).map([&](const BatchResult& result) {
    const StreamTimeline line = batch.measured().streams.front();
    return CopyTimes{line.end() - line.start(), result.finish - result.start};
  });
}

/// Our copies against plain ones, interleaved: the plain one's time in percent of ours, on the GPU from mark to mark
/// and on the host from start signal to completion signal.
Expected<std::vector<Row>> direct(Rig& rig, int copies) {
  const auto baselines = rig.baselines();
  if (!baselines) return tl::unexpected(baselines.error());
  std::vector<Row> rows;
  programs::Progress progress("copies and plain ones", kDirect.size() * 2 * static_cast<std::size_t>(copies));
  for (const Bytes size : kDirect) {
    for (const Direction direction : {Direction::HostToDevice, Direction::DeviceToHost}) {
      const auto [from, to] = ends_of(rig.machine(), CopyPort{0, direction}.id());
      auto prepared = prepare_with_buffers(rig.executor(), planners().front(), {copy_stream(from, to, size)});
      if (!prepared) return tl::unexpected(std::move(prepared.error()));
      const auto source = rig.executor().backend().allocate(from, size);
      const auto destination = rig.executor().backend().allocate(to, size);
      if (!source) return tl::unexpected(source.error());
      if (!destination) return tl::unexpected(destination.error());
      struct Times {
        std::vector<double> ours, plain;
      };
      Times on_the_gpu, on_the_host;
      for (int i = 0; i < copies; ++i) {
        const auto mine = time_our_copy(rig, prepared->batch);
        if (!mine) return tl::unexpected(mine.error());
        const auto theirs = (*baselines)->time_plain_copy(source->view(), destination->view());
        if (!theirs) return tl::unexpected(theirs.error());
        on_the_gpu.ours.push_back(us(mine->on_the_gpu));
        on_the_gpu.plain.push_back(us(theirs->on_the_gpu));
        on_the_host.ours.push_back(us(mine->on_the_host));
        on_the_host.plain.push_back(us(theirs->on_the_host));
        progress.step();
      }
      for (const auto& [where, times] : {std::pair("on the GPU", on_the_gpu), {"as the host sees it", on_the_host}})
        rows.push_back({fmt::format("{} of {}, {}: speed against a plain cudaMemcpyAsync", to_string(direction),
                                    to_string(size), where),
                        "%",
                        {100 * median(times.plain) / median(times.ours)}});
    }
  }
  return rows;
}

/// The time of an engine queue: on the GPU from first start to last end, on the host from start signal to completion
/// signal.
Expected<CopyTimes> time_our_queue(Rig& rig, PreparedBatch& batch) {
  return run_armed(rig.executor(), batch).map([&](const BatchResult& result) {
    const Timeline measured = batch.measured();
    Duration start = Duration::max(), end{};
    for (const StreamTimeline& line : measured.streams) {
      start = std::min(start, line.start());
      end = std::max(end, line.end());
    }
    return CopyTimes{end - start, result.finish - result.start};
  });
}

/// Our queue against the same commands enqueued by hand behind the same gate, interleaved: our time in percent.
Expected<std::vector<Row>> queue(Rig& rig, const EngineQueue& what) {
  const auto baselines = rig.baselines();
  if (!baselines) return tl::unexpected(baselines.error());
  const VertexId from = rig.machine().memories().front(), to = rig.machine().gpus().front();
  const Bytes all{what.count * what.size.count};
  const auto source = rig.executor().backend().allocate(from, all);
  const auto destination = rig.executor().backend().allocate(to, all);
  if (!source) return tl::unexpected(source.error());
  if (!destination) return tl::unexpected(destination.error());
  std::vector<CommandStream> streams;
  std::vector<StreamBinding> bindings;
  std::vector<PlainStep> steps;
  for (int i = 0; i < what.count; ++i) {
    const Bytes offset{i * what.size.count};
    streams.push_back(copy_stream(from, to, what.size));
    streams.back().name = fmt::to_string(i);
    if (what.kernel.count() > 0) streams.back().kernel = Kernel{to, what.kernel, what.kernel, "spin"};
    bindings.push_back(
        {source->view().part(offset, what.size), destination->view().part(offset, what.size), {}, {}, {}});
    steps.push_back({bindings.back().source, bindings.back().destination, what.kernel});
  }
  const auto batch = Batch::make(rig.machine(), std::move(streams));
  if (!batch) return tl::unexpected(batch.error());
  auto prepared = rig.executor().prepare(plan(planners().front(), *batch), std::move(bindings));
  if (!prepared) return tl::unexpected(std::move(prepared.error()));
  auto plain = (*baselines)->plain_queue(std::move(steps));
  if (!plain) return tl::unexpected(std::move(plain.error()));
  struct Times {
    std::vector<double> ours, plain;
  };
  Times on_the_gpu, on_the_host;
  programs::Progress progress("queues", static_cast<std::size_t>(kQueueRuns));
  for (int run = 0; run < kQueueRuns; ++run) {
    const auto mine = time_our_queue(rig, *prepared);
    if (!mine) return tl::unexpected(mine.error());
    const auto theirs = (*plain)->run();
    if (!theirs) return tl::unexpected(theirs.error());
    on_the_gpu.ours.push_back(us(mine->on_the_gpu));
    on_the_gpu.plain.push_back(us(theirs->on_the_gpu));
    on_the_host.ours.push_back(us(mine->on_the_host));
    on_the_host.plain.push_back(us(theirs->on_the_host));
    progress.step();
  }
  const std::string name = fmt::format("{} x {}{}", what.count, to_string(what.size),
                                       what.kernel.count() > 0 ? " and a kernel of " + to_string(what.kernel) : "");
  const char* by_hand = what.kernel.count() > 0 ? "the same by hand" : "one cudaMemcpyBatchAsync";
  std::vector<Row> rows;
  for (auto& [where, times] : {std::pair("on the GPU", on_the_gpu), {"as the host sees it", on_the_host}}) {
    rows.push_back({fmt::format("{}, {}", name, where), "us", times.ours});
    rows.push_back({fmt::format("{}, {}: time against {}", name, where, by_hand),
                    "%",
                    {100 * median(times.ours) / median(times.plain)}});
  }
  return rows;
}

/// A staged copy against the slower one of its two legs alone.
Expected<Row> staged(Rig& rig, Bytes size, int copies) {
  const VertexId memory = rig.machine().memories().front();
  const VertexId a = rig.machine().gpus()[0], b = rig.machine().gpus()[1];
  std::vector<BatchWithBuffers> prepared;
  for (const auto& [from, to] : {std::pair(a, memory), {memory, b}, {a, b}}) {
    auto one = prepare_with_buffers(rig.executor(), planners().front(), {copy_stream(from, to, size)});
    if (!one) return tl::unexpected(std::move(one.error()));
    prepared.push_back(*std::move(one));
  }
  std::array<std::vector<double>, 3> times;
  programs::Progress progress("staged copies", static_cast<std::size_t>(copies));
  for (int i = 0; i < copies; ++i) {
    for (std::size_t leg = 0; leg < times.size(); ++leg) {
      const auto time = time_our_copy(rig, prepared[leg].batch);
      if (!time) return tl::unexpected(time.error());
      times[leg].push_back(us(time->on_the_gpu));
    }
    progress.step();
  }
  const double slower = std::max(median(times[0]), median(times[1]));
  return Row{fmt::format("staged copy of {}: speed against its slower leg", to_string(size)),
             "%",
             {100 * slower / median(times[2])}};
}

Expected<std::vector<Row>> find_rows(const Topology& machine, const BenchOptions& options, Bytes staged_size) {
  std::vector<Row> rows;
  {
    auto rig = Rig::make(machine, options.backend);
    if (!rig) return tl::unexpected(std::move(rig.error()));
    auto starts = release(**rig, options.runs);
    if (!starts) return starts;
    std::move(starts->begin(), starts->end(), std::back_inserter(rows));
    auto next = handover(**rig, options.runs);
    if (!next) return tl::unexpected(std::move(next.error()));
    rows.push_back(*std::move(next));
    if (!options.backend.simulated()) {
      auto buffers = pinning(**rig, options.copies);
      if (!buffers) return buffers;
      std::move(buffers->begin(), buffers->end(), std::back_inserter(rows));
      auto found = direct(**rig, options.copies);
      if (!found) return found;
      std::move(found->begin(), found->end(), std::back_inserter(rows));
      for (const EngineQueue& what : kQueues) {
        auto queues = queue(**rig, what);
        if (!queues) return queues;
        std::move(queues->begin(), queues->end(), std::back_inserter(rows));
      }
    }
  }
  if (machine.gpus().size() < 2) return rows;
  auto rig = Rig::make(machine.without_peer_access(), options.backend);
  if (!rig) return tl::unexpected(std::move(rig.error()));
  auto row = staged(**rig, staged_size, options.copies);
  if (!row) return tl::unexpected(std::move(row.error()));
  rows.push_back(*std::move(row));
  return rows;
}

int bench_machine(const BenchOptions& options) {
  const auto machine = load_machine_aloud(options.machine);
  if (!machine) return report_error(machine.error());
  const auto size = parse_bytes(options.staged);
  if (!size || size->count < 1)
    return report_error({ErrorCode::InvalidInput,
                         fmt::format("--staged: '{}' is no size of a copy; write one like 512MiB", options.staged),
                         {}});
  const auto rows = find_rows(*machine, options, *size);
  if (!rows) return report_error(rows.error());
  Json json = Json::array();
  programs::Table table({"what", "unit", "of", "least", "median", "99 %"});
  table.align_left(1);
  for (const auto& [what, unit, values] : *rows) {
    const std::array quantiles{quantile(values, 0), median(values), quantile(values, 0.99)};
    json.push_back({{"what", what},
                    {"unit", unit},
                    {"count", values.size()},
                    {"least", quantiles[0]},
                    {"median", quantiles[1]},
                    {"p99", quantiles[2]}});
    std::vector<std::string> cells{what, unit, fmt::to_string(values.size())};
    for (const double value : quantiles) cells.push_back(fmt::format("{:.2f}", value));
    table.add(std::move(cells));
  }
  if (options.json) {
    programs::print("{}", json_report(Json{{"schema_version", 1}, {"machine", machine->name()}, {"rows", json}}));
  } else {
    programs::print("{}", table.text());
  }
  return kOk;
}

}  // namespace

void add_bench_machine(programs::CommandLine& bench) {
  programs::CommandLine command =
      bench.command("machine", "how exactly streams start, how soon batches follow each other, how fast copies are");
  command.footer("Example:\n  tutti bench machine --machine machine.yaml");
  auto options = std::make_shared<BenchOptions>();
  reads(command.add("--machine", &options->machine, "machine file"), {FileKind::Machine}).required();
  command.add("--runs", &options->runs, "of what takes microseconds").between(1, 1000000).shows_default();
  command.add("--copies", &options->copies, "of each size, interleaved with what it is compared with")
      .between(1, 100000)
      .shows_default();
  command.add("--staged", &options->staged, "size of the copy through host memory").shows_default();
  command.add("--json", &options->json, "print one JSON object");
  programs::add_backend_options(command, options->backend);
  command.runs([options] { return bench_machine(*options); });
}

}  // namespace tutti::internal
