#include "runtime/cuda/batches/cuda_batch.hpp"

#include <algorithm>

#include "model/base/expects.hpp"
#include "runtime/core/watchdog.hpp"
#include "runtime/cuda/batches/command_names.hpp"
#include "runtime/cuda/lanes/pointers.hpp"

namespace tutti::internal::cuda {

Expected<std::unique_ptr<CudaBatch>> CudaBatch::make(BoundDevices& backend, BoundPlan plan) {
  if (auto ok = check_pointers(backend, plan); !ok) return tl::unexpected(std::move(ok.error()));
  auto bound = BoundBatch::make(backend, std::move(plan));
  if (!bound) return tl::unexpected(std::move(bound.error()));
  auto enqueuer = Enqueuer::make(**bound);
  if (!enqueuer) return tl::unexpected(std::move(enqueuer.error()));
  return std::unique_ptr<CudaBatch>(new CudaBatch(*std::move(bound), *std::move(enqueuer)));
}

CudaBatch::CudaBatch(std::unique_ptr<BoundBatch> batch, std::unique_ptr<Enqueuer> enqueuer)
    : batch_(std::move(batch)), enqueuer_(std::move(enqueuer)), opener_(*batch_, *enqueuer_), times_(*batch_) {
  backend().batches.push_back(this);
}

CudaBatch::~CudaBatch() {
  disarm();
  wait();
  disarm_followers();
  give_lanes_back();
  std::erase(backend().batches, this);
  if (backend().submitted_last == this) backend().submitted_last = nullptr;
  if (backend().lost) abandon();
}

/// Nobody waited for what is in the queues: it may still run, and looks at both.
void CudaBatch::abandon() {
  enqueuer_->abandon();
  static_cast<void>(enqueuer_.release());
  static_cast<void>(batch_.release());
}

void CudaBatch::arm() {
  TUTTI_EXPECTS(poll(), "a batch is armed again only after it is finished");
  if (state_ == State::Armed) return refresh_timers();
  arm_behind_run(nullptr);
}

void CudaBatch::arm_behind(BackendBatch& before) {
  const auto* const run = dynamic_cast<const CudaBatch*>(&before);
  const bool follows = state_ != State::Armed && run != nullptr && run != this && run->can_be_followed();
  if (!follows) return arm();
  TUTTI_EXPECTS(poll(), "a batch is armed again only after it is finished");
  arm_behind_run(run);
}

void CudaBatch::arm_behind_run(const CudaBatch* before) {
  arm_on(false, before);
  if (state_ == State::Armed) backend().conductor.expect_one_more();
}

/// Runs the batch, so that the conductor detects a run that does not end; and what would follow it.
void CudaBatch::disarm() {
  if (state_ != State::Armed) return;
  for (CudaBatch* const batch : backend().batches)
    if (batch_->follows == batch->batch_.get() && batch->state_ == State::Armed) return batch->disarm();
  if (backend().lost) opener_.open_all();  // the conductor opens no more gates
  submit_run({});
  wait();
  disarm_followers();
}

void CudaBatch::disarm_followers() {
  for (CudaBatch* const batch : backend().batches)
    if (batch->state_ == State::Armed && batch->batch_->follows == batch_.get()) return batch->disarm();
}

void CudaBatch::submit(Duration earliest) {
  const CudaBatch* const last = backend().submitted_last;
  TUTTI_EXPECTS(state_ != State::Armed || batch_->follows == nullptr ||
                    (last != nullptr && last->batch_.get() == batch_->follows),
                "a run that was armed behind another one is submitted directly behind it");
  submit_run(earliest);
}

void CudaBatch::submit_run(Duration earliest) {
  TUTTI_EXPECTS(poll(), "a batch is submitted again only after it is finished");
  const bool armed = state_ == State::Armed;
  if (!armed) arm_on(true, run_before(earliest));
  for (BatchDevice& device : batch_->devices) {
    if (device.timer == nullptr) continue;
    device.line = device.timer->line();
    device.doubt = device.timer->doubt();
  }
  state_ = State::Submitted;
  backend().submitted_last = this;
  enqueuer_->expect_copies(earliest);
  opener_.submit(earliest);
  if (armed) backend().conductor.expect_one_less();
  if (!batch_->timed_by_host() && !enqueuer_->has_enqueued_all())
    enqueue([](void* enqueuer) { static_cast<Enqueuer*>(enqueuer)->enqueue_rest(); });
}

/// What may block is called in a thread of its own, which is left alone where it does not come back; so is what was not
/// tried before. The conductor gives up first where it can, since it names what hangs.
void CudaBatch::enqueue(CallThread::Function part) {
  if (std::exchange(tried_, true) && !enqueuer_->may_block()) return part(enqueuer_.get());
  if (backend().lost) return;  // the thread may be the one that was left alone
  constexpr Duration kGrace = std::chrono::seconds{1}, kLongest = std::chrono::hours{1000};
  const Duration limit = std::min(backend().watchdog.limit(batch_->bound.plan.timeline.latency), kLongest);
  if (backend().calls.call(part, enqueuer_.get(), limit + kGrace)) return;
  give_up_enqueuing();
  static_cast<void>(backend().calls.comes_back(kGrace));
}

/// The call may wait for any gate of its GPU, so all of them are opened.
void CudaBatch::give_up_enqueuing() {
  const CommandList& list = batch_->list;
  const std::size_t run = std::min<std::size_t>(enqueuer_->enqueued(), list.runs.size() - 1);
  const std::uint32_t position = list.runs[run].begin;
  batch_->note(not_returned(backend().watchdog, batch_->bound.name,
                            "the call that enqueues " + any_of(names_of(*batch_, {&position, 1})),
                            batch_->bound.plan.timeline.latency));
  if (!backend().lost) backend().lose(batch_->lanes[list.commands[position].lane].device);
  for (CudaBatch* const batch : backend().batches)
    if (batch->state_ == State::Armed) batch->open_gates();
}

void CudaBatch::open_gates() {
  if (!batch_->timed_by_gpus()) return opener_.open_all();
  const Duration now = backend().clock.now();
  for (BatchDevice& device : batch_->devices)
    if (device.start && batch_->follows == nullptr)
      device.start->open(static_cast<TimerValue>(device.line.timer_at(now)), false);
}

void CudaBatch::review() {
  if (state_ != State::Submitted || !poll()) return;
  state_ = State::Idle;
  give_lanes_back();
  batch_->result.copies_held_up = enqueuer_->copies_paused();
  if (batch_->result.error && batch_->result.error->code == ErrorCode::Machine) return;
  times_.read();
}

/// The run that this one follows where GPUs keep time: the one that was submitted last, if it is under way and nothing
/// of it is still to be enqueued.
const CudaBatch* CudaBatch::run_before(Duration earliest) const {
  const CudaBatch* const before = backend().submitted_last;
  const bool follows = before != nullptr && before->state_ == State::Submitted && before->can_be_followed() &&
                       earliest <= backend().clock.now();
  return follows ? before : nullptr;
}

/// It is armed or under way, and nothing of it is still to be enqueued.
bool CudaBatch::can_be_followed() const {
  return batch_->timed_by_gpus() && !backend().lost && (state_ == State::Armed || !opener_.finished()) &&
         enqueuer_->has_enqueued_all() && !batch_->is_broken();
}

void CudaBatch::arm_on(bool shared_lanes, const CudaBatch* before) {
  review();
  if (!take_lanes(shared_lanes)) return;
  MemoryPool::instance().begin_run();
  batch_->begin_run();
  if (before != nullptr) batch_->follows = before->batch_.get();
  times_.clear();
  refresh_timers();
  state_ = State::Armed;
  enqueue([](void* enqueuer) { static_cast<Enqueuer*>(enqueuer)->arm(); });
}

/// Does nothing while a run is under way: asking a busy GPU takes hundreds of microseconds, and might wait for that
/// run. Runs themselves show the values of timers.
void CudaBatch::refresh_timers() {
  if (backend().conductor.busy()) return;
  for (BatchDevice& device : batch_->devices)
    if (device.timer != nullptr) device.timer->refresh();
}

bool CudaBatch::take_lanes(bool shared_lanes) {
  for (CudaBatch* batch : backend().batches) batch->review();
  std::vector<Lane>& lanes = batch_->lanes;
  const bool lent = std::all_of(lanes.begin(), lanes.end(), [&](const Lane& lane) {
    const auto same = [&](const Lane& other) { return other.device == lane.device; };
    const auto wanted = static_cast<std::size_t>(std::count_if(lanes.begin(), lanes.end(), same));
    return backend().lanes.at(lane.device).free() >= wanted;
  });
  if (!lent && !shared_lanes) return false;
  for (std::size_t i = 0; i < lanes.size(); ++i) {
    LanePool& pool = backend().lanes.at(lanes[i].device);
    lanes[i].lent = lent;
    lanes[i].stream = lent ? pool.lend() : pool.shared(i);
  }
  return true;
}

void CudaBatch::give_lanes_back() {
  for (Lane& lane : batch_->lanes) {
    if (lane.lent) backend().lanes.at(lane.device).take_back(lane.stream);
    lane.lent = false;
  }
}

}  // namespace tutti::internal::cuda
