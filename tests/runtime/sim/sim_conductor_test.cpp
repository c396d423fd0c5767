// Runs that the simulated machine leads while the host is away: decisions held to those of the dispatcher's scheduler,
// how long the host may be away, and the bytes.
#include "runtime/sim/sim_conductor.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <deque>
#include <iterator>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/runtime/random_led_sets.hpp"
#include "tests/runtime/small_machine.hpp"

namespace tutti::internal {
namespace {

using std::chrono::milliseconds;
using test::bound;
using test::copy_stream;
using test::kernel_stream;
using test::Random;
using test::Station;
using test::uniform;

BoundPlan bound_plan(const Station& station, std::vector<CommandStream> streams, std::vector<StreamBinding> bindings) {
  return {station.planned(std::move(streams)), "batch 1 of task 'inspect'", std::move(bindings)};
}

/// A batch of one kernel of this length.
BoundPlan kernel_of(const Station& station, Ns length, const std::string& kernel = "spin") {
  return bound_plan(station, {kernel_stream("kernel", station.at("gpu0"), kernel, length)}, {StreamBinding{}});
}

/// An empty set under EDF.
LedSet set_for(Duration host_away) {
  LedSet set;
  set.by_deadline = true;
  set.host_away = host_away;
  return set;
}

/// Adds a task whose jobs are batches of these plans. @param sets  [buffer sets][batches of a job]
void add_task(LedSet& set, LedTask task, std::vector<std::vector<BoundPlan>> sets) {
  task.sets = static_cast<std::uint32_t>(sets.size());
  task.batches = static_cast<std::uint32_t>(sets.front().size());
  task.first_batch = static_cast<std::uint32_t>(set.batches.size());
  task.first_set = set.tasks.empty() ? 0 : set.tasks.back().first_set + set.tasks.back().sets;
  set.batches.resize(set.batches.size() + task.batches);
  set.tasks.push_back(task);
  set.plans.push_back(std::move(sets));
}

LedTask periodic(Ns period, std::uint64_t jobs, Ns first_arrival = 0) {
  LedTask task;
  task.first_arrival = first_arrival;
  task.period = task.deadline = period;
  task.jobs = jobs;
  return task;
}

std::unique_ptr<LedRun> lead(Station& station, LedSet set) {
  auto run = station.backend->lead(std::move(set));
  if (!run) ADD_FAILURE() << run.error().text();
  return std::move(run).value();
}

std::string refusal(Station& station, LedSet set) {
  const auto run = station.backend->lead(std::move(set));
  return run ? "" : run.error().message;
}

std::vector<LedRecord> take_all(LedRun& run) {
  std::vector<LedRecord> records;
  while (const auto record = run.take()) records.push_back(*record);
  return records;
}

std::size_t not_armed(const std::vector<LedRecord>& records) {
  return static_cast<std::size_t>(std::ranges::count(records, LedRecord::Kind::DropNotArmed, &LedRecord::kind));
}

// ---- by hand. A kernel of n ns is a batch of n.

// Jobs of 2 every 10. A host that sleeps for 35 then finds those of 0, 10, 20 and 30, each with its instants.
TEST(SimLedRun, GoesOnWhileTheHostIsAway) {
  Station station;
  LedSet set = set_for(Duration{100});
  add_task(set, periodic(10, 6), {{kernel_of(station, 2)}});
  const auto run = lead(station, std::move(set));
  run->arm();
  run->begin(Duration{1000});
  station.clock->wait_until(Duration{1035});
  const std::vector<LedRecord> records = take_all(*run);
  ASSERT_EQ(records.size(), 4U);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(records[i].index, i);
    EXPECT_EQ(records[i].run, i);
    EXPECT_EQ(records[i].start, static_cast<Ns>(10 * i));
    EXPECT_EQ(records[i].finish, static_cast<Ns>(10 * i + 2));
  }
  EXPECT_FALSE(run->is_over());
  while (!run->is_over()) station.clock->wait_until(run->next_look());
  EXPECT_EQ(take_all(*run).size(), 2U);
  EXPECT_EQ(station.clock->now(), Duration{1060});  // its last deadline
}

// A batch is opened at 0, starts after `dispatch` and takes 7: two of them end at 2 (3 + 7).
TEST(SimLedRun, DispatchesEachBatch) {
  Station station(std::make_unique<VirtualClock>(), Station::make_sim,
                  test::changed(test::small_machine(), [](MachineSpec& spec) {
                    spec.setup.dispatch = {Duration{3}, Duration{3}};
                  }));
  LedSet set;
  add_task(set, periodic(100, 1), {{kernel_of(station, 7), kernel_of(station, 7)}});
  const auto run = lead(station, std::move(set));
  run->arm();
  run->begin(Duration{0});
  station.clock->wait_until(Duration{19});
  EXPECT_FALSE(run->take().has_value());
  station.clock->wait_until(Duration{20});
  const auto record = run->take();
  ASSERT_TRUE(record.has_value());
  EXPECT_EQ(record->finish, 20);
  EXPECT_EQ(record->in_batches, 20);
  EXPECT_TRUE(run->is_over());
}

/// Task 0: jobs of 1 every 10, due after 10 k. Task 1: a job that has the machine from 9 to e = 10 (k + 1).
///
/// With k buffer sets, or one, b = max(sets, ceil(10 k / 10)) = k. For 40 ns away there are C = k + 40 / 10 armed runs.
/// The host arms at t = e - 1, where job 0 has ended and k jobs have arrived since. These start from e on, and so do
/// those that arrive at e, e + 10, e + 20 and e + 30: C up to t + 40. The next one, k + 5, starts at e + 40.
struct Blocked {
  std::uint32_t sets = 1;
  Ns waiting = 1;  ///< k
};
constexpr Blocked kBlocked[] = {{1, 1}, {2, 2}, {1, 2}, {3, 3}, {2, 3}};

std::vector<LedRecord> away_for(Duration away, const Blocked& blocked) {
  Station station;
  LedSet set = set_for(Duration{40});
  LedTask task = periodic(10, 20);
  task.deadline = 10 * blocked.waiting;
  add_task(set, task, std::vector(blocked.sets, std::vector{kernel_of(station, 1)}));
  const Ns ends = 10 * (blocked.waiting + 1);
  add_task(set, periodic(1000, 1, 9), {{kernel_of(station, ends - 9)}});
  const auto run = lead(station, std::move(set));
  EXPECT_EQ(run->host_away(), Duration{40});
  run->arm();
  run->begin(Duration{0});
  station.clock->wait_until(Duration{ends - 1});
  run->arm();
  station.clock->wait_until(Duration{ends - 1} + away);
  run->arm();
  std::vector<LedRecord> records = take_all(*run);
  while (!run->is_over()) {
    station.clock->wait_until(run->next_look());
    run->arm();
    std::ranges::move(take_all(*run), std::back_inserter(records));
  }
  EXPECT_EQ(records.size(), 21U);
  return records;
}

TEST(SimLedRun, DropsNoJobWhereTheHostIsAwayAsLongAsItMay) {
  for (const Blocked& blocked : kBlocked) EXPECT_EQ(not_armed(away_for(Duration{40}, blocked)), 0U);
}

TEST(SimLedRun, DropsAJobWhereTheHostIsAwayForLonger) {
  for (const Blocked& blocked : kBlocked) {
    const std::vector<LedRecord> records = away_for(Duration{41}, blocked);
    ASSERT_EQ(not_armed(records), 1U);
    const auto dropped = std::ranges::find(records, LedRecord::Kind::DropNotArmed, &LedRecord::kind);
    EXPECT_EQ(dropped->index, static_cast<std::uint64_t>(blocked.waiting + 5));
    EXPECT_EQ(dropped->start, 10 * (blocked.waiting + 1) + 40);
  }
}

// Three jobs are armed at once, so the host need not come back for them.
TEST(SimLedRun, NeedsNoHostWhereAllJobsAreArmed) {
  Station station;
  LedSet set = set_for(milliseconds(1));
  add_task(set, periodic(10, 3), {{kernel_of(station, 2)}});
  EXPECT_EQ(lead(station, std::move(set))->host_away(), kNever);
}

// 900 places take 900 runs of one command. Jobs that are due after 20 ms and come every 10 ms: 2 of those runs are for
// jobs that wait, 898 last for 8980 ms. With 3 batches a run takes 3 places: 300 runs, 2980 ms.
TEST(SimLedRun, RefusesToLetTheHostBeAwayForLongerThanQueuesLast) {
  Station station;
  const auto set_of = [&](std::size_t batches, Duration away) {
    LedSet set = set_for(away);
    LedTask task = periodic(Duration{milliseconds(10)}.count(), 1'000'000);
    task.deadline = 2 * task.period;
    add_task(set, task, {std::vector<BoundPlan>(batches, kernel_of(station, 2))});
    return set;
  };
  EXPECT_EQ(lead(station, set_of(1, milliseconds(8980)))->host_away(), milliseconds(8980));
  EXPECT_EQ(refusal(station, set_of(1, milliseconds(8981))),
            "the queues of batch 1 of task 'inspect' hold 8.98 s, less than the 8.981 s for which the host may be "
            "away; let it be away for less");
  EXPECT_EQ(refusal(station, set_of(3, milliseconds(2981))),
            "the queues of batch 1 of task 'inspect' hold 2.98 s, less than the 2.981 s for which the host may be "
            "away; let it be away for less");
  for (const Duration away : {Duration{}, Duration{1}})
    EXPECT_EQ(refusal(station, set_of(901, away)),
              "one job takes more than the 900 entries of a queue of batch 1 of task 'inspect'; let its copies be "
              "fewer, or its chunks larger, or write 'conductor: host'");
}

// Full queues have b + 1 = 2 runs, and there is room for a few records more. Away for ten periods, the host finds
// records of the first jobs; the last job says how many of the others found no room.
TEST(SimLedRun, CountsRecordsThatFindNoRoom) {
  Station station;
  LedSet set = set_for(Duration{10});
  add_task(set, periodic(10, 12), {{kernel_of(station, 2)}});
  const auto run = lead(station, std::move(set));
  run->arm();
  run->begin(Duration{0});
  station.clock->wait_until(Duration{105});  // jobs 0 to 10 have started
  const std::vector<LedRecord> first = take_all(*run);
  run->arm();
  station.clock->wait_until(run->next_look());
  station.clock->wait_until(Duration{120});
  const std::vector<LedRecord> rest = take_all(*run);
  ASSERT_EQ(rest.size(), 1U);
  EXPECT_EQ(rest.front().index, 11U);
  EXPECT_EQ(first.size() + rest.front().missed, 11U);
}

TEST(SimLedRun, ReleasesNoJobAfterAStop) {
  Station station;
  LedSet set = set_for(Duration{100});
  add_task(set, periodic(10, 1000), {{kernel_of(station, 2)}});
  const auto run = lead(station, std::move(set));
  run->arm();
  run->begin(Duration{0});
  station.clock->wait_until(Duration{21});
  run->stop();
  station.clock->wait_until(Duration{22});
  EXPECT_TRUE(run->is_over());
  EXPECT_EQ(take_all(*run).size(), 3U);
}

// One buffer set, given back at 17 and then no more: job 1 waits for it and starts at 17, job 2 until job 1 is late.
TEST(SimLedRun, LetsAJobWaitForBuffersThatTheHostHas) {
  Station station;
  LedSet set = set_for(Duration{100});
  LedTask task = periodic(10, 3);
  task.deadline = 30;
  task.is_read = true;
  add_task(set, task, {{kernel_of(station, 2)}});
  const auto run = lead(station, std::move(set));
  run->arm();
  run->begin(Duration{0});
  station.clock->wait_until(Duration{17});
  run->give_back(0);
  station.clock->wait_until(Duration{100});
  const std::vector<LedRecord> records = take_all(*run);
  ASSERT_EQ(records.size(), 3U);
  EXPECT_EQ(records[1].start, 17);
  EXPECT_EQ(records[2].kind, LedRecord::Kind::DropNoSet);
  EXPECT_EQ(records[2].start, 41);
}

TEST(SimLedRun, GivesUpABatchThatTakesLongerThanItsLimit) {
  Station station;
  LedSet set = set_for(Duration{100});
  add_task(set, periodic(100, 5), {{kernel_of(station, 50)}});
  set.batches[0].limit = 20;
  const auto run = lead(station, std::move(set));
  run->arm();
  run->begin(Duration{0});
  station.clock->wait_until(Duration{1000});
  const std::vector<LedRecord> records = take_all(*run);
  ASSERT_EQ(records.size(), 1U);
  EXPECT_EQ(records[0].kind, LedRecord::Kind::GivenUp);
  EXPECT_EQ(records[0].finish, 21);
  EXPECT_TRUE(run->is_over());
}

TEST(SimLedRun, EndsWithAKernelThatFails) {
  Station station;
  ASSERT_TRUE(station.kernels.add("fail", [](const KernelLaunch&) { throw std::runtime_error("no"); }).has_value());
  LedSet set = set_for(Duration{100});
  add_task(set, periodic(10, 5), {{kernel_of(station, 2, "fail")}});
  const auto run = lead(station, std::move(set));
  run->arm();
  run->begin(Duration{0});
  station.clock->wait_until(Duration{5});
  EXPECT_TRUE(run->is_over());
  EXPECT_FALSE(run->take().has_value());
  ASSERT_TRUE(run->fault().has_value());
  EXPECT_EQ(run->fault()->message, "kernel 'fail' of stream 'kernel' failed: no; its batch's results are invalid");
}

// ---- what it refuses

TEST(SimLedRun, NeedsAVirtualClock) {
  Station station(std::make_unique<RealClock>());
  LedSet set;
  add_task(set, periodic(10, 5), {{kernel_of(station, 2)}});
  EXPECT_EQ(refusal(station, std::move(set)), "the simulated machine leads runs on its virtual clock alone");
}

TEST(SimLedRun, RefusesWhatOnlyTheHostCanDo) {
  Station station;
  const auto refused = [&](CommandStream stream) {
    LedSet set;
    add_task(set, periodic(10, 5), {{bound_plan(station, {std::move(stream)}, {StreamBinding{}})}});
    return refusal(station, std::move(set));
  };
  const VertexId mem0 = station.at("mem0"), gpu0 = station.at("gpu0"), gpu2 = station.at("gpu2");
  const std::string of = " of batch 1 of task 'inspect': ";
  EXPECT_EQ(refused(copy_stream("old", station.at("heap0"), gpu0, 100'000)),
            "only the host can lead stream 'old'" + of + "a thread of the host makes its copy");
  EXPECT_EQ(refused(kernel_stream("sum", station.at("cpu0"), "spin")),
            "only the host can lead stream 'sum'" + of + "a thread of the host does its work");
  EXPECT_EQ(refused(copy_stream("over", gpu0, gpu2, 2000)),
            "only the host can lead stream 'over'" + of + "its copy is staged in the memory of the host");
  EXPECT_EQ(refused(test::uncaptured(kernel_stream("call", gpu0, "spin"))),
            "only the host can lead stream 'call'" + of + "the host calls its kernel in each run (capture: never)");
  CommandStream small = copy_stream("small", mem0, gpu0, 100);
  small.transfer->method = CopyMethod::Inline;
  EXPECT_EQ(refused(std::move(small)),
            "only the host can lead stream 'small'" + of + "the bytes of its copy are read when the host enqueues it");
}

// ---- random sets

/// A random set of the oracle, with plans for its jobs: how long a job takes depends on its run's buffer set.
struct DrawnRun {
  test::LedCase drawn;
  LedSet set;
  std::vector<std::vector<Ns>> lengths;  // [tasks][buffer sets]
};

DrawnRun draw(const Station& station, std::uint64_t seed, bool may_suspend) {
  Random random(seed + 4711);
  DrawnRun run{test::draw_led_case(seed, 400), {}, {}};
  run.set.by_deadline = run.drawn.policy == Policy::Edf;
  run.set.host_away = Duration{uniform(random, 1, 200)};
  const Ns dispatch = station.machine.setup().dispatch.nominal.count();
  for (ScheduledTask& task : run.drawn.tasks)
    if (!may_suspend) task.overrun.suspend_after = 0;
  const LedArrays arrays = arrays_of(run.drawn);
  for (std::size_t i = 0; i < arrays.tasks().size(); ++i) {
    const Ns wcet = run.drawn.tasks[i].timing.wcet.count();
    const auto batches = static_cast<std::size_t>(uniform(random, 1, 2));
    std::vector<std::vector<BoundPlan>> sets(arrays.tasks()[i].sets);
    auto& lengths = run.lengths.emplace_back(sets.size());
    for (std::size_t s = 0; s < sets.size(); ++s) {
      for (std::size_t b = 0; b < batches; ++b) {
        const Ns length = random.one_in(6) ? uniform(random, wcet, 4 * wcet) : uniform(random, 0, wcet);
        sets[s].push_back(kernel_of(station, length / static_cast<Ns>(batches), "count"));
        lengths[s] += dispatch + sets[s].back().plan.timeline.latency.count();
      }
    }
    LedTask task = arrays.tasks()[i];
    task.is_read = random.one_in(3);
    add_task(run.set, task, std::move(sets));
  }
  return run;
}

/// Buffers that the host has given back, in the order of the instants at which it did; others are back as a job ends.
class GivenBack {
 public:
  explicit GivenBack(const LedSet& set) : set_(&set) {}

  void add(std::uint64_t task, std::uint64_t index, Ns at) { by_host_.emplace_back(task, index, at); }
  void ended(std::uint64_t task, std::uint64_t index, Ns now) {
    if (!set_->tasks[task].is_read) free_.emplace_back(task, index, now);
  }
  /// The host looks when all that is due has happened.
  template <class Back>
  void come_back(Ns now, bool all_done, const Back& back) {
    for (const auto& [task, index, at] : free_) back(task, index);
    free_.clear();
    for (; next() < now || (all_done && next() == now); by_host_.pop_front())
      back(std::get<0>(by_host_.front()), std::get<1>(by_host_.front()));
  }
  [[nodiscard]] Ns next() const { return by_host_.empty() ? kNoInstant : std::get<2>(by_host_.front()); }

 private:
  const LedSet* set_;
  std::deque<std::tuple<std::uint64_t, std::uint64_t, Ns>> by_host_, free_;
};

/// What came of a run.
struct Led {
  std::vector<LedRecord> records;
  GivenBack buffers;
  std::size_t looks = 0;
};

/// Leads a run whose host comes back after pauses, and gives buffers back at some of its looks.
/// @param longest  longest(away, now): of the pause that begins now, for a host that may be away so long
template <class Longest>
Led lead_with_pauses(Station& station, DrawnRun& drawn, std::uint64_t seed, const Longest& longest) {
  Random random(seed + 42);
  const auto run = lead(station, drawn.set);
  Led led{{}, GivenBack(drawn.set)};
  const Duration epoch = station.clock->now() + Duration{uniform(random, 0, 100)};
  run->arm();
  run->begin(epoch);
  std::vector<std::deque<std::uint64_t>> read(drawn.set.tasks.size());  // jobs whose buffers the host has
  for (bool over = false; !over; ++led.looks) {
    const Duration now = station.clock->now();
    const Ns most = longest(std::min(run->host_away(), Duration{1000}).count(), (now - epoch).count());
    const Duration away{random.one_in(3) ? most : uniform(random, 1, most)};
    station.clock->wait_until(now + away);
    over = run->is_over();
    for (const LedRecord& record : take_all(*run)) {
      led.records.push_back(record);
      if (record.kind == LedRecord::Kind::Ended && drawn.set.tasks[record.task].is_read)
        read[record.task].push_back(record.index);
    }
    for (std::size_t task = 0; task < read.size(); ++task) {
      for (; !read[task].empty() && !random.one_in(3); read[task].pop_front()) {
        led.buffers.add(task, read[task].front(), (station.clock->now() - epoch).count());
        run->give_back(static_cast<std::uint32_t>(task));
      }
    }
    run->arm();
  }
  return led;
}

std::vector<test::LedLine> lines_of(const std::vector<LedRecord>& records) {
  constexpr const char* kWhat[] = {"start", "skipped", "no set", "not armed", "given up"};
  std::vector<test::LedLine> lines;
  for (const LedRecord& record : records)
    lines.emplace_back(kWhat[static_cast<std::size_t>(record.kind)], record.task, record.index, record.start);
  return lines;
}

/// One job has the machine at a time, none before it arrives, each in one record, runs of a task without a gap.
void expect_sound(const DrawnRun& drawn, const std::vector<LedRecord>& records) {
  std::set<std::pair<std::uint32_t, std::uint64_t>> jobs;
  std::vector<std::uint64_t> runs(drawn.set.tasks.size());
  Ns free = 0;
  for (const LedRecord& record : records) {
    EXPECT_TRUE(jobs.emplace(record.task, record.index).second);
    EXPECT_GE(record.ready, record.arrival);
    EXPECT_GE(record.start, record.ready);
    if (record.kind != LedRecord::Kind::Ended) continue;
    EXPECT_EQ(record.run, runs[record.task]++);
    EXPECT_GE(record.start, free);
    EXPECT_EQ(record.finish - record.start, record.in_batches);
    free = record.finish;
  }
}

/// The small machine, whose batches take 1 ns to dispatch, with a kernel that counts its runs.
struct CountingStation {
  CountingStation()
      : station(std::make_unique<VirtualClock>(), Station::make_sim,
                test::changed(test::small_machine(), [](MachineSpec& spec) {
                  spec.setup.dispatch = {Duration{1}, Duration{1}};
                })) {
    EXPECT_TRUE(station.kernels.add("count", [this](const KernelLaunch&) { ++kernels; }).has_value());
  }
  CountingStation(const CountingStation&) = delete;  // its kernel refers to it
  CountingStation& operator=(const CountingStation&) = delete;

  Station station;
  std::size_t kernels = 0;
};

// Pauses of up to `host_away`, a third of them exactly that.
TEST(SimLedRun, DecidesAsTheSchedulerWhileTheHostComesAndGoes) {
  CountingStation counting;
  std::size_t jobs = 0, looks = 0, batches = 0;
  for (std::uint64_t seed = 1; seed <= test::rounds(std::uint64_t{2500}); ++seed) {
    DrawnRun drawn = draw(counting.station, seed, true);
    Led led = lead_with_pauses(counting.station, drawn, seed, [](Ns away, Ns) { return away; });
    std::vector<std::uint64_t> runs(drawn.set.tasks.size());
    const auto takes = [&](std::uint64_t task, std::uint64_t) {
      const auto& lengths = drawn.lengths[task];
      return lengths[runs[task]++ % lengths.size()];
    };
    ASSERT_EQ(lines_of(led.records), by_scheduler(drawn.drawn, takes, led.buffers)) << "seed " << seed;
    expect_sound(drawn, led.records);
    ASSERT_FALSE(::testing::Test::HasFailure()) << "seed " << seed;
    for (std::size_t i = 0; i < runs.size(); ++i) batches += runs[i] * drawn.set.tasks[i].batches;
    jobs += led.records.size();
    looks += led.looks;
  }
  EXPECT_EQ(counting.kernels, batches);
  EXPECT_GT(jobs, test::rounds(std::size_t{1'000'000}));
  EXPECT_LT(looks, jobs);  // pauses have several jobs in them
}

// Pauses of up to three times as long, until short ones at the end give all records room: each job that had the machine
// is in a record, and the others are, too, or among those that the next record says found no room.
TEST(SimLedRun, CountsEachJobWhereTheHostIsAwayForTooLong) {
  CountingStation counting;
  std::size_t dropped = 0, missed = 0;
  for (std::uint64_t seed = 1; seed <= test::rounds(std::uint64_t{1000}); ++seed) {
    DrawnRun drawn = draw(counting.station, seed, false);
    std::size_t jobs = 0;
    Ns short_from = kNoInstant;  // arrivals of all tasks follow
    for (const LedTask& task : drawn.set.tasks) {
      const auto all = static_cast<Ns>(task.jobs - task.first_job);
      if (all > 0) short_from = std::min(short_from, task.first_arrival + all * 3 / 4 * task.period);
      jobs += static_cast<std::size_t>(all);
    }
    const auto longest = [&](Ns away, Ns now) { return now + 3 * away < short_from ? 3 * away : 1; };
    const Led led = lead_with_pauses(counting.station, drawn, seed, longest);
    expect_sound(drawn, led.records);
    std::size_t no_room = 0;
    for (const LedRecord& record : led.records) no_room += record.missed;
    ASSERT_EQ(led.records.size() + no_room, jobs) << "seed " << seed;
    dropped += not_armed(led.records);
    missed += no_room;
  }
  EXPECT_GT(dropped, test::rounds(std::size_t{5'000}));
  EXPECT_GT(missed, test::rounds(std::size_t{5'000}));
}

// ---- bytes

/// Two tasks that work on memory of each other: in any other order, or with a job more, it would hold other bytes.
///
/// A job of task 0 takes an image to gpu0, folds it into a sum there, and brings the sum back. A job of task 1 takes
/// the sum to gpu1 and folds it into another one, and that one into the first image.
struct Folding {
  static constexpr std::size_t kSize = 200;

  Folding() {
    const auto fold = [](const KernelLaunch& launch) {
      for (std::size_t i = 0; i < launch.output.size(); ++i)
        launch.output[i] = static_cast<std::byte>(31 * std::to_integer<int>(launch.output[i]) +
                                                  std::to_integer<int>(launch.input[i]) + 1);
    };
    EXPECT_TRUE(station.kernels.add("fold", fold).has_value());
    const VertexId mem0 = station.at("mem0"), gpu0 = station.at("gpu0"), gpu1 = station.at("gpu1");
    const BufferView sum = add(gpu0), other = add(gpu1), there = add(gpu1);
    for (int number = 0; number < 2; ++number) {
      const BufferView image = add(mem0), input = add(gpu0), result = add(mem0);
      plans[0].push_back({batch(image, input, sum), batch(sum, result, {})});
      if (number == 0) plans[1].push_back({batch(sum, there, other), batch(other, image, {})});
    }
    for (std::size_t i = 0; i < buffers.size(); ++i) station.write(buffers[i].view(), test::pattern(kSize, i));
  }

  BufferView add(VertexId where) { return buffers.emplace_back(station.allocate(where, kSize)).view(); }
  BoundPlan batch(const BufferView& from, const BufferView& to, const BufferView& output) {
    CommandStream stream = copy_stream("copy", from.where, to.where, kSize);
    StreamBinding binding = bound(from, to);
    if (output.data != nullptr) {
      stream.kernel = Kernel{output.where, Duration{20}, Duration{20}, "fold"};
      binding.kernel_output = output;
    }
    return bound_plan(station, {stream}, {binding});
  }
  [[nodiscard]] std::vector<std::vector<std::byte>> bytes() {
    std::vector<std::vector<std::byte>> all;
    for (const Buffer& buffer : buffers) all.push_back(station.read(buffer.view()));
    return all;
  }

  Station station;
  std::vector<Buffer> buffers;
  std::array<std::vector<std::vector<BoundPlan>>, 2> plans;  // [tasks][buffer sets][batches]
};

// Jobs of 420 (200 + 20 + 200) every 1000 and every 1700, over 50 us.
TEST(SimLedRun, LeavesTheBytesThatTheHostWouldLeave) {
  Folding led, host;
  LedSet set = set_for(Duration{10'000});
  add_task(set, periodic(1000, 50), led.plans[0]);
  add_task(set, periodic(1700, 29, 300), led.plans[1]);
  std::vector<LedRecord> records;
  {
    const auto run = lead(led.station, std::move(set));
    run->arm();
    run->begin(led.station.clock->now());
    while (!run->is_over()) {
      led.station.clock->wait_until(run->next_look());
      std::ranges::move(take_all(*run), std::back_inserter(records));
      run->arm();
    }
  }
  ASSERT_EQ(records.size(), 79U);
  for (const LedRecord& record : records) {
    ASSERT_EQ(record.kind, LedRecord::Kind::Ended);
    ASSERT_EQ(record.in_batches, 420);
    const auto& sets = host.plans[record.task];
    for (const BoundPlan& plan : sets[record.run % sets.size()]) {
      auto prepared = host.station.executor.prepare(plan.plan, plan.bindings);
      ASSERT_TRUE(host.station.executor.run(*prepared).has_value());
    }
  }
  EXPECT_EQ(led.bytes(), host.bytes());
}

}  // namespace
}  // namespace tutti::internal
