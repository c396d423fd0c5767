#include "apps/lab/measuring/load_threads.hpp"

#include <algorithm>
#include <cstring>
#include <system_error>
#include <utility>

#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

namespace tutti::internal {
namespace {

constexpr std::size_t kCopied = 32 << 20;  // beyond the caches of a core
constexpr std::size_t kPiece = 1 << 20;
constexpr std::size_t kGroups = 10, kPairs = 10;  // of messengers: half the threads that hackbench has by default
constexpr std::size_t kMessage = 100;             // bytes, as hackbench's

void compute(const std::atomic<bool>& leaving) {
  volatile std::uint64_t work = 0;
  while (!leaving.load(std::memory_order_relaxed))
    for (int step = 0; step < 10'000; ++step) work = work * 6364136223846793005U + 1;
}

void copy_pieces(const std::atomic<bool>& leaving, std::atomic<std::uint64_t>& copied, std::vector<std::byte>& memory) {
  for (std::size_t at = 0; !leaving.load(std::memory_order_relaxed); at = (at + kPiece) % kCopied) {
    std::memcpy(memory.data() + kCopied + at, memory.data() + at, kPiece);
    copied.fetch_add(kPiece, std::memory_order_relaxed);
  }
}

void send_messages(const std::atomic<bool>& leaving, const std::vector<int>& ends) {
  constexpr std::array<char, kMessage> kText{};
  while (!leaving.load(std::memory_order_relaxed))
    for (const int end : ends)
      if (send(end, kText.data(), kText.size(), MSG_NOSIGNAL) <= 0) return;
}

void receive_messages(const std::atomic<bool>& leaving, int end) {
  std::array<char, kMessage> text{};
  while (!leaving.load(std::memory_order_relaxed))
    if (recv(end, text.data(), text.size(), 0) <= 0) return;
}

}  // namespace

std::string_view to_string(LoadKind kind) {
  constexpr std::array<std::string_view, kLoadKinds.size()> names{"none", "cpu", "memory", "hackbench"};
  return names[static_cast<std::size_t>(kind)];
}

std::size_t usable_cores() {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return std::max(1U, std::thread::hardware_concurrency());
  return static_cast<std::size_t>(std::max(1, CPU_COUNT(&allowed)));
}

LoadThreads::LoadThreads(LoadKind kind) {
  const std::size_t cores = usable_cores();
  if (kind == LoadKind::Cpu)
    for (std::size_t i = 0; i < cores; ++i) add([this] { compute(leaving_); });
  if (kind == LoadKind::Memory) add_copiers();
  if (kind == LoadKind::Hackbench)
    for (std::size_t group = 0; group < kGroups && add_messengers(); ++group) {
    }
}

LoadThreads::~LoadThreads() {
  leaving_ = true;
  for (const int socket : sockets_) shutdown(socket, SHUT_RDWR);  // whoever waits for one returns
  for (std::thread& thread : threads_) thread.join();
  for (const int socket : sockets_) close(socket);
}

bool LoadThreads::add(std::function<void()> work) {
  try {
    threads_.emplace_back(std::move(work));
    return true;
  } catch (const std::system_error&) {  // the host allows no more threads
    return false;
  }
}

void LoadThreads::add_copiers() {
  const std::size_t cores = usable_cores();
  memory_.resize(cores);  // its addresses stay
  for (std::vector<std::byte>& memory : memory_) {
    memory.resize(2 * kCopied);
    add([this, &memory] { copy_pieces(leaving_, copied_, memory); });
  }
}

/// A group of messengers: each sender writes to all receivers in turn.
bool LoadThreads::add_messengers() {
  std::vector<int> send_ends;
  for (std::size_t i = 0; i < kPairs; ++i) {
    std::array<int, 2> pair{};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()) != 0) return false;
    sockets_.insert(sockets_.end(), pair.begin(), pair.end());
    send_ends.push_back(pair[0]);
    if (!add([this, end = pair[1]] { receive_messages(leaving_, end); })) return false;
  }
  for (std::size_t i = 0; i < kPairs; ++i)
    if (!add([this, send_ends] { send_messages(leaving_, send_ends); })) return false;
  return true;
}

}  // namespace tutti::internal
