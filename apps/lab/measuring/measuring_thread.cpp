#include "apps/lab/measuring/measuring_thread.hpp"

#include <array>
#include <future>

#include <fmt/format.h>

namespace tutti::internal {
namespace {

bool allows_fifo(int priority) {
  return std::async(std::launch::async, [&] { return RealTimeThread({.priority = priority}).notes().empty(); }).get();
}

}  // namespace

std::string_view to_string(Scheduling scheduling) {
  constexpr std::array<std::string_view, 4> names{"virtual", "SCHED_OTHER", "SCHED_FIFO", "own core"};
  return names[static_cast<std::size_t>(scheduling)];
}

MeasuringPlace MeasuringPlace::best(int priority, std::span<const int> named) {
  constexpr int kLeave = 1;  // for load
  MeasuringPlace place(Scheduling::Fifo);
  place.priority_ = priority;
  if (allows_fifo(priority)) return place;
  if (auto core = OwnCore::take(kLeave, named)) place.core_.emplace(*std::move(core));
  if (place.core_) place.others_ = std::make_unique<OnCores>(place.allowed_.without(place.core_->number()));
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
    if (core_) Cores::only(core_->number()).apply();
    work();
  };
  std::async(std::launch::async, in_place).get();  // what it throws goes to the caller
}

void MeasuringPlace::beside(const std::function<void()>& work) const {
  if (core_) return work();  // the calling thread is off that core, and off those that the backend has for its threads
  const OnCores all(allowed_);
  work();
}

}  // namespace tutti::internal
