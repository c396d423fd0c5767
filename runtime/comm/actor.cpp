#include "runtime/comm/actor.hpp"

#include <algorithm>
#include <chrono>

namespace tutti::internal::comm {
namespace {

/// Looks that follow each other without sleep: what comes within microseconds is seen at once.
constexpr int kLooksBeforeSleep = 200;
constexpr std::chrono::microseconds kSleep{50};

/// Gives the core away, for longer where nothing has happened for a while.
void pause_after(int looks) {
  if (looks < kLooksBeforeSleep)
    std::this_thread::yield();
  else
    std::this_thread::sleep_for(kSleep);
}

}  // namespace

bool VirtualWorld::until(const std::function<bool()>& holds, Duration instant) {
  for (;;) {
    if (holds()) return true;
    bool progress = false;
    Duration next = kNever;
    for (Actor* actor : actors_) {
      const Step step = actor->step(now_);
      progress |= step.progress;
      next = std::min(next, step.next);
    }
    if (progress) continue;  // others may have work through it, at the same instant
    if (next == kNever || next >= instant) {
      now_ = instant == kNever ? now_ : std::max(now_, instant);
      return holds();
    }
    now_ = std::max(now_ + Duration{1}, next);
  }
}

void VirtualWorld::run(Duration instant) {
  static_cast<void>(until([] { return false; }, instant));
}

ActorThread::ActorThread(Actor& actor, const Clock& clock) {
  calls_ = std::thread([this, &actor, &clock] {
    for (int idle = 0; !stop_.load(); ++idle) {
      const Step step = actor.step(clock.now());
      if (step.progress) idle = 0;
      // What is due soon is waited for awake: to sleep takes longer.
      pause_after(step.next - clock.now() < 4 * Duration{kSleep} ? 0 : idle);
    }
  });
}

ActorThread::~ActorThread() {
  stop_.store(true);
  calls_.join();
}

bool RealWait::until(const std::function<bool()>& holds, Duration instant) {
  for (int looks = 0;; ++looks) {
    if (holds()) return true;
    if (clock_.now() >= instant) return false;
    pause_after(looks);
  }
}

}  // namespace tutti::internal::comm
