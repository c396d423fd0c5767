#pragma once
#include <atomic>
#include <cstdint>
#include <optional>
#include <thread>
#include <vector>

#include "model/base/units.hpp"
#include "runtime/comm/word.hpp"

namespace tutti::internal::comm {

/// By what others see that a rank lives. All are 0 at first.
struct LifeSign {
  Word beat;             ///< grows while it lives; 0: it shows none
  Word left;             ///< 1: it has ended in order
  std::int64_t process;  ///< its process id; 0: not there yet
};

/// Sees which ranks have died: those whose process is gone, and those whose beat stands still. A value.
class LifeWatch {
 public:
  /// @param signs    of all ranks, on this host
  /// @param silence  how long a beat may stand still. A rank that is busy beats by a thread of its own (`Heart`)
  LifeWatch(std::vector<LifeSign*> signs, int own_rank, Duration silence);

  /// The first rank that is dead; a rank that has not begun, or has ended in order, is not.
  /// @param now  never less than before
  [[nodiscard]] std::optional<int> dead(Duration now);

 private:
  struct Seen {
    Word beat = 0;
    Duration since{};
  };
  [[nodiscard]] bool is_dead(std::size_t rank, Duration now);

  std::vector<LifeSign*> signs_;
  std::size_t own_;
  Duration silence_;
  std::vector<Seen> seen_;  // [ranks]
};

/// Whether a process of this host has ended, also where nobody has asked for its exit status yet.
[[nodiscard]] bool has_ended(std::int64_t process);

/// A thread that beats while this object lives, and says at its end that the rank has left.
class Heart {
 public:
  explicit Heart(LifeSign& sign);
  Heart(const Heart&) = delete;  // the thread holds a reference to it
  Heart& operator=(const Heart&) = delete;
  ~Heart();

 private:
  LifeSign& sign_;
  std::atomic<bool> stop_ = false;
  std::thread beats_;
};

}  // namespace tutti::internal::comm
