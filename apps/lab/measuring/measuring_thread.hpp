#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "runtime/host/real_time.hpp"
#include "runtime/pageable/pin_threads.hpp"

namespace tutti::internal {

/// How the thread that measures is kept from other threads.
enum class Scheduling : std::uint8_t {
  Virtual,   ///< not at all, nor is there a need: time does not pass by itself
  Ordinary,  ///< not at all: SCHED_OTHER
  Fifo,      ///< SCHED_FIFO
  OwnCore,   ///< SCHED_OTHER on a core that load keeps off
};

/// "virtual", "SCHED_OTHER", "SCHED_FIFO", "own core".
[[nodiscard]] std::string_view to_string(Scheduling scheduling);

/// The place of the threads that measure, and that of load. Make it before the backend, which may keep the program off
/// a core: load runs on that one, too. While it lives, the thread that made it stays off the core of those that
/// measure, and so does what it starts: the library of CUDA hands out cores by itself.
class MeasuringPlace {
 public:
  static constexpr int kPriority = 80;

  [[nodiscard]] static MeasuringPlace ordinary() { return MeasuringPlace(Scheduling::Ordinary); }
  [[nodiscard]] static MeasuringPlace virtual_time() { return MeasuringPlace(Scheduling::Virtual); }
  /// SCHED_FIFO where the host allows it, else a core of its own, else ordinary.
  /// @param named  cores to take one of; empty: the last free one
  [[nodiscard]] static MeasuringPlace best(int priority, std::span<const int> named = {});

  [[nodiscard]] Scheduling scheduling() const { return scheduling_; }
  /// What the host refused, with its remedy; empty where it did not.
  [[nodiscard]] const std::string& note() const { return note_; }

  /// Does work in a thread of its own in this place. @return when it is done
  void run(const std::function<void()>& work) const;
  /// Does work in the calling thread on the cores that load may use, which threads and processes that it starts
  /// inherit: all, but where cores protect the thread that measures.
  void beside(const std::function<void()>& work) const;

 private:
  explicit MeasuringPlace(Scheduling scheduling) : scheduling_(scheduling) {}

  Scheduling scheduling_;
  int priority_ = 0;
  Cores allowed_ = {};  // that the program might use when this was made
  std::optional<OwnCore> core_ = {};
  std::unique_ptr<const OnCores> others_ = {};  // of the thread that made this
  std::string note_ = {};
};

}  // namespace tutti::internal
