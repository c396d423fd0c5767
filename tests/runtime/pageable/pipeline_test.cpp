// How fast a copy by double queuing is: the queue and the pieces of the copier, with threads, an engine and a memory
// whose speeds are given, in virtual time.
#include <algorithm>
#include <limits>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include "model/transfer/double_queuing.hpp"
#include "runtime/pageable/dma.hpp"
#include "runtime/pageable/double_queue.hpp"
#include "runtime/pageable/pieces.hpp"
#include "tests/support/random.hpp"

namespace tutti::internal {
namespace {

/// A host with a GPU, byte/ns.
struct Host {
  DoubleQueuingSpeeds speeds;
  int threads;
};

/// The first stage fills, the second empties; one of them is the engine, with one piece at a time, the other the
/// threads.
class Pipeline {
 public:
  Pipeline(const Host& host, CopyDirection direction, std::size_t bytes, std::size_t buffer)
      : host_(host),
        threads_fill_(direction == CopyDirection::Up),
        pieces_(bytes, buffer, static_cast<std::size_t>(host.threads)),
        queue_(static_cast<std::uint32_t>(2 * host.threads)),
        workers_(static_cast<std::size_t>(host.threads) + 1) {
    queue_.begin(pieces_.count());
  }

  /// @return ns that the copy takes
  double simulate() {
    double now = 0;
    while (true) {
      for (std::size_t w = 0; w < workers_.size(); ++w) take(w);
      share_memory();
      const double step = next_end();
      if (step == std::numeric_limits<double>::infinity()) return now;
      now += step;
      for (std::size_t w = 0; w < workers_.size(); ++w) advance(w, step);
    }
  }

 private:
  struct Worker {
    std::optional<DoubleQueue::Held> held;
    double left = 0;  // bytes
    double rate = 0;
  };

  [[nodiscard]] static bool is_engine(std::size_t worker) { return worker == 0; }
  [[nodiscard]] bool fills(std::size_t worker) const { return is_engine(worker) != threads_fill_; }

  void take(std::size_t w) {
    Worker& worker = workers_[w];
    if (worker.held) return;
    worker.held = fills(w) ? queue_.begin_fill() : queue_.begin_empty();
    if (!worker.held) return;
    const std::size_t piece = threads_fill_ ? worker.held->piece : pieces_.count() - 1 - worker.held->piece;
    worker.left = static_cast<double>(pieces_[piece].bytes);
  }

  /// Of the memory at full speed: a thread reads and writes it, the engine reads or writes it.
  [[nodiscard]] double demand(std::size_t w) const {
    return is_engine(w) ? host_.speeds.link.value : 2 * host_.speeds.thread.value;
  }

  /// All have equal shares of the memory; what one does not need is for the others (max-min).
  void share_memory() {
    double left = host_.speeds.memory.value;
    std::vector<std::size_t> at_work;
    for (std::size_t w = 0; w < workers_.size(); ++w)
      if (workers_[w].held) at_work.push_back(w);
    std::ranges::sort(at_work, {}, [&](std::size_t w) { return demand(w); });
    for (std::size_t i = 0; i < at_work.size(); ++i) {
      const std::size_t w = at_work[i];
      const double given = std::min(demand(w), left / static_cast<double>(at_work.size() - i));
      left -= given;
      workers_[w].rate = is_engine(w) ? given : given / 2;
    }
  }

  [[nodiscard]] double next_end() const {
    double next = std::numeric_limits<double>::infinity();
    for (const Worker& worker : workers_)
      if (worker.held) next = std::min(next, worker.left / worker.rate);
    return next;
  }

  void advance(std::size_t w, double step) {
    constexpr double kNoise = 1e-6;  // bytes
    Worker& worker = workers_[w];
    if (!worker.held) return;
    worker.left -= step * worker.rate;
    if (worker.left > kNoise) return;
    if (fills(w))
      queue_.end_fill(*worker.held);
    else
      queue_.end_empty(*worker.held);
    worker.held.reset();
  }

  Host host_;
  bool threads_fill_;
  Pieces pieces_;
  DoubleQueue queue_;
  std::vector<Worker> workers_;  // the engine, then the threads
};

constexpr std::size_t kMega = 1 << 20;

double rate_of(const Host& host, CopyDirection direction, std::size_t bytes) {
  return static_cast<double>(bytes) / Pipeline(host, direction, bytes, 4 * kMega).simulate();
}

// Four threads of 4 GB/s before a link of 12: the link limits it. The first piece, a quarter of 4 MiB, takes 0.26 ms,
// in which the engine has nothing to do: 1 GiB takes 89.5 ms and that.
TEST(Pipeline, FillsTheLink) {
  const Host host{{GBps{12}, GBps{4}, GBps{100}}, 4};
  const double ns = Pipeline(host, CopyDirection::Up, 1024 * kMega, 4 * kMega).simulate();
  EXPECT_NEAR(ns, 1024.0 * kMega / 12 + 2.0 * kMega / 4, 1);
}

// Random hosts, both ways, one to eight threads: a copy of 4 GiB goes at min(S_B2D, N S_H2B, B_MEM / 3), within 10 %.
TEST(Pipeline, IsAsFastAsThePublishedMinimum) {
  test::Random random(11);
  for (int round = 0; round < test::rounds(400); ++round) {
    const Host host{{GBps{random.real(4, 60)}, GBps{random.real(1, 12)}, GBps{random.real(10, 300)}},
                    random.between(1, 8)};
    const double expected = double_queuing_rate(host.speeds, host.threads).value;
    for (const CopyDirection direction : {CopyDirection::Up, CopyDirection::Down}) {
      const double rate = rate_of(host, direction, std::size_t{4096} * kMega);
      ASSERT_GT(rate, 0.9 * expected) << host.threads << " threads, " << host.speeds.link.value << " "
                                      << host.speeds.thread.value << " " << host.speeds.memory.value;
      ASSERT_LT(rate, 1.1 * expected);
    }
  }
}

}  // namespace
}  // namespace tutti::internal
