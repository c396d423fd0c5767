#include "runtime/cuda/batches/cuda_operation.hpp"

#include <thread>

#include <fmt/format.h>

#include "model/base/expects.hpp"
#include "model/transfer/transfer_method.hpp"
#include "runtime/cuda/lanes/pointers.hpp"

namespace tutti::internal::cuda {
namespace {

/// @pre no staged copy and no host work
EngineQueue queue_of(const BoundBatch& batch) {
  const CommandStream& stream = batch.bound.plan.batch.streams().front();
  const Topology& machine = batch.backend.machine;
  if (!stream.transfer) return EngineQueue::Kernels;
  const TransferMethod method = find_route(machine, *stream.transfer).method;
  if (method.by_kernel) return EngineQueue::Kernels;
  const bool from_gpu = machine.vertex(stream.transfer->from).kind == VertexKind::Gpu;
  const bool to_gpu = machine.vertex(stream.transfer->to).kind == VertexKind::Gpu;
  if (method.mapped) {
    const VertexId memory = to_gpu ? stream.transfer->from : stream.transfer->to;
    return static_cast<EngineQueue>(static_cast<std::size_t>(EngineQueue::Mapped) + memory.index());
  }
  if (from_gpu && to_gpu) return EngineQueue::BetweenGpus;
  return to_gpu ? EngineQueue::Up : EngineQueue::Down;
}

Expected<void> check_can_overlap(const BoundBatch& batch) {
  for (const Command& command : batch.list.commands) {
    TUTTI_EXPECTS(command.kind != Command::Kind::Staged, "a copy through a memory is two that follow each other");
    const CommandStream& stream = batch.stream_of(command);
    if (command.kind == Command::Kind::HostWork)
      return invalid_input(
          fmt::format("kernel '{}' of stream '{}' is host work, which waits for other host work where jobs overlap on "
                      "GPUs; make it a host step; with 'overlap: off' such a set needs less work",
                      stream.kernel->name, stream.name),
          stream.place);
  }
  return {};
}

}  // namespace

Expected<std::unique_ptr<CudaOperation>> CudaOperation::make(BoundDevices& backend, BoundPlan plan) {
  TUTTI_EXPECTS(plan.plan.batch.streams().size() == 1, "a batch that overlaps is of one stream");
  if (auto ok = check_pointers(backend, plan); !ok) return tl::unexpected(std::move(ok.error()));
  auto bound = BoundBatch::make(backend, std::move(plan));
  if (!bound) return tl::unexpected(std::move(bound.error()));
  BoundBatch& batch = **bound;
  if (auto ok = check_can_overlap(batch); !ok) return tl::unexpected(std::move(ok.error()));
  for (Lane& lane : batch.lanes) {
    auto stream = backend.stream_of(lane.device, queue_of(batch));
    if (!stream) return tl::unexpected(std::move(stream.error()));
    lane.stream = *stream;
  }
  auto enqueuer = Enqueuer::make(batch);
  if (!enqueuer) return tl::unexpected(std::move(enqueuer.error()));
  backend.overlapping.reserve(backend.overlapping.capacity() + 1);  // all may be under way at once
  return std::unique_ptr<CudaOperation>(new CudaOperation(*std::move(bound), *std::move(enqueuer)));
}

CudaOperation::CudaOperation(std::unique_ptr<BoundBatch> batch, std::unique_ptr<Enqueuer> enqueuer)
    : batch_(std::move(batch)), enqueuer_(std::move(enqueuer)), opener_(*batch_, *enqueuer_), times_(*batch_) {}

/// Where a GPU is lost, what is in its queues may still run, and looks at both.
CudaOperation::~CudaOperation() {
  wait();
  if (!backend().lost) return;
  enqueuer_->abandon();
  static_cast<void>(enqueuer_.release());
  static_cast<void>(batch_.release());
}

void CudaOperation::submit(Duration /*earliest*/) {
  TUTTI_EXPECTS(poll(), "a batch is submitted again only after it is finished");
  batch_->begin_run();
  times_.clear();
  enqueuer_->arm();
  reviewed_ = false;
  backend().overlapping.push_back(&opener_);
  enqueuer_->expect_copies(Duration{});
  opener_.begin_at_once();
  if (backend().serialize) wait();
}

bool CudaOperation::poll() {
  if (opener_.finished()) return true;
  if (!opener_.look()) return false;
  std::erase(backend().overlapping, &opener_);
  return true;
}

void CudaOperation::wait() {
  while (!poll()) std::this_thread::yield();
}

void CudaOperation::review() {
  if (reviewed_ || !poll()) return;
  reviewed_ = true;
  batch_->result.copies_held_up = enqueuer_->copies_paused();
  if (!batch_->result.error || batch_->result.error->code != ErrorCode::Machine) times_.read();
}

}  // namespace tutti::internal::cuda
