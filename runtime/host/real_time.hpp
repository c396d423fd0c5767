#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <sched.h>

#include "model/base/error.hpp"
#include "runtime/core/backend_options.hpp"
#include "runtime/core/thread_role.hpp"

namespace tutti::internal {

/// Real-time set-up of the process, while it lives: what does not belong to one thread.
///
/// Memory is locked, and stays so; the heap gives none back. Cores are kept from deep sleep, from which they wake late.
class RealTimeSetup {
 public:
  /// @errors InvalidInput: a priority beyond 98, a core that the program may not use.
  [[nodiscard]] static Expected<RealTimeSetup> make(const RealTimeOptions& options);
  RealTimeSetup(RealTimeSetup&& other) noexcept;
  RealTimeSetup& operator=(RealTimeSetup&& other) noexcept;
  RealTimeSetup(const RealTimeSetup&) = delete;  // the request to keep cores awake is taken back once
  RealTimeSetup& operator=(const RealTimeSetup&) = delete;
  ~RealTimeSetup();

  /// Requests that the host refused, a sentence each with its remedy.
  [[nodiscard]] const std::vector<std::string>& notes() const { return notes_; }

 private:
  RealTimeSetup() = default;
  void lock_memory();
  void keep_cores_awake();

  int awake_ = -1;  // file that asks for it as long as it is open
  std::vector<std::string> notes_;
};

/// Locks the memory of the process, as pages are touched. @return what the host refused; empty where it did not.
[[nodiscard]] std::string lock_all_memory();

/// A core for one thread of this program alone, while it lives. Threads that ask `keep_off` stay off it.
class OwnCore {
 public:
  /// Takes a core that is free: one of those named, in their order, else the last one that the calling thread may use.
  /// @param leave  cores that must stay free, where none are named; and as many as were taken before
  [[nodiscard]] static std::optional<OwnCore> take(int leave, std::span<const int> named = {});
  OwnCore(OwnCore&& other) noexcept : core_(other.core_) { other.core_ = -1; }
  OwnCore& operator=(OwnCore&& other) = delete;
  OwnCore(const OwnCore&) = delete;  // it is given back once
  OwnCore& operator=(const OwnCore&) = delete;
  ~OwnCore();

  [[nodiscard]] int number() const { return core_; }

 private:
  explicit OwnCore(int core) : core_(core) {}
  int core_;
};

/// The reason why a thread that spins gets no real-time priority, even on a core of its own; empty where it gets one.
/// By default the kernel stops real-time threads that run without a pause for 50 ms in each second.
/// @param thread  "the thread that ..."
[[nodiscard]] std::string throttled(std::string_view thread);

/// The calling thread in its role, while it lives; made and destroyed by that thread.
///
/// It has the role's priority, one nanosecond of timer slack and a stack whose pages are there. A thread that spins
/// gets real-time priority only with a core of its own: it would keep all others from the one that it shares. And only
/// where the kernel lets it run on (`throttled`).
class RealTimeThread {
 public:
  explicit RealTimeThread(const ThreadRole& role);
  RealTimeThread(const RealTimeThread&) = delete;  // its thread is given its former state back once
  RealTimeThread& operator=(const RealTimeThread&) = delete;
  ~RealTimeThread();

  /// As those of `RealTimeSetup`.
  [[nodiscard]] const std::vector<std::string>& notes() const { return notes_; }

 private:
  void take_core(std::span<const int> named);
  void take_priority(int priority);

  std::vector<std::string> notes_;
  std::optional<OwnCore> core_;
  std::optional<cpu_set_t> allowed_before_;
  bool has_priority_ = false;
};

/// Makes the calling thread one that takes no core from threads that are in a hurry: of ordinary priority, whatever it
/// inherited. It gets no signals, so that none ends the program there. Threads that it starts inherit this.
/// @param name  at most 15 letters
void become_ordinary_thread(const char* name);

}  // namespace tutti::internal
