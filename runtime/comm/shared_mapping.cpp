#include "runtime/comm/shared_mapping.hpp"

#include <cerrno>
#include <chrono>
#include <cstring>
#include <optional>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "model/base/document.hpp"
#include "runtime/comm/soft_transport.hpp"

namespace tutti::internal::comm {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kLook{2};
constexpr std::size_t kArenaAlignment = 4096;
std::size_t rounded_up(std::size_t bytes) { return (bytes + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment; }

std::size_t arena_start(int ranks) { return rounded_up(Fabric::size(ranks, kSoftLanes)); }

struct SharedFile {
  int number = -1;
  ~SharedFile() {
    if (number >= 0) close(number);
  }
};

Expected<std::string> path_of(const SharedJob& job) {
  if (!is_name(job.name))
    return invalid_input(
        fmt::format("'{:.80}' is no name of a job; it has 1 to 128 letters, digits, '_', '.' or '-'", job.name));
  if (job.ranks < 1 || job.ranks > kMostRanks)
    return invalid_input(fmt::format("a job has 1 to {} ranks, and '{}' asks for {}", kMostRanks, job.name, job.ranks));
  return fmt::format("/tutti-comm.{}", job.name);
}

tl::unexpected<Error> no_memory(const std::string& path, std::string_view what) {
  return machine_error(fmt::format("the shared memory of a job (/dev/shm{}) {}: {}", path, what, std::strerror(errno)));
}

Expected<std::span<std::byte>> map_file(const std::string& path, int file, std::size_t bytes) {
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (memory == MAP_FAILED) return no_memory(path, "cannot be mapped");
  return std::span(static_cast<std::byte*>(memory), bytes);
}

}  // namespace

bool holds_within(Duration limit, const std::function<bool()>& holds) {
  for (const auto end = SteadyClock::now() + limit;;) {
    if (holds()) return true;
    if (SteadyClock::now() >= end) return false;
    std::this_thread::sleep_for(kLook);
  }
}

Expected<SharedMapping> SharedMapping::create(const SharedJob& job) {
  const auto path = path_of(job);
  if (!path) return tl::unexpected(path.error());
  const SharedFile file{shm_open(path->c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600)};
  if (file.number < 0 && errno == EEXIST)
    return invalid_input(
        fmt::format("the job '{}' is there already (/dev/shm{}): another one begins, or one was killed "
                    "while it began; use another name, or remove that file",
                    job.name, *path));
  if (file.number < 0) return no_memory(*path, "cannot be made");
  const std::size_t bytes = arena_start(job.ranks) + static_cast<std::size_t>(job.ranks) * rounded_up(job.memory);
  // Allocated now: a process that touches shared memory which is not there is killed.
  if (const int status = posix_fallocate(file.number, 0, static_cast<off_t>(bytes)); status != 0) {
    errno = status;
    shm_unlink(path->c_str());
    return no_memory(*path, fmt::format("has no place for {} bytes", bytes));
  }
  return map_file(*path, file.number, bytes).map([&](std::span<std::byte> memory) {
    SharedMapping mapping(*path, memory);
    mapping.fabric_ = Fabric::begin(memory, job.ranks, kSoftLanes);
    return mapping;
  });
}

Expected<SharedMapping> SharedMapping::join(const SharedJob& job) {
  const auto path = path_of(job);
  if (!path) return tl::unexpected(path.error());
  std::optional<SharedMapping> mapping;
  Expected<void> fault;
  const auto is_there = [&] {
    const SharedFile file{shm_open(path->c_str(), O_RDWR | O_CLOEXEC, 0)};
    struct stat status {};
    if (file.number < 0 || fstat(file.number, &status) != 0 || status.st_size == 0) return false;
    const auto memory = map_file(*path, file.number, static_cast<std::size_t>(status.st_size));
    if (!memory) return fault = tl::unexpected(memory.error()), true;
    mapping = SharedMapping({}, *memory);
    const auto fabric = Fabric::open(*memory);
    fault = fabric ? Expected<void>{} : tl::unexpected(fabric.error());
    if (fabric) mapping->fabric_ = *fabric;
    return fabric.has_value();
  };
  if (!holds_within(job.meeting, is_there))
    return fault ? Expected<SharedMapping>(
                       machine_error(fmt::format("the job '{}' has not begun within {}; start its rank 0, on this host",
                                                 job.name, to_string(job.meeting))))
                 : tl::unexpected(fault.error());
  if (!fault) return tl::unexpected(fault.error());
  if (mapping->fabric_.ranks() != job.ranks)
    return invalid_input(fmt::format("the job '{}' has {} ranks, and one that joins says {}; start all with one number",
                                     job.name, mapping->fabric_.ranks(), job.ranks));
  if (mapping->fabric_.lanes() != kSoftLanes || mapping->memory_.size() < arena_start(job.ranks))
    return machine_error(
        fmt::format("the shared memory of the job '{}' (/dev/shm{}) is too short, or another program's; remove it",
                    job.name, *path));
  return std::move(*mapping);
}

SharedMapping::SharedMapping(SharedMapping&& other) noexcept
    : path_(std::exchange(other.path_, {})),
      memory_(std::exchange(other.memory_, {})),
      fabric_(std::exchange(other.fabric_, {})) {}

SharedMapping& SharedMapping::operator=(SharedMapping&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(memory_, other.memory_);
  std::swap(fabric_, other.fabric_);
  return *this;
}

SharedMapping::~SharedMapping() {
  remove_name();
  if (!memory_.empty()) munmap(memory_.data(), memory_.size());
}

void SharedMapping::remove_name() {
  if (!path_.empty()) shm_unlink(path_.c_str());
  path_.clear();
}

std::span<std::byte> SharedMapping::arena(int rank) const {
  const std::size_t start = arena_start(fabric_.ranks());
  const std::size_t each = (memory_.size() - start) / static_cast<std::size_t>(fabric_.ranks());
  return memory_.subspan(start + static_cast<std::size_t>(rank) * each, each);
}

Expected<void> SharedMapping::claim(const SharedJob& job, int rank, std::optional<int> device) const {
  if (rank < 0 || rank >= fabric_.ranks())
    return invalid_input(
        fmt::format("the job '{}' has the ranks 0 to {}, and no rank {}", job.name, fabric_.ranks() - 1, rank));
  std::int64_t nobody = 0;
  RankBoard& board = fabric_.board(rank);
  if (std::atomic_ref(board.life.process).compare_exchange_strong(nobody, getpid())) {
    set_word(board.joined, device ? 2 + static_cast<Word>(*device) : 1);
    return {};
  }
  return invalid_input(fmt::format("rank {} of the job '{}' has joined already, as process {}; each rank joins once",
                                   rank, job.name, nobody));
}

Expected<void> SharedMapping::wait_for_all(Duration limit) const {
  int rank = 0;
  const auto all_there = [&] {
    while (rank < fabric_.ranks() && look_at(fabric_.board(rank).joined) != 0) ++rank;
    return rank == fabric_.ranks();
  };
  if (holds_within(limit, all_there)) return {};
  return machine_error(fmt::format("rank {} of {} has not joined within {}; start it on this host", rank,
                                   fabric_.ranks(), to_string(limit)));
}

}  // namespace tutti::internal::comm
