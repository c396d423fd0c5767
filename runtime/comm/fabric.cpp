#include "runtime/comm/fabric.hpp"

#include <atomic>
#include <cstring>
#include <new>

#include <fmt/format.h>

#include "model/base/expects.hpp"

namespace tutti::internal::comm {
namespace {

constexpr std::uint64_t kFabricMark = 0x32636974'74757400;  // "\0tuttic2": changes with the layout
constexpr std::align_val_t kFabricAlignment{64};

struct FabricHeader {
  std::uint64_t mark;
  std::int32_t ranks, lanes;
  LifeSign nic;
};
constexpr std::size_t kHeaderSize = 64;
static_assert(sizeof(FabricHeader) <= kHeaderSize);

FabricHeader& header_of(std::span<std::byte> memory) { return *reinterpret_cast<FabricHeader*>(memory.data()); }

}  // namespace

const char* words_for(Outcome outcome) {
  switch (outcome) {
    case Outcome::Ok: return "it has arrived";
    case Outcome::Failed: return "the network lost it";
    case Outcome::NoReceive: return "the peer has posted no receive for it";
    case Outcome::TooLong: return "it is longer than the receive that was posted for it";
    case Outcome::OutOfBounds: return "its buffer is not registered, or shorter";
    case Outcome::Aborted: return "one of the two sides gave up";
    case Outcome::NotMoved: return "the copy of its bytes failed in the soft NIC";
  }
  return "its outcome is unknown";
}

std::size_t Fabric::size(int ranks, int lanes) {
  const auto sides = static_cast<std::size_t>(ranks) * static_cast<std::size_t>(ranks - 1);
  return kHeaderSize + static_cast<std::size_t>(ranks) * sizeof(RankBoard) +
         sides * static_cast<std::size_t>(lanes) * sizeof(Endpoint);
}

Fabric Fabric::begin(std::span<std::byte> memory, int ranks, int lanes) {
  TUTTI_EXPECTS(ranks > 0 && ranks <= kMostRanks && lanes > 0, "a fabric has 1 to 16 ranks and a lane");
  TUTTI_EXPECTS(memory.size() >= size(ranks, lanes), "the memory of a fabric has its size");
  header_of(memory) = {0, ranks, lanes, {}};
  std::atomic_ref(header_of(memory).mark).store(kFabricMark, std::memory_order_release);
  return Fabric(memory);
}

Expected<Fabric> Fabric::open(std::span<std::byte> memory) {
  const bool marked = memory.size() >= kHeaderSize &&
                      std::atomic_ref(header_of(memory).mark).load(std::memory_order_acquire) == kFabricMark;
  if (!marked)
    return machine_error(
        "the shared memory holds no fabric of this version of tutti; start all ranks with one version");
  const int ranks = header_of(memory).ranks, lanes = header_of(memory).lanes;
  if (ranks <= 0 || ranks > kMostRanks || lanes <= 0 || lanes > kMostRanks || memory.size() < size(ranks, lanes))
    return machine_error(fmt::format(
        "the fabric in shared memory says {} ranks and {} lanes, which do not fit into its {} bytes; remove it", ranks,
        lanes, memory.size()));
  return Fabric(memory);
}

int Fabric::ranks() const { return header_of(memory_).ranks; }
int Fabric::lanes() const { return header_of(memory_).lanes; }

RankBoard& Fabric::board(int rank) const {
  TUTTI_EXPECTS(rank >= 0 && rank < ranks(), "a rank of the fabric");
  return reinterpret_cast<RankBoard*>(memory_.data() + kHeaderSize)[rank];
}

Endpoint& Fabric::endpoint(int rank, int peer, int lane) const {
  TUTTI_EXPECTS(rank >= 0 && rank < ranks() && peer >= 0 && peer < ranks() && rank != peer, "two ranks of the fabric");
  TUTTI_EXPECTS(lane >= 0 && lane < lanes(), "a lane of the fabric");
  const int side = (rank * (ranks() - 1) + (peer < rank ? peer : peer - 1)) * lanes() + lane;
  std::byte* const first = memory_.data() + kHeaderSize + static_cast<std::size_t>(ranks()) * sizeof(RankBoard);
  return reinterpret_cast<Endpoint*>(first)[side];
}

std::optional<std::pair<int, std::string>> Fabric::gave_up(int rank) const {
  const Word by = look_at(board(rank).aborted);
  if (by == 0 || by > static_cast<Word>(ranks())) return std::nullopt;
  const RankBoard& first = board(static_cast<int>(by - 1));
  return std::pair(static_cast<int>(by - 1),
                   std::string(first.reason.data(), strnlen(first.reason.data(), first.reason.size())));
}

void Fabric::give_up(int rank, std::string_view why) const {
  if (gave_up(rank)) return;
  RankBoard& own = board(rank);
  why.copy(own.reason.data(), own.reason.size() - 1);
  for (int other = 0; other < ranks(); ++other) {
    Word nobody = 0;
    std::atomic_ref(board(other).aborted).compare_exchange_strong(nobody, static_cast<Word>(rank + 1));
  }
}

void Fabric::set_board_word(int rank, Word index, Word value) const {
  RankBoard& board = this->board(rank);
  std::atomic_ref(board.words[index]).exchange(value, std::memory_order_seq_cst);
  // A rank that gave up in between has let go all that wait for the word, and must not be held again.
  if (std::atomic_ref(board.aborted).load(std::memory_order_seq_cst) != 0)
    set_word(board.words[index], value + kFarAhead);
}

std::vector<LifeSign*> Fabric::life_signs() const {
  std::vector<LifeSign*> signs;
  for (int rank = 0; rank < ranks(); ++rank) signs.push_back(&board(rank).life);
  return signs;
}

LifeSign& Fabric::life_of_nic() const { return header_of(memory_).nic; }

void FabricMemory::Free::operator()(std::byte* memory) const { ::operator delete(memory, kFabricAlignment); }

FabricMemory::FabricMemory(int ranks, int lanes) {
  const std::size_t bytes = Fabric::size(ranks, lanes);
  memory_.reset(static_cast<std::byte*>(::operator new(bytes, kFabricAlignment)));
  std::memset(memory_.get(), 0, bytes);
  fabric_ = Fabric::begin({memory_.get(), bytes}, ranks, lanes);
}

}  // namespace tutti::internal::comm
