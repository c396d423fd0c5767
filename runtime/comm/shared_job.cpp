#include "runtime/comm/shared_job.hpp"

#include <algorithm>
#include <functional>
#include <optional>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

#include "runtime/comm/soft_transport.hpp"

namespace tutti::internal::comm {
namespace {

constexpr std::chrono::milliseconds kLeaveLook{2};
/// How long the beat of a rank may stand still before its NIC stops to wait for it.
constexpr Duration kNicSilence = std::chrono::seconds{10};

/// The NIC of a job, in a thread that serves until all other ranks have left or died.
class SharedNic {
 public:
  /// @param own_rank  is not waited for; -1: all are
  SharedNic(const SharedMapping& mapping, int own_rank, const NetworkOptions& network)
      : fabric_(mapping.fabric()),
        own_rank_(own_rank),
        mover_(mapping.memory()),
        nic_(mapping.fabric(), mover_, network),
        thread_(std::in_place, nic_, clock_) {}
  SharedNic(const SharedNic&) = delete;  // its thread holds references to it
  SharedNic& operator=(const SharedNic&) = delete;
  ~SharedNic() { wait_for_others(); }

 private:
  void wait_for_others() {
    for (int rank = 0; rank < fabric_.ranks(); ++rank) {
      if (rank == own_rank_) continue;
      // A watch of this rank alone: who else has died does not matter.
      LifeSign nobody{};
      LifeWatch watch({&nobody, &fabric_.board(rank).life}, 0, kNicSilence);
      // Where a rank gave up, nothing is delivered any more.
      while (look_at(fabric_.board(rank).life.left) == 0 && look_at(fabric_.board(rank).aborted) == 0 &&
             !watch.dead(clock_.now()))
        std::this_thread::sleep_for(kLeaveLook);
    }
  }

  Fabric fabric_;
  int own_rank_;
  RealClock clock_{WaitKind::Block};
  SharedMemoryMover mover_;
  SoftNic nic_;
  std::optional<ActorThread> thread_;
};

/// What a rank holds of its job, and its allocations.
class SharedRank final : public SoftMemory {
 public:
  SharedRank(SharedMapping mapping, int rank)
      : mapping_(std::move(mapping)), arena_(mapping_.arena(rank)), heart_(mapping_.fabric().board(rank).life) {}
  /// The rank leaves before its NIC waits for the others: they may wait for it in turn.
  ~SharedRank() override {
    heart_.reset();
    nic_.reset();
  }

  void serve(int rank, const NetworkOptions& network) { nic_.emplace(mapping_, rank, network); }
  SharedMapping& mapping() { return mapping_; }

  Expected<std::span<std::byte>> allocate(std::size_t bytes) override {
    if (bytes > arena_.size())
      return machine_error(fmt::format("{} bytes do not fit into the {} bytes of shared memory that this rank has left",
                                       bytes, arena_.size()));
    const auto found = arena_.first(bytes);
    arena_ = arena_.subspan(std::min(arena_.size(), (bytes + 255) / 256 * 256));
    return found;
  }
  Expected<Region> region_of(std::span<std::byte> memory) override {
    const std::span<std::byte> all = mapping_.memory();
    if (std::less<>{}(memory.data(), all.data()) || memory.size() > all.size() ||
        memory.data() - all.data() > static_cast<std::ptrdiff_t>(all.size() - memory.size()))
      return invalid_input(
          "the buffer is no shared memory, so other ranks do not reach it; use memory that the "
          "communicator allocates");
    Region region;
    region.address = static_cast<std::uint64_t>(memory.data() - all.data());
    region.bytes = memory.size();
    return region;
  }

 private:
  SharedMapping mapping_;
  std::span<std::byte> arena_;
  std::optional<Heart> heart_;
  std::optional<SharedNic> nic_;
};

Expected<std::unique_ptr<SharedRank>> join_as(SharedMapping mapping, int rank, const SharedJob& job) {
  if (auto claimed = mapping.claim(job, rank); !claimed) return tl::unexpected(claimed.error());
  return std::make_unique<SharedRank>(std::move(mapping), rank);
}

std::unique_ptr<Transport> transport_of(std::unique_ptr<SharedRank> joined, int rank) {
  const Fabric fabric = joined->mapping().fabric();
  return make_soft_transport(fabric, rank, std::move(joined));
}

}  // namespace

Expected<std::unique_ptr<Transport>> join_shared_job(const SharedJob& job, int rank, const NetworkOptions& network) {
  if (rank != 0) return join_served_job(job, rank);
  auto mapping = SharedMapping::create(job);
  if (!mapping) return tl::unexpected(mapping.error());
  auto joined = join_as(std::move(*mapping), rank, job);
  if (!joined) return tl::unexpected(joined.error());
  if (auto all = (*joined)->mapping().wait_for_all(job.meeting); !all) return tl::unexpected(all.error());
  (*joined)->mapping().remove_name();
  (*joined)->serve(rank, network);
  return transport_of(std::move(*joined), rank);
}

Expected<std::unique_ptr<Transport>> join_served_job(const SharedJob& job, int rank) {
  auto mapping = SharedMapping::join(job);
  if (!mapping) return tl::unexpected(mapping.error());
  auto joined = join_as(std::move(*mapping), rank, job);
  if (!joined) return tl::unexpected(joined.error());
  if (auto all = (*joined)->mapping().wait_for_all(job.meeting); !all) return tl::unexpected(all.error());
  return transport_of(std::move(*joined), rank);
}

Expected<void> serve_shared_job(const SharedJob& job, const NetworkOptions& network) {
  auto mapping = SharedMapping::create(job);
  if (!mapping) return tl::unexpected(mapping.error());
  if (auto all = mapping->wait_for_all(job.meeting); !all) return all;
  mapping->remove_name();
  const SharedNic nic(*mapping, -1, network);
  return {};
}

}  // namespace tutti::internal::comm
