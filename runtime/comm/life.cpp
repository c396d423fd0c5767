#include "runtime/comm/life.hpp"

#include <algorithm>
#include <chrono>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

namespace tutti::internal::comm {
namespace {

constexpr std::chrono::milliseconds kBeat{50};

std::int64_t process_of(LifeSign& sign) { return std::atomic_ref(sign.process).load(std::memory_order_acquire); }

}  // namespace

bool has_ended(std::int64_t process) {
  std::ifstream file(fmt::format("/proc/{}/stat", process));
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  // The state stands behind the name, which may itself hold brackets: "17 (a) b) Z 1 ...".
  const std::size_t name_end = text.rfind(") ");
  if (name_end == std::string::npos || name_end + 2 >= text.size()) return true;
  const char state = text[name_end + 2];
  return state == 'Z' || state == 'X';
}

LifeWatch::LifeWatch(std::vector<LifeSign*> signs, int own_rank, Duration silence)
    : signs_(std::move(signs)), own_(static_cast<std::size_t>(own_rank)), silence_(silence), seen_(signs_.size()) {}

std::optional<int> LifeWatch::dead(Duration now) {
  for (std::size_t rank = 0; rank < signs_.size(); ++rank)
    if (rank != own_ && is_dead(rank, now)) return static_cast<int>(rank);
  return std::nullopt;
}

bool LifeWatch::is_dead(std::size_t rank, Duration now) {
  LifeSign& sign = *signs_[rank];
  if (process_of(sign) == 0 || look_at(sign.left) != 0) return false;
  Seen& seen = seen_[rank];
  const Word beat = look_at(sign.beat);
  if (beat != seen.beat || seen.since == Duration{}) seen = {beat, std::max(now, Duration{1})};
  // A rank without beats is known by its process alone.
  if (beat != 0 && now - seen.since > silence_) return true;
  // A look into /proc costs 10 us, so it is made only where the beat has been missed once.
  return now - seen.since > 2 * Duration{kBeat} && has_ended(process_of(sign));
}

Heart::Heart(LifeSign& sign) : sign_(sign) {
  set_word(sign_.beat, 1);
  std::atomic_ref(sign_.process).store(getpid(), std::memory_order_release);
  beats_ = std::thread([this] {
    while (!stop_.load()) {
      set_word(sign_.beat, look_at(sign_.beat) + 1);
      std::this_thread::sleep_for(kBeat);
    }
  });
}

Heart::~Heart() {
  stop_.store(true);
  beats_.join();
  set_word(sign_.left, 1);
}

}  // namespace tutti::internal::comm
