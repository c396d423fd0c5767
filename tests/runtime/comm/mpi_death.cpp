// Three ranks over MPI, of which rank 1 is killed while the others wait for it. Each prints how its wait ended.
#include <chrono>
#include <csignal>
#include <cstdio>

#include "runtime/comm/communicator.hpp"
#include "runtime/comm/transports.hpp"

int main() {
  using namespace tutti::internal;
  using std::chrono::seconds;
  comm::JoinOptions options;
  options.job.ranks = 3;
  auto joined = comm::join_by("mpi", options);
  if (!joined) return std::fprintf(stderr, "%s\n", joined.error().message.c_str()), 2;
  const RealClock clock(tutti::WaitKind::Block);
  comm::RealWait host(clock);
  comm::Communicator ranks(std::move(*joined), host, {.limit = seconds{60}, .silence = seconds{60}});
  if (ranks.rank() == 1) raise(SIGKILL);
  const auto result = ranks.wait_word(comm::SignalId{0}, 1);
  std::printf("rank %d ends: %s\n", ranks.rank(), result ? "well" : result.error().message.c_str());
  std::fflush(stdout);
  return result ? 0 : 3;
}
