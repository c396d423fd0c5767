#include "tests/support/made_up_trace.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <deque>
#include <limits>
#include <map>
#include <stdexcept>

#include <fmt/format.h>
#include <sqlite3.h>

namespace tutti::internal::test {
namespace {

constexpr std::int64_t kMs = 1'000'000;

/// An operation of a job that has begun.
struct Doing {
  int task, job, operation;
};

/// Runs the tasks in steps of time from event to event, one list of what is ready for each engine.
class Machine {
 public:
  Machine(MadeUpTrace& trace, Random& random) : trace_(&trace), random_(&random) {}

  void run(std::int64_t duration) {
    for (int task = 0; task < static_cast<int>(trace_->tasks.size()); ++task) plan(task, duration);
    duration_ = static_cast<double>(duration);
    while (true) {
      const double next = std::min(next_ready(), next_end());
      if (next == std::numeric_limits<double>::infinity()) return;
      pass(next);
    }
  }

 private:
  struct Active {
    Doing doing;
    double start, bytes, setup, end;  // of a copy bytes and set-up that are left; of a kernel its end
    bool is_copy;
    char kind;
    int gpu;
  };

  [[nodiscard]] const MadeUpOperation& of(const Doing& doing) const {
    return trace_->tasks[static_cast<std::size_t>(doing.task)].operations[static_cast<std::size_t>(doing.operation)];
  }
  void plan(int number, std::int64_t duration) {
    const MadeUpTask& task = trace_->tasks[static_cast<std::size_t>(number)];
    if (task.closed_loop) {
      ready_.emplace(static_cast<double>(task.offset), Doing{number, 0, 0});
      return;
    }
    for (int job = 0;; ++job) {
      const std::int64_t arrival = task.offset + job * task.period;
      if (arrival >= duration) return;
      const double late = random_->real(0, 1) * static_cast<double>(task.jitter);
      if (random_->real(0, 1) >= task.dropped)
        ready_.emplace(static_cast<double>(arrival) + late, Doing{number, job, 0});
    }
  }
  [[nodiscard]] double next_ready() const {
    return ready_.empty() ? std::numeric_limits<double>::infinity() : ready_.begin()->first;
  }
  [[nodiscard]] double rate_of(char kind) const {
    const auto count =
        std::ranges::count_if(active_, [&](const Active& active) { return active.kind == kind && active.setup <= 0; });
    return std::min(trace_->rate, trace_->together / static_cast<double>(std::max<std::ptrdiff_t>(1, count)));
  }
  [[nodiscard]] double next_end() const {
    double next = std::numeric_limits<double>::infinity();
    for (const Active& active : active_) {
      double end = active.end;
      if (active.is_copy) end = active.setup > 0 ? now_ + active.setup : now_ + active.bytes / rate_of(active.kind);
      next = std::min(next, end);
    }
    return next;
  }
  void pass(double until) {
    const double up = rate_of('u'), down = rate_of('d');
    for (Active& active : active_)
      if (active.is_copy) {
        if (active.setup > 0)
          active.setup = active.setup - (until - now_) < 1e-3 ? 0 : active.setup - (until - now_);  // else rounding
        else
          active.bytes -= (until - now_) * (active.kind == 'u' ? up : down);
      }
    now_ = until;
    for (std::size_t i = 0; i < active_.size();) {
      const bool is_over =
          active_[i].is_copy ? active_[i].setup <= 0 && active_[i].bytes <= 0.5 : active_[i].end <= now_;
      if (!is_over) {
        ++i;
        continue;
      }
      const Active over = active_[i];
      active_.erase(active_.begin() + static_cast<std::ptrdiff_t>(i));
      finish(over);
    }
    while (!ready_.empty() && ready_.begin()->first <= now_) {
      const Doing doing = ready_.begin()->second;
      ready_.erase(ready_.begin());
      waiting_[{trace_->tasks[static_cast<std::size_t>(doing.task)].gpu, of(doing).kind}].push_back(doing);
    }
    for (auto& [engine, queue] : waiting_) {
      const bool busy = std::ranges::any_of(
          active_, [&](const Active& active) { return active.gpu == engine.first && active.kind == engine.second; });
      if (!busy && !queue.empty()) {
        begin(queue.front(), engine.first);
        queue.pop_front();
      }
    }
  }
  void begin(const Doing& doing, int gpu) {
    const MadeUpOperation& operation = of(doing);
    const double length = static_cast<double>(operation.length) * (1 + operation.spread * random_->real(-1, 1));
    active_.push_back({doing, now_, static_cast<double>(operation.bytes), static_cast<double>(trace_->setup),
                       now_ + length, operation.kind != 'k', operation.kind, gpu});
  }
  void finish(const Active& over) {
    trace_->records.push_back(
        {std::llround(over.start), std::llround(now_), over.doing.task, over.doing.job, over.doing.operation});
    const MadeUpTask& task = trace_->tasks[static_cast<std::size_t>(over.doing.task)];
    Doing next = over.doing;
    double gap = 0;
    if (++next.operation < static_cast<int>(task.operations.size())) {
      gap =
          static_cast<double>(task.operations[static_cast<std::size_t>(next.operation)].gap) * random_->real(0.9, 1.1);
    } else if (task.closed_loop && now_ < duration_) {
      next = {over.doing.task, over.doing.job + 1, 0};
      gap = static_cast<double>(task.period) * random_->real(0.95, 1.05);
    } else {
      return;
    }
    ready_.emplace(now_ + gap, next);
  }

