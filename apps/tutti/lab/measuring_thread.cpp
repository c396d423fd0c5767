#include "apps/tutti/lab/measuring_thread.hpp"

#include <array>
#include <future>

#include <fmt/format.h>
#include <sched.h>

namespace tutti::internal {
namespace {

bool allows_fifo(int priority) {
  return std::async(std::launch::async, [&] { return RealTimeThread({.priority = priority}).notes().empty(); }).get();
}

std::optional<cpu_set_t> allowed_cores_now() {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return std::nullopt;
  return allowed;
}

/// Keeps the calling thread off a core. @return its cores before, which it has again when this goes
std::shared_ptr<const cpu_set_t> keep_off(int core) {
  const auto before = allowed_cores_now();
  if (!before) return nullptr;
  cpu_set_t others = *before;
  CPU_CLR(core, &others);
  if (CPU_COUNT(&others) == 0 || sched_setaffinity(0, sizeof others, &others) != 0) return nullptr;
  return {new cpu_set_t(*before), [](const cpu_set_t* cores) {
            sched_setaffinity(0, sizeof *cores, cores);
            delete cores;
          }};
}

}  // namespace

std::string_view to_string(Scheduling scheduling) {
  constexpr std::array<std::string_view, 4> names{"virtual", "SCHED_OTHER", "SCHED_FIFO", "own core"};
  return names[static_cast<std::size_t>(scheduling)];
}

MeasuringPlace::MeasuringPlace(Scheduling scheduling) : scheduling_(scheduling), allowed_(allowed_cores_now()) {}

MeasuringPlace MeasuringPlace::best(int priority, std::span<const int> named) {
  constexpr int kLeave = 1;  // for load
  MeasuringPlace place(Scheduling::Fifo);
  place.priority_ = priority;
  if (allows_fifo(priority)) return place;
  if (auto core = OwnCore::take(kLeave, named)) place.core_.emplace(*std::move(core));
  if (place.core_) place.before_ = keep_off(place.core_->number());
  place.scheduling_ = place.core_ ? Scheduling::OwnCore : Scheduling::Ordinary;
  place.note_ =
      fmt::format("SCHED_FIFO is refused here, so the thread that measures {}; allow it (ulimit -r, CAP_SYS_NICE)",
                  place.core_ ? fmt::format("has core {} to itself and load keeps off it", place.core_->number())
                              : "is an ordinary one without a core of its own");
  return place;
}

void MeasuringPlace::run(const std::function<void()>& work) const {
  const auto in_place = [&] {
    const RealTimeThread thread({.priority = scheduling_ == Scheduling::Fifo ? priority_ : 0});
    if (core_) {
      cpu_set_t own;
      CPU_ZERO(&own);
      CPU_SET(core_->number(), &own);
      sched_setaffinity(0, sizeof own, &own);
    }
    work();
  };
  std::async(std::launch::async, in_place).get();  // what it throws goes to the caller
}

void MeasuringPlace::beside(const std::function<void()>& work) const {
  const auto before = allowed_cores_now();
  if (!before || !allowed_) return work();
  cpu_set_t cores = *allowed_;
  if (core_) {
    cores = *before;  // without those that the backend has for its threads
    CPU_CLR(core_->number(), &cores);
  }
  if (CPU_COUNT(&cores) > 0) sched_setaffinity(0, sizeof cores, &cores);
  work();
  sched_setaffinity(0, sizeof *before, &*before);
}

}  // namespace tutti::internal
