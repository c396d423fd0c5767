// Words in shared memory that another process made, changes and shortens: a trigger, as a run that waits for it and a
// program that fires it see it, and the memory in which the ranks of a job meet, as one that joins sees it.
#include <algorithm>
#include <cstring>
#include <string>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/comm/shared_mapping.hpp"
#include "runtime/triggers/trigger_word.hpp"
#include "tests/fuzz/target.hpp"

namespace tutti::internal::fuzz {
namespace {

/// A file in shared memory of this process alone.
class SharedFile {
 public:
  SharedFile(std::string_view beginning, std::string_view bytes)
      : path_("/dev/shm/" + std::string(beginning) + name()),
        file_(open(path_.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, S_IRUSR | S_IWUSR)) {
    put(bytes);
  }
  SharedFile(const SharedFile&) = delete;  // it is removed once
  SharedFile& operator=(const SharedFile&) = delete;
  ~SharedFile() {
    close(file_);
    unlink(path_.c_str());
  }

  [[nodiscard]] static std::string name() { return "fuzz." + std::to_string(getpid()); }
  /// Its first bytes.
  void put(std::string_view bytes) const {
    require(pwrite(file_, bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()),
            "the host has shared memory");
  }
  void resize(std::size_t size) const {
    require(ftruncate(file_, static_cast<off_t>(size)) == 0, "the host has shared memory");
  }

 private:
  std::string path_;
  int file_;
};

/// The word changes to each 16 bytes behind its own, and is shortened then.
bool takes_trigger(std::string_view bytes) {
  const SharedFile file("tutti.", bytes);
  auto word = TriggerWord::open(SharedFile::name());
  if (!word) return false;
  const auto firing = TriggerWord::open(SharedFile::name());
  WordSource source(*std::move(word));
  Waker waker;
  const RealClock clock;
  source.begin(clock, clock.now(), waker);
  const auto take_all = [&] {
    waker.look();
    const Duration now = clock.now();
    std::uint32_t taken = 0;
    for (; const auto came = source.take(now); ++taken) require(*came <= now, "a trigger has come by now");
    require(taken <= WordSource::kMostWaiting, "no more triggers are taken than may wait");
    return taken;
  };
  for (auto rest = bytes; rest.size() >= 2 * sizeof(SharedTrigger);) {
    rest.remove_prefix(sizeof(SharedTrigger));
    file.put(rest.substr(0, sizeof(SharedTrigger)));
    static_cast<void>(take_all());
  }
  require(firing->fire() && take_all() == 1, "a trigger that is fired is seen");
  file.resize(bytes.size() % sizeof(SharedTrigger));
  static_cast<void>(take_all());
  require(!firing->fire() && !source.check(clock.now() + WordSource::kBetweenChecks),
          "a word that is too short is lost");
  return true;
}

/// The first bytes of the memory; the last four of them say how long it is.
bool takes_fabric(std::string_view bytes) {
  constexpr std::uint32_t kMostBytes = 4 << 20;
  std::uint32_t size = 0;
  if (bytes.size() < sizeof size) return false;
  std::memcpy(&size, bytes.data() + bytes.size() - sizeof size, sizeof size);
  const SharedFile file("tutti-comm.", bytes);
  file.resize(size % kMostBytes);
  const comm::SharedJob job{.name = SharedFile::name(), .ranks = 2, .meeting = {}};
  const auto joined = comm::SharedMapping::join(job);
  if (!joined) return false;
  const auto is_inside = [&](const void* begin, std::size_t bytes_there) {
    const auto* const first = static_cast<const std::byte*>(begin);
    const auto all = joined->memory();
    return first >= all.data() && bytes_there <= static_cast<std::size_t>(all.data() + all.size() - first);
  };
  for (int rank = 0; rank < job.ranks; ++rank) {
    const auto arena = joined->arena(rank);
    require(is_inside(arena.data(), arena.size()), "what a rank allocates from is in the memory");
    require(is_inside(&joined->fabric().board(rank), sizeof(comm::RankBoard)), "so is its board");
    for (int lane = 0; lane < joined->fabric().lanes(); ++lane)
      require(is_inside(&joined->fabric().endpoint(rank, 1 - rank, lane), sizeof(comm::Endpoint)), "so are its rings");
    static_cast<void>(joined->fabric().gave_up(rank));
    static_cast<void>(joined->claim(job, rank));
  }
  return true;
}

}  // namespace

bool takes_shared_words(std::string_view bytes) {
  const bool is_fabric = takes_fabric(bytes);
  return takes_trigger(bytes) || is_fabric;
}

}  // namespace tutti::internal::fuzz
