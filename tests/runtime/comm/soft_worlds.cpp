// Worlds whose ranks are all in this process, with a soft NIC.
#include <chrono>
#include <deque>

#include "runtime/comm/soft_stream.hpp"
#include "runtime/comm/soft_transport.hpp"
#include "tests/runtime/comm/comm_worlds.hpp"

namespace tutti::internal::comm::test {
namespace {

constexpr std::size_t kStreamsOfRank = 2;

/// What both have in common.
class SoftWorld : public CommWorld {
 public:
  explicit SoftWorld(const WorldNeeds& needs)
      : memory_(needs.ranks, kSoftLanes),
        nic_(memory_.fabric(), mover_, needs.network),
        staging_(static_cast<std::size_t>(needs.ranks), std::vector<std::byte>(kStaging)),
        streams_(static_cast<std::size_t>(needs.ranks) * kStreamsOfRank) {}
  int size() const override { return memory_.fabric().ranks(); }
  Communicator& comm(int rank) override { return comms_.at(static_cast<std::size_t>(rank)); }
  Stream& stream(int rank, int which) override {
    return streams_[static_cast<std::size_t>(rank) * kStreamsOfRank + static_cast<std::size_t>(which)];
  }

  std::byte* staging(int rank) override { return staging_.at(static_cast<std::size_t>(rank)).data(); }

 protected:
  void start(HostWait& host, const WorldNeeds& needs) {
    for (const int rank : here())
      comms_.emplace_back(make_soft_transport(memory_.fabric(), rank, std::make_unique<ProcessMemory>()), host,
                          needs.patience_of(rank));
  }

  FabricMemory memory_;
  HostMover mover_;
  SoftNic nic_;
  std::vector<std::vector<std::byte>> staging_;
  std::deque<SoftStream> streams_;
  std::deque<Communicator> comms_;
};

class SimulatedWorld final : public SoftWorld {
 public:
  explicit SimulatedWorld(const WorldNeeds& needs) : SoftWorld(needs) {
    world_.add(nic_);
    for (SoftStream& stream : streams_) world_.add(stream);
    start(world_, needs);
  }
  HostWait& host() override { return world_; }

 private:
  VirtualWorld world_;
};

class ThreadedWorld final : public SoftWorld {
 public:
  explicit ThreadedWorld(const WorldNeeds& needs) : SoftWorld(needs) {
    threads_.emplace_back(nic_, clock_);
    for (SoftStream& stream : streams_) threads_.emplace_back(stream, clock_);
    start(wait_, needs);
  }
  /// Streams may still use the memory of communicators.
  ~ThreadedWorld() override {
    for (Communicator& comm : comms_) comm.abort("the test is over");
    threads_.clear();
  }
  HostWait& host() override { return wait_; }

 private:
  RealClock clock_{WaitKind::Block};
  RealWait wait_{clock_};
  std::deque<ActorThread> threads_;
};

}  // namespace

CommWorldRow simulated_world() {
  return {"simulated", [](const WorldNeeds& needs) { return std::make_unique<SimulatedWorld>(needs); }, true, true};
}

CommWorldRow threaded_world() {
  return {"threads", [](const WorldNeeds& needs) { return std::make_unique<ThreadedWorld>(needs); }, true, false};
}

}  // namespace tutti::internal::comm::test
