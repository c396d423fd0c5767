#pragma once
#include <atomic>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "runtime/core/clock.hpp"

namespace tutti::internal::comm {

/// What an actor did when it was called, and when it wants to be called again.
struct Step {
  bool progress = false;   ///< something changed that others may see
  Duration next = kNever;  ///< by itself; whatever others change may give it work sooner
};

/// Something that acts beside the host: a NIC, a stream. It never waits, and takes the time from its caller.
class Actor {
 public:
  virtual ~Actor() = default;
  /// Does all that is due. @param now  never less than before
  [[nodiscard]] virtual Step step(Duration now) = 0;
};

/// How a thread of the host waits for what actors do.
class HostWait {
 public:
  virtual ~HostWait() = default;
  [[nodiscard]] virtual Duration now() const = 0;
  /// Waits until a condition holds, or the instant, or until nothing more will happen.
  /// @return whether it holds
  [[nodiscard]] virtual bool until(const std::function<bool()>& holds, Duration instant) = 0;
};

/// Actors on virtual time: it passes only while the host waits, and jumps to whatever is due next.
class VirtualWorld final : public HostWait {
 public:
  /// @param actor  is called in the order of the calls of `add`, and outlives this object
  void add(Actor& actor) { actors_.push_back(&actor); }
  [[nodiscard]] Duration now() const override { return now_; }
  [[nodiscard]] bool until(const std::function<bool()>& holds, Duration instant) override;
  /// Lets all happen that is due before an instant.
  void run(Duration instant = kNever);

 private:
  std::vector<Actor*> actors_;
  Duration now_{};
};

/// An actor that a thread of its own calls, by a clock that runs by itself.
class ActorThread {
 public:
  /// @param actor, clock  outlive this object; others may call the actor while the thread is stopped only
  ActorThread(Actor& actor, const Clock& clock);
  ActorThread(const ActorThread&) = delete;  // the thread holds references
  ActorThread& operator=(const ActorThread&) = delete;
  ~ActorThread();

 private:
  std::atomic<bool> stop_ = false;
  std::thread calls_;
};

/// A host that looks again and again, and gives its core away in between.
class RealWait final : public HostWait {
 public:
  /// @param clock  outlives this object
  explicit RealWait(const Clock& clock) : clock_(clock) {}
  [[nodiscard]] Duration now() const override { return clock_.now(); }
  [[nodiscard]] bool until(const std::function<bool()>& holds, Duration instant) override;

 private:
  const Clock& clock_;
};

}  // namespace tutti::internal::comm
