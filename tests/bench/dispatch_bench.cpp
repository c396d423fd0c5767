// What the dispatcher itself takes of a job on the real clock: the time of its thread between two waits, for jobs that
// do nothing. Rows: one task with a job every 50 us, 64 tasks with one every 50 us in all; with bounds and attribution,
// then with a program that has callbacks, and a journal, too. The median of runs of 10,000 jobs, so that a host that
// stops the thread now and then does not count. Options: --runs N
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

#include "runtime/dispatch/dispatcher.hpp"
#include "runtime/trace/journal.hpp"
#include "tests/runtime/task_runs.hpp"

namespace tutti::internal {
namespace {

constexpr std::uint64_t kJobs = 10'000;

/// The host's clock, which adds up the time between two waits of the thread that made it.
class BusyClock final : public Clock {
 public:
  [[nodiscard]] std::string_view name() const override { return "real"; }
  [[nodiscard]] Duration now() const override { return clock_.now(); }
  void wait_until(Duration at) override {
    pause([&] { clock_.wait_until(at); });
  }
  void wait_until(Duration at, Waker& waker) override {
    pause([&] { clock_.wait_until(at, waker); });
  }
  void wait_for_call(Waker& waker) override { clock_.wait_for_call(waker); }
  [[nodiscard]] bool runs_by_itself() const override { return true; }

  [[nodiscard]] Duration busy() const { return busy_; }

 private:
  template <class Wait>
  void pause(const Wait& wait) {
    if (gettid() != owner_) return wait();
    if (since_ != Duration{}) busy_ += clock_.now() - since_;
    wait();
    since_ = clock_.now();
  }

  RealClock clock_;
  const pid_t owner_ = gettid();
  Duration busy_{}, since_{};
};

/// Does nothing, and may have callbacks.
class Idler final : public TaskProgram {
 public:
  explicit Idler(bool calls) : calls_(calls) {}
  Expected<std::vector<StreamBinding>> bind(DeviceBackend&, const Batch&, std::size_t, std::size_t) override {
    return std::vector<StreamBinding>{};
  }
  Expected<void> on_work(Job&) override { return {}; }
  [[nodiscard]] bool fills_input() const override { return calls_; }
  [[nodiscard]] bool hears_of_end() const override { return calls_; }

 private:
  bool calls_;
};

std::unique_ptr<Journal> journal_of(const TaskSet& set, const std::string& path) {
  JournalHeader header{.machine = "none", .policy = "edf", .backend = "sim", .clock = "real"};
  for (const Task& task : set.tasks) header.tasks.push_back({.name = task.name, .period = task.period});
  auto opened = Journal::open(path, header, {});
  if (!opened) fmt::print(stderr, "{}\n", opened.error().text());
  return opened ? *std::move(opened) : nullptr;
}

/// ns a job, of one run.
double measure(std::size_t tasks, bool all) {
  TaskSet set{std::nullopt, Policy::Edf, {}};
  for (std::size_t i = 0; i < tasks; ++i)
    set.tasks.push_back(test::task(fmt::format("t{}", i), 10, static_cast<std::int64_t>(50'000 * tasks + 7 * i)));
  const AdmittedTaskSet admitted = test::admit(set);
  auto* const clock = new BusyClock;
  test::Station station{std::unique_ptr<Clock>(clock)};
  std::vector<std::unique_ptr<Idler>> programs;
  std::vector<TaskProgram*> table;
  for (std::size_t i = 0; i < tasks; ++i) table.push_back(programs.emplace_back(std::make_unique<Idler>(all)).get());
  const std::string path = std::filesystem::temp_directory_path() / fmt::format("tutti-dispatch-bench-{}", getpid());
  const auto journal = all ? journal_of(set, path) : nullptr;
  JobRecorder* const recorders[] = {journal ? &journal->recorder(0) : nullptr};
  RunOptions options = test::first_jobs(kJobs);
  if (journal) options.recorders = recorders;
  const auto record = run_tasks(station.executor, admitted, table, options);
  if (journal) std::filesystem::remove(path);
  if (!record) std::exit(1);
  return as_ns(clock->busy()) / static_cast<double>(record->jobs.size());
}

double median_of(int runs, std::size_t tasks, bool all) {
  std::vector<double> values;
  for (int i = 0; i < runs; ++i) values.push_back(measure(tasks, all));
  std::ranges::sort(values);
  return values[values.size() / 2];
}

int run(int argc, char** argv) {
  const int runs = argc == 3 && std::strcmp(argv[1], "--runs") == 0 ? std::max(1, std::atoi(argv[2])) : 11;
  fmt::print("{:>6} {:>30} {:>34}\n", "tasks", "bounds and attribution, ns/job", "callbacks and journal too, ns/job");
  for (const std::size_t tasks : {std::size_t{1}, std::size_t{64}})
    fmt::print("{:>6} {:>30.0f} {:>34.0f}\n", tasks, median_of(runs, tasks, false), median_of(runs, tasks, true));
  return 0;
}

}  // namespace
}  // namespace tutti::internal

int main(int argc, char** argv) { return tutti::internal::run(argc, argv); }
