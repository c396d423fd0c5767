#include "runtime/dispatch/callback_worker.hpp"

#include <algorithm>
#include <utility>

#include "model/base/expects.hpp"
#include "runtime/host/real_time.hpp"

namespace tutti::internal {

CallbackWorker::CallbackWorker(Clock& clock, std::size_t capacity, Work work, const ThreadRole& role, Waker& waker)
    : clock_(clock), work_(std::move(work)), role_(role), waker_(waker), todo_(capacity), done_(capacity) {
  if (clock.runs_by_itself()) thread_ = std::thread([this] { lead(); });
}

CallbackWorker::~CallbackWorker() {
  if (!thread_.joinable()) return;
  leaving_ = true;
  own_.wake();
  thread_.join();
}

void CallbackWorker::post(std::size_t piece) {
  ++posted_;
  if (thread_.joinable()) {
    TUTTI_EXPECTS(todo_.push(std::move(piece)), "no more is posted than the worker has room for");
    own_.wake();
    return;
  }
  Done done{piece, std::max(clock_.now(), free_at_), {}};
  done.ended = free_at_ = clock_.aside(done.began, [&] { work_(piece); });
  TUTTI_EXPECTS(done_.push(std::move(done)), "no more is posted than the worker has room for");
}

bool CallbackWorker::find_next() {
  if (next_) return true;
  Done done;
  if (!done_.pop(done)) return false;
  next_ = done;
  return true;
}

std::optional<CallbackWorker::Done> CallbackWorker::take_done(Duration now) {
  if (is_idle() || !find_next() || (!thread_.joinable() && next_->ended > now)) return std::nullopt;
  ++taken_;
  return std::exchange(next_, std::nullopt);
}

Duration CallbackWorker::next_done() {
  if (thread_.joinable() || is_idle() || !find_next()) return kNever;
  return next_->ended;
}

void CallbackWorker::lead() {
  const RealTimeThread in_its_role(role_);
  notes_ = in_its_role.notes();
  for (;;) {
    own_.look();
    if (leaving_) return;
    for (std::size_t piece = 0; todo_.pop(piece);) do_piece(piece);
    clock_.wait_for_call(own_);
  }
}

void CallbackWorker::do_piece(std::size_t piece) {
  const Duration began = clock_.now();
  work_(piece);
  TUTTI_EXPECTS(done_.push({piece, began, clock_.now()}), "no more is done than was posted");
  waker_.wake();
}

}  // namespace tutti::internal
