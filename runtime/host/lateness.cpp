#include "runtime/host/lateness.hpp"

#include <algorithm>
#include <thread>

#include <fmt/format.h>
#include <sched.h>

#include "model/base/quantile.hpp"
#include "runtime/host/real_time.hpp"

namespace tutti::internal {
namespace {

/// Keeps the calling thread on a core. @return what the host refused; empty where it did not.
std::string keep_on(int core) {
  cpu_set_t one;
  CPU_ZERO(&one);
  if (core >= 0 && core < CPU_SETSIZE) CPU_SET(core, &one);
  if (sched_setaffinity(0, sizeof one, &one) == 0) return "";
  return fmt::format("a thread of the self-test cannot be kept on core {}; name cores that the program may use", core);
}

/// The test of one thread, in the calling thread.
WakeLateness test_here(const LatenessTest& test, std::optional<int> core) {
  std::string refused = core ? keep_on(*core) : "";
  const RealTimeThread thread(test.role);
  RealClock clock(test.waiting);
  WakeLateness found = summarize_lateness(measure_lateness(clock, test.length, test.interrupted));
  found.core = core;
  found.notes = thread.notes();
  if (!refused.empty()) found.notes.push_back(std::move(refused));
  return found;
}

}  // namespace

std::vector<WakeLateness> test_lateness(const LatenessTest& test) {
  std::vector<std::optional<int>> places(test.cores.begin(), test.cores.end());
  if (places.empty()) places.emplace_back();
  std::vector<WakeLateness> found(places.size());
  std::vector<std::jthread> threads;  // each writes a place of its own
  for (std::size_t i = 0; i < places.size(); ++i)
    threads.emplace_back([&test, &place = places[i], &result = found[i]] { result = test_here(test, place); });
  threads.clear();
  return found;
}

std::vector<Duration> measure_lateness(Clock& clock, Duration length, const std::atomic<bool>* interrupted) {
  const auto instants = static_cast<std::size_t>(length / LatenessTest::kPeriod);
  std::vector<Duration> late(instants);  // its pages are there before the first instant
  Duration due = clock.now();
  for (std::size_t i = 0; i < instants; ++i) {
    if (interrupted != nullptr && interrupted->load(std::memory_order_relaxed)) {
      late.resize(i);
      break;
    }
    due += LatenessTest::kPeriod;
    clock.wait_until(due);
    late[i] = std::max(Duration{0}, clock.now() - due);
  }
  return late;
}

WakeLateness summarize_lateness(const std::vector<Duration>& late) {
  std::vector<double> ns;
  for (const Duration value : late) ns.push_back(as_ns(value));
  const auto at = [&](double share) { return round_up_ns(quantile(ns, share)); };
  return {std::nullopt, late.size(), at(0.5), at(0.99), at(0.999), at(1)};
}

std::optional<Duration> worst_of(const std::vector<WakeLateness>& threads) {
  std::optional<Duration> worst;
  for (const WakeLateness& thread : threads)
    if (thread.instants > 0) worst = std::max(worst.value_or(Duration{0}), thread.worst);
  return worst;
}

}  // namespace tutti::internal