  MadeUpTrace* trace_;
  Random* random_;
  double now_ = 0, duration_ = 0;
  std::multimap<double, Doing> ready_;
  std::map<std::pair<int, char>, std::deque<Doing>> waiting_;
  std::vector<Active> active_;
};

/// Jobs of up to three forms: up, kernels, down; two rounds of that, with work of the host between; kernels alone.
/// @param shortest  ns: no period is shorter, and no copy or kernel takes more than a quarter of it, so that all tasks
///                  keep their periods
MadeUpTask random_task(Random& random, int number, double shortest, double rate) {
  MadeUpTask task;
  task.period = static_cast<std::int64_t>(shortest * std::pow(8, random.real(0, 1)));
  task.jitter =
      static_cast<std::int64_t>(random.real(0, random.one_in(3) ? 0.1 : 0.02) * static_cast<double>(task.period));
  task.offset = static_cast<std::int64_t>(random.real(0, 1) * static_cast<double>(task.period));
  const int rounds = random.one_in(3) ? 2 : 1, kernels = random.between(1, 5);
  // Of an engine: at most an eighth of the time for each task.
  const double time = std::min(random.real(0.02, 0.125) * static_cast<double>(task.period) / rounds, shortest / 4);
  const bool streams_apart = random.one_in(3), copies = !random.one_in(6);
  const auto add = [&](MadeUpOperation operation) {
    operation.gap = task.operations.empty() ? 0 : random.between(1'000, 8'000);
    const int part = operation.kind == 'u' ? 0 : operation.kind == 'k' ? 1 : 2;
    operation.stream = 10 * (number + 1) + (streams_apart ? part : 0);
    task.operations.push_back(operation);
  };
  for (int round = 0; round < rounds; ++round) {
    const auto bytes = static_cast<std::int64_t>(time * rate);
    if (copies) add({'u', bytes, 0, 0, 0, 0, ""});
    const bool after_host = round > 0 && random.one_in(2);
    if (after_host) task.operations.back().gap = static_cast<std::int64_t>(0.05 * static_cast<double>(task.period));
    for (int i = 0; i < kernels; ++i)
      add({'k', 0, static_cast<std::int64_t>(time / kernels), random.real(0, 0.03), 0, 0,
           fmt::format("kernel{}_{}", number, random.between(0, 2))});
    if (copies && !random.one_in(4)) add({'d', bytes / random.between(1, 20), 0, 0, 0, 0, ""});
  }
  return task;
}

void lose(MadeUpTrace& trace, Random& random, double share) {
  std::erase_if(trace.records, [&](const MadeUpRecord&) { return random.real(0, 1) < share; });
}

/// From somewhere on, all instants are later by this.
void jump(MadeUpTrace& trace, Random& random) {
  const std::int64_t at = trace.records[random.below(trace.records.size())].start;
  const auto by = static_cast<std::int64_t>(random.real(0.1, 200) * kMs);
  for (MadeUpRecord& record : trace.records)
    if (record.start >= at) record.start += by, record.end += by;
}

void must(sqlite3* database, const std::string& statement) {
  char* fault = nullptr;
  if (sqlite3_exec(database, statement.c_str(), nullptr, nullptr, &fault) != SQLITE_OK) throw std::runtime_error(fault);
}

}  // namespace

void run(MadeUpTrace& trace, Random& random, std::int64_t duration) {
  Machine(trace, random).run(duration);
  std::ranges::sort(trace.records, {},
                    [](const MadeUpRecord& record) { return std::tuple(record.start, record.end, record.task); });
}

MadeUpTrace random_trace(Random& random) {
  MadeUpTrace trace;
  trace.rate = random.real(10, 50);
  trace.together = trace.rate * random.real(1.2, 2);
  const int gpus = random.between(1, 2), processes = random.between(1, 2);
  std::int64_t longest = 0;
  const double shortest = random.real(3e6, 20e6);
  for (int i = 0, count = random.between(2, 6); i < count; ++i) {
    MadeUpTask task = random_task(random, i, shortest, trace.rate);
    task.gpu = static_cast<int>(random.below(static_cast<std::uint64_t>(gpus)));
    task.process = static_cast<int>(random.below(static_cast<std::uint64_t>(processes)));
    longest = std::max(longest, task.period);
    trace.tasks.push_back(std::move(task));
  }
  if (random.one_in(2))
    for (MadeUpTask& task : trace.tasks) task.dropped = random.real(0, 0.03);
  run(trace, random, 60 * longest);
  if (random.one_in(3)) lose(trace, random, 0.001);
  if (random.one_in(3)) jump(trace, random);
  return trace;
}

std::string as_chrome_json(const MadeUpTrace& trace) {
  std::string text =
      "{\"schemaVersion\": 1, \"traceEvents\": [\n{\"ph\": \"M\", \"name\": \"process_name\", \"pid\": 4711, \"args\": "
      "{\"name\": \"python /data/someone/secret.py\"}}";
  constexpr std::int64_t kNow = 1'700'000'000'000'000'000;  // ns of a wall clock, as the profiler has them
  for (const MadeUpRecord& record : trace.records) {
    const MadeUpTask& task = trace.tasks[static_cast<std::size_t>(record.task)];
    const MadeUpOperation& operation = task.operations[static_cast<std::size_t>(record.operation)];
    const std::int64_t start = kNow + record.start, length = record.end - record.start;
    const std::string name = operation.kind == 'u'   ? "Memcpy HtoD (Pinned -> Device)"
                             : operation.kind == 'd' ? "Memcpy DtoH (Device -> Pinned)"
                                                     : "void " + operation.name + "<float>(float*, int)";
    text += fmt::format(
        ",\n{{\"ph\": \"X\", \"cat\": \"{}\", \"name\": \"{}\", \"pid\": {}, \"tid\": {}, \"ts\": {}.{:03}, \"dur\": "
        "{}.{:03}, \"args\": {{\"device\": {}, \"stream\": {}{}}}}}",
        operation.kind == 'k' ? "kernel" : "gpu_memcpy", name, task.gpu, operation.stream, start / 1000, start % 1000,
        length / 1000, length % 1000, task.gpu, operation.stream,
        operation.kind == 'k' ? "" : fmt::format(", \"bytes\": {}", operation.bytes));
  }
  return text + "\n]}\n";
}

void write_as_nsys_sqlite(const MadeUpTrace& trace, const std::string& path) {
  sqlite3* database = nullptr;
  if (sqlite3_open(path.c_str(), &database) != SQLITE_OK) throw std::runtime_error(path);
  must(database,
       "BEGIN; CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);"
       "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER, end INTEGER, deviceId INTEGER, streamId INTEGER, "
       "globalPid INTEGER, bytes INTEGER, copyKind INTEGER, srcKind INTEGER, dstKind INTEGER);"
       "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER, streamId INTEGER, "
       "globalPid INTEGER, shortName INTEGER);");
  std::map<std::string, int> names;
  for (const MadeUpTask& task : trace.tasks)
    for (const MadeUpOperation& operation : task.operations)
      if (operation.kind == 'k' && names.emplace(operation.name, static_cast<int>(names.size()) + 100).second)
        must(database,
             fmt::format("INSERT INTO StringIds VALUES ({}, '{}')", names.at(operation.name), operation.name));
  for (const MadeUpRecord& record : trace.records) {
    const MadeUpTask& task = trace.tasks[static_cast<std::size_t>(record.task)];
    const MadeUpOperation& operation = task.operations[static_cast<std::size_t>(record.operation)];
    const std::string head = fmt::format("{}, {}, {}, {}, {}", record.start, record.end, task.gpu, operation.stream,
                                         0x1000000LL * (task.process + 1));
    if (operation.kind == 'k')
      must(database,
           fmt::format("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES ({}, {})", head, names.at(operation.name)));
    else
      must(database, fmt::format("INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES ({}, {}, {})", head, operation.bytes,
                                 operation.kind == 'u' ? "1, 1, 2" : "2, 2, 1"));
  }
  must(database, "COMMIT");
  sqlite3_close(database);
}

}  // namespace tutti::internal::test
