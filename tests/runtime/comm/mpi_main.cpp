// The conformance suite over MPI: a program that mpirun starts as four ranks. All run all tests; rank 0 reports, and
// the others print what fails.
#include <array>
#include <cstdio>
#include <cstdlib>
#include <optional>

#include <gtest/gtest.h>
#include <unistd.h>

#include "runtime/comm/soft_stream.hpp"
#include "runtime/comm/transports.hpp"
#include "tests/runtime/comm/comm_worlds.hpp"

namespace tutti::internal::comm::test {

/// As mpirun says, before MPI is asked.
static int own_rank() {
  const char* const rank = std::getenv("OMPI_COMM_WORLD_RANK");
  return rank == nullptr ? 0 : std::atoi(rank);
}

namespace {

/// One rank, or none where the test asks for fewer than there are.
class MpiWorld final : public CommWorld {
 public:
  explicit MpiWorld(const WorldNeeds& needs) : size_(needs.ranks) {
    JoinOptions options;
    options.job.ranks = needs.ranks;
    auto joined = join_by("mpi", options);
    if (own_rank() >= needs.ranks) return;
    if (!joined) std::fprintf(stderr, "%s\n", joined.error().message.c_str()), std::exit(3);
    comm_.emplace(std::move(*joined), host_, needs.patience_of(own_rank()));
    for (std::size_t i = 0; i < 2; ++i) threads_[i].emplace(streams_[i], clock_);
  }
  ~MpiWorld() override {
    if (!comm_) return;
    for (auto& stream : streams_)
      while (!*stream.is_idle()) usleep(100);  // nobody waits where the rank gave up
    for (auto& thread : threads_) thread.reset();
  }
  int size() const override { return size_; }
  std::vector<int> here() const override { return comm_ ? std::vector{comm_->rank()} : std::vector<int>{}; }
  Communicator& comm(int) override { return *comm_; }
  HostWait& host() override { return host_; }
  std::byte* staging(int) override { return staging_.data(); }
  Stream& stream(int, int which) override { return streams_[static_cast<std::size_t>(which)]; }

 private:
  int size_;
  std::vector<std::byte> staging_ = std::vector<std::byte>(kStaging);
  RealClock clock_{WaitKind::Block};
  RealWait host_{clock_};
  std::array<SoftStream, 2> streams_;
  std::array<std::optional<ActorThread>, 2> threads_;
  std::optional<Communicator> comm_;
};

}  // namespace

std::vector<CommWorldRow> comm_worlds() {
  return {{"mpi", [](const WorldNeeds& needs) { return std::make_unique<MpiWorld>(needs); }, false, false}};
}

}  // namespace tutti::internal::comm::test

int main(int argc, char** argv) {
  if (tutti::internal::comm::test::own_rank() != 0) {
    unsetenv("GTEST_OUTPUT");
    argc = 1;
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
