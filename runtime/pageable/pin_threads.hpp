#pragma once
#include <span>

#include <sched.h>
#include <signal.h>

namespace tutti::internal {

/// Threads that are started while it lives take no signals: the program's handlers run in its own threads.
class WithoutSignals {
 public:
  WithoutSignals();
  WithoutSignals(const WithoutSignals&) = delete;  // it restores one mask once
  WithoutSignals& operator=(const WithoutSignals&) = delete;
  ~WithoutSignals();

 private:
  sigset_t before_;
};

/// The cores that a thread may use, remembered: those of the thread that makes it.
class Cores {
 public:
  Cores() : known_(sched_getaffinity(0, sizeof set_, &set_) == 0) {}
  /// One core alone.
  [[nodiscard]] static Cores only(int core) {
    Cores cores;
    CPU_ZERO(&cores.set_);
    CPU_SET(core, &cores.set_);
    return cores;
  }
  /// The others than one.
  [[nodiscard]] Cores without(int core) const {
    Cores others = *this;
    CPU_CLR(core, &others.set_);
    return others;
  }
  /// Lets the calling thread, and threads that it starts, use them.
  void apply() const {
    if (known_) static_cast<void>(sched_setaffinity(0, sizeof set_, &set_));
  }

 private:
  cpu_set_t set_;
  bool known_;
};

/// While it lives the calling thread has other cores.
class OnCores {
 public:
  explicit OnCores(const Cores& cores) { cores.apply(); }
  OnCores(const OnCores&) = delete;  // it restores the thread's own once
  OnCores& operator=(const OnCores&) = delete;
  ~OnCores() { before_.apply(); }

 private:
  Cores before_;
};

/// Lets the calling thread run on these cores alone; on all of the program's where none is named, or where the host
/// refuses it.
void pin_this_thread(std::span<const int> cores);

}  // namespace tutti::internal
