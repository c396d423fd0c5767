// The one exported function of libtutti_mpi.so.
#include "runtime/comm/mpi_functions.hpp"

#include <cstdlib>
#include <cstring>
#include <optional>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

#include "runtime/comm/mpi/mpi_proxy.hpp"
#include "runtime/comm/soft_transport.hpp"

namespace tutti::internal::comm {
namespace {

/// Memory of a process whose streams are threads of the host.
class PlainProxyMemory final : public ProxyMemory {
 public:
  Expected<std::span<std::byte>> allocate(std::size_t bytes) override { return memory_.allocate(bytes); }
  Expected<void> reach(std::span<std::byte>) override { return {}; }
  bool is_host(const std::byte*) const override { return true; }
  Expected<void> copy(std::byte* to, const std::byte* from, std::size_t bytes) override {
    return std::memcpy(to, from, bytes), Expected<void>{};
  }

 private:
  ProcessMemory memory_;
};

/// Whether a job was left while something was under way in it: MPI's end could then wait for ever.
std::atomic<bool>& something_is_under_way() {
  static std::atomic<bool> under_way = false;
  return under_way;
}

void end_mpi() {
  int ended = 0;
  MPI_Finalized(&ended);
  if (ended == 0 && !something_is_under_way()) MPI_Finalize();
}

/// Starts MPI, unless the program has.
Expected<void> start_mpi() {
  int started = 0, level = 0;
  MPI_Initialized(&started);
  if (started != 0) {
    MPI_Query_thread(&level);
  } else {
    if (MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &level) != MPI_SUCCESS)
      return machine_error("MPI does not start; start the ranks with mpirun");
    std::atexit(end_mpi);
  }
  if (level == MPI_THREAD_MULTIPLE) return {};
  return machine_error(
      "MPI was started without MPI_THREAD_MULTIPLE, and the transport mpi calls it from a thread of its "
      "own; start it with MPI_Init_thread, or leave that to the transport");
}

/// What the transport of a rank owns.
class MpiRank final : public SoftMemory {
 public:
  MpiRank(MPI_Comm ranks, int size, ProxyMemory* memory) : fabric_(size, kSoftLanes) {
    if (memory == nullptr) plain_.emplace();
    memory_ = memory == nullptr ? &*plain_ : memory;
    ranks_ = ranks;
  }
  ~MpiRank() override {
    if (proxy_ && !proxy_->end()) something_is_under_way() = true;
  }
  Expected<void> start() {
    if (auto reached = memory_->reach(fabric().memory()); !reached) return reached;
    proxy_.emplace(ranks_, fabric(), *memory_);
    return {};
  }
  Fabric fabric() const { return fabric_.fabric(); }

  Expected<std::span<std::byte>> allocate(std::size_t bytes) override { return memory_->allocate(bytes); }
  Expected<Region> region_of(std::span<std::byte> memory) override {
    Region region;
    region.address = reinterpret_cast<std::uintptr_t>(memory.data());
    region.bytes = memory.size();
    return region;
  }

 private:
  FabricMemory fabric_;
  std::optional<PlainProxyMemory> plain_;
  ProxyMemory* memory_ = nullptr;
  MPI_Comm ranks_ = MPI_COMM_NULL;
  std::optional<MpiProxy> proxy_;
};

/// Where a process runs, as the ranks tell each other.
struct ProcessPlace {
  std::int64_t process = 0;
  char host[256] = {};
};

/// Ranks of this host know each other by their processes.
void exchange_places(MPI_Comm ranks, int rank, const Fabric& fabric) {
  std::vector<ProcessPlace> places(static_cast<std::size_t>(fabric.ranks()));
  ProcessPlace& own = places[static_cast<std::size_t>(rank)];
  own.process = getpid();
  gethostname(own.host, sizeof own.host - 1);
  const ProcessPlace mine = own;
  MPI_Allgather(&mine, sizeof mine, MPI_BYTE, places.data(), sizeof mine, MPI_BYTE, ranks);
  for (int other = 0; other < fabric.ranks(); ++other)
    if (const ProcessPlace& place = places[static_cast<std::size_t>(other)]; std::strcmp(place.host, mine.host) == 0)
      fabric.board(other).life.process = place.process;
}

Expected<std::unique_ptr<Transport>> join_mpi_ranks(const JoinOptions& options) {
  if (auto started = start_mpi(); !started) return tl::unexpected(started.error());
  int world_rank = 0, world_size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
  MPI_Comm_size(MPI_COMM_WORLD, &world_size);
  const int size = options.job.ranks;
  if (size < 1 || size > kMostRanks || size > world_size)
    return invalid_input(
        fmt::format("the job asks for {} ranks, and MPI has {}; start as many with mpirun -n, at most {}", size,
                    world_size, kMostRanks));
  MPI_Comm ranks = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, world_rank < size ? 0 : MPI_UNDEFINED, world_rank, &ranks);
  if (ranks == MPI_COMM_NULL)
    return invalid_input(
        fmt::format("rank {} of MPI is none of the job's {} ranks; start no more with mpirun -n", world_rank, size));
  auto joined = std::make_unique<MpiRank>(ranks, size, options.memory);
  exchange_places(ranks, world_rank, joined->fabric());
  if (auto started = joined->start(); !started) return tl::unexpected(started.error());
  const Fabric fabric = joined->fabric();
  return make_soft_transport(fabric, world_rank, std::move(joined), "mpi");
}

}  // namespace
}  // namespace tutti::internal::comm

extern "C" [[gnu::visibility("default")]] const tutti::internal::comm::MpiFunctions* tutti_mpi_v1() {
  static constexpr tutti::internal::comm::MpiFunctions functions{TUTTI_VERSION, tutti::internal::comm::join_mpi_ranks};
  return &functions;
}
