#include "runtime/cuda/base/call_thread.hpp"

#include <condition_variable>
#include <mutex>

namespace tutti::internal::cuda {

struct CallThread::State {
  std::mutex mutex;
  std::condition_variable changed;
  Function function = nullptr;  // being called; null: none
  void* object = nullptr;
  bool leaving = false;

  void work() {
    for (std::unique_lock lock(mutex);;) {
      changed.wait(lock, [&] { return function != nullptr || leaving; });
      if (function == nullptr) return;
      lock.unlock();
      function(object);
      lock.lock();
      function = nullptr;
      changed.notify_all();
    }
  }
};

CallThread::CallThread() : state_(std::make_shared<State>()), thread_([state = state_] { state->work(); }) {}

CallThread::~CallThread() {
  std::unique_lock lock(state_->mutex);
  state_->leaving = true;
  state_->changed.notify_all();
  const bool is_stuck = state_->function != nullptr;
  lock.unlock();
  is_stuck ? thread_.detach() : thread_.join();
}

bool CallThread::call(Function function, void* object, Duration limit) {
  {
    const std::lock_guard lock(state_->mutex);
    state_->function = function;
    state_->object = object;
    state_->changed.notify_all();
  }
  return comes_back(limit);
}

bool CallThread::comes_back(Duration limit) {
  std::unique_lock lock(state_->mutex);
  return state_->changed.wait_for(lock, limit, [&] { return state_->function == nullptr; });
}

}  // namespace tutti::internal::cuda
