// Ranks that are processes, with streams of GPUs and buffers in them or in shared memory. A program of its own, which
// forks before it calls CUDA: the test's process never does. The same program runs on GPUs that are executed on the
// host.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "model/base/random.hpp"
#include "runtime/comm/communicator.hpp"
#include "runtime/comm/gpu_functions.hpp"
#include "runtime/comm/transports.hpp"

#ifdef TUTTI_HOST_CUDA
#include "tests/support/host_cuda/host_cuda.hpp"

extern "C" const tutti::internal::comm::GpuFunctions* tutti_cuda_comm_v2();
#endif

namespace tutti::internal::comm {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using SteadyClock = std::chrono::steady_clock;

#ifdef TUTTI_HOST_CUDA
Expected<const GpuFunctions*> functions_of_gpus() { return tutti_cuda_comm_v2(); }
#else
Expected<const GpuFunctions*> functions_of_gpus() { return gpu_functions(); }
#endif

/// When a test gives up on its processes.
constexpr seconds kTestLimit{120};
/// Of waits within a rank.
constexpr Patience kPatience{.limit = seconds{30}, .silence = seconds{30}};

/// Ends the program of a rank.
struct RankFault {
  Error error;
};

/// A result, or the end of the rank.
template <class T>
T got(Expected<T> result) {
  if (!result) throw RankFault{result.error()};
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

/// What a rank's process says: the steps that it has come to, and its error.
class Report {
 public:
  explicit Report(int pipe) : pipe_(pipe) {}
  void say(const std::string& text) const {
    const std::string line = text + "\n";
    static_cast<void>(!write(pipe_, line.data(), line.size()));
  }

 private:
  int pipe_;
};

/// How a process ended.
struct ProcessEnd {
  int code = 0;  ///< negative: a signal
  std::string text;
};

/// The processes of a test, none of which outlives it.
class Processes {
 public:
  void start(const std::function<int(const Report& report)>& program) {
    int ends[2] = {};
    ASSERT_EQ(pipe(ends), 0);
    const pid_t process = fork();
    if (process == 0) _exit(program(Report(ends[1])));
    close(ends[1]);
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    running_.push_back({process, ends[0], true});
    ends_.emplace_back();
  }
  /// Waits for all; those that do not end in time are killed, and their text says so.
  std::vector<ProcessEnd> wait() {
    for (const auto limit = SteadyClock::now() + kTestLimit; look() && SteadyClock::now() < limit;) usleep(2000);
    for (std::size_t i = 0; i < running_.size(); ++i)
      if (running_[i].runs) {
        ends_[i].text += fmt::format("(did not end within {}: killed)\n", to_string(Duration{kTestLimit}));
        kill(running_[i].process, SIGKILL);
      }
    // A process whose driver hangs cannot be killed.
    for (const auto limit = SteadyClock::now() + seconds{10}; look() && SteadyClock::now() < limit;) usleep(2000);
    for (const Running& one : running_) close(one.pipe);
    return ends_;
  }

 private:
  struct Running {
    pid_t process = 0;
    int pipe = 0;
    bool runs = false;
  };
  /// @return whether one still runs
  bool look() {
    bool runs = false;
    for (std::size_t i = 0; i < running_.size(); ++i) {
      int status = 0;
      const bool ended = running_[i].runs && waitpid(running_[i].process, &status, WNOHANG) == running_[i].process;
      char text[512];
      for (ssize_t bytes = 0; (bytes = read(running_[i].pipe, text, sizeof text)) > 0;)
        ends_[i].text.append(text, static_cast<std::size_t>(bytes));
      if (ended) {
        running_[i].runs = false;
        ends_[i].code = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
      }
      runs |= running_[i].runs;
    }
    return runs;
  }

  std::vector<Running> running_;
  std::vector<ProcessEnd> ends_;
};

/// How the ranks of a test join.
struct JobOfTest {
  std::string name;
  int ranks = 2;
  BufferPlace buffers = BufferPlace::Device;
  NetworkOptions network = {};
  Patience patience = kPatience;
  bool has_served_nic = false;  ///< in a process that is none of the ranks

  [[nodiscard]] SharedJob shared() const {
    return {.name = fmt::format("test-gpus-{}-{}", name, getppid()),
            .ranks = ranks,
            .memory = std::size_t{16} << 20,
            .meeting = seconds{60}};
  }
};

/// A rank with a GPU.
struct RankOnGpu {
  const GpuFunctions& gpu;
  Communicator& comm;
  Stream& stream;
  SoftMemory& pinned;  ///< memory of its own process
  const Report& report;
};
using RankProgram = std::function<void(const RankOnGpu& rank)>;

Expected<std::unique_ptr<Transport>> join_test(const JobOfTest& job, int rank, int device, const GpuFunctions* gpu) {
  if (job.has_served_nic) return join_served_job(job.shared(), rank, {gpu, device, job.buffers});
  JoinOptions options;
  options.job = job.shared();
  options.rank = rank;
  options.network = job.network;
  options.device = device;
  options.gpu = gpu;
  options.buffers = job.buffers;
  return join_by("soft", options);
}

/// Runs a program in the process of a rank. @return its exit code, as the commands of tutti have them
int run_rank(const JobOfTest& job, int number, const RankProgram& program, const Report& report) try {
  const GpuFunctions* const gpu = got(functions_of_gpus());
  const int device = number % std::max(gpu->devices(), 1);
  report.say(fmt::format("rank {} is process {}, on GPU {}", number, getpid(), device));
  const auto stream = got(gpu->make_stream(device));
  const auto pinned = gpu->make_buffers(device, BufferPlace::Pinned);
  report.say("has a stream");
  const RealClock clock(WaitKind::Block);
  RealWait host(clock);
  Communicator comm(got(join_test(job, number, device, gpu)), host, job.patience);
  report.say("has joined");
  int code = 0;
  try {
    program({*gpu, comm, *stream, *pinned, report});
    got(comm.finish(*stream));
    report.say("has done its work");
  } catch (const RankFault& fault) {
    report.say(fault.error.message);
    code = fault.error.code == ErrorCode::InvalidInput ? 2 : 3;
    comm.abort(fault.error.message);  // the stream does not wait any more
  }
  if (!host.until([&] { return stream->is_idle().value_or(true); }, host.now() + Duration{seconds{10}})) {
    report.say("its stream still waits 10 s after the end");
    _exit(9);  // memory that it uses cannot be freed
  }
  return code;
} catch (const RankFault& fault) {
  report.say(fault.error.message);
  return fault.error.code == ErrorCode::InvalidInput ? 2 : 3;
}

std::vector<ProcessEnd> run_job(const JobOfTest& job, const RankProgram& program) {
  Processes processes;
  for (int rank = 0; rank < job.ranks; ++rank)
    processes.start([&](const Report& report) { return run_rank(job, rank, program, report); });
  if (job.has_served_nic)
    processes.start([&](const Report& report) {
      const auto functions = functions_of_gpus();
      const auto served = functions.and_then(
          [&](const GpuFunctions* gpus) { return serve_shared_job(job.shared(), job.network, gpus); });
      report.say(served ? "the NIC has served" : served.error().message);
      return served ? 0 : 3;
    });
  return processes.wait();
}

void expect_well(const std::vector<ProcessEnd>& ends) {
  for (std::size_t i = 0; i < ends.size(); ++i)
    EXPECT_EQ(ends[i].code, 0) << "process " << i << " said:\n" << ends[i].text;
}

// ---- Messages of random sizes, and puts

constexpr std::size_t kMostBytes = std::size_t{1} << 20;
/// Behind a message, bytes that must stay as they are.
constexpr std::size_t kGuard = 64;
constexpr std::size_t kSlot = kMostBytes + 4096;
constexpr std::size_t kInFlight = 3;
constexpr std::byte kUntouched{0xee};

/// A message of a rank to another one, which both know from the seed.
struct RandomMessage {
  std::size_t bytes = 0, shift = 0;
  std::uint64_t key = 0;

  RandomMessage(int from, int to, std::size_t round, std::size_t slot) {
    Random random(1 + slot + kInFlight * (round + 1000 * static_cast<std::size_t>(16 * from + to)));
    bytes = static_cast<std::size_t>(random.between(1, 1 << random.between(0, 20)));
    shift = static_cast<std::size_t>(random.between(0, 15));
    key = random.next();
  }
  [[nodiscard]] std::byte at(std::size_t i) const {
    return static_cast<std::byte>((key >> (i % 8 * 8)) + i / 8 + (i >> 11) * 17);
  }
};

/// Which part of a rank's buffer belongs to a peer.
std::size_t slot_start(int own, int peer, std::size_t slot) {
  return (static_cast<std::size_t>(peer < own ? peer : peer - 1) * kInFlight + slot) * kSlot;
}

std::vector<int> peers_of(const Communicator& comm) {
  std::vector<int> peers;
  for (int peer = 0; peer < comm.size(); ++peer)
    if (peer != comm.rank()) peers.push_back(peer);
  return peers;
}

/// Buffers of a rank, as wide as all slots, and host memory to fill and read them.
struct MessageBuffers {
  std::span<std::byte> out, in, filled, read;
  BufferId out_id, in_id;

  explicit MessageBuffers(const RankOnGpu& rank) {
    const std::size_t bytes = peers_of(rank.comm).size() * kInFlight * kSlot;
    out = got(rank.comm.allocate(bytes));
    in = got(rank.comm.allocate(bytes));
    filled = got(rank.pinned.allocate(bytes));
    read = got(rank.pinned.allocate(bytes));
    out_id = got(rank.comm.register_buffer(out));
    in_id = got(rank.comm.register_buffer(in));
  }
};

void check_message(const RankOnGpu& rank, const MessageBuffers& buffers, int peer, std::size_t round,
                   std::size_t slot) {
  const RandomMessage message(peer, rank.comm.rank(), round, slot);
  const std::byte* const read = buffers.read.data() + slot_start(rank.comm.rank(), peer, slot) + message.shift;
  for (std::size_t i = 0; i < message.bytes + kGuard; ++i) {
    const std::byte expected = i < message.bytes ? message.at(i) : kUntouched;
    if (read[i] != expected)
      throw RankFault{
          {ErrorCode::Machine,
           fmt::format("round {}, message {} of rank {} to rank {}: byte {} of {} is {:#x}, and not {:#x}", round, slot,
                       peer, rank.comm.rank(), i, message.bytes, static_cast<int>(read[i]), static_cast<int>(expected)),
           {}}};
  }
}

/// One round: each rank sends `kInFlight` messages to each other one, and the host takes no part between.
void exchange_round(const RankOnGpu& rank, MessageBuffers& buffers, std::size_t round) {
  const int own = rank.comm.rank();
  const auto each = [&](const std::function<void(int peer, std::size_t slot)>& call) {
    for (const int peer : peers_of(rank.comm))
      for (std::size_t slot = 0; slot < kInFlight; ++slot) call(peer, slot);
  };
  std::ranges::fill(buffers.read, kUntouched);
  got(rank.stream.copy(buffers.in.data(), buffers.read.data(), buffers.in.size()));
  got(rank.comm.finish(rank.stream));
  std::vector<Request> receives, all;
  each([&](int peer, std::size_t slot) {
    const RandomMessage message(peer, own, round, slot);
    // Every other receive is longer than its message.
    receives.push_back(got(rank.comm.post_recv(
        peer, {buffers.in_id, slot_start(own, peer, slot) + message.shift, message.bytes + (slot % 2) * kGuard})));
  });
  each([&](int peer, std::size_t slot) {
    const RandomMessage message(own, peer, round, slot);
    const std::size_t start = slot_start(own, peer, slot) + message.shift;
    for (std::size_t i = 0; i < message.bytes; ++i) buffers.filled[start + i] = message.at(i);
    got(rank.stream.copy(buffers.out.data() + start, buffers.filled.data() + start, message.bytes));
    all.push_back(got(rank.comm.send_on_stream(rank.stream, peer, {buffers.out_id, start, message.bytes})));
  });
  for (const Request& receive : receives) got(rank.comm.wait_on_stream(rank.stream, receive));
  got(rank.stream.copy(buffers.read.data(), buffers.in.data(), buffers.in.size()));
  got(rank.comm.finish(rank.stream));
  all.insert(all.end(), receives.begin(), receives.end());
  got(rank.comm.wait(all));
  each([&](int peer, std::size_t slot) { check_message(rank, buffers, peer, round, slot); });
}

constexpr std::size_t kRounds = 12;
constexpr std::size_t kPuts = 20;
constexpr std::size_t kPutBytes = 64;

/// Each rank puts into small buffers of the next one: two that are allocations of their own, and must not be one, and
/// one that lies behind another in its allocation. Only streams pass the values on.
void exchange_puts(const RankOnGpu& rank) {
  const int next = (rank.comm.rank() + 1) % rank.comm.size();
  const int before = (rank.comm.rank() + rank.comm.size() - 1) % rank.comm.size();
  constexpr std::size_t kBytes = kPuts * kPutBytes, kTargets = 3, kAll = kTargets * kBytes;
  const auto first = got(rank.comm.allocate(kBytes)), two = got(rank.comm.allocate(2 * kBytes));
  const std::array<std::span<std::byte>, kTargets> targets{first, two.first(kBytes), two.last(kBytes)};
  const auto source = got(rank.comm.allocate(kAll));
  std::array<BufferId, kTargets> ids;
  for (std::size_t i = 0; i < kTargets; ++i) ids[i] = got(rank.comm.register_buffer(targets[i]));
  const BufferId source_id = got(rank.comm.register_buffer(source));
  const auto filled = got(rank.pinned.allocate(kAll)), read = got(rank.pinned.allocate(kAll));
  const auto byte_of = [](int from, std::size_t i) {
    return static_cast<std::byte>(80 * (i / kBytes) + 25 * static_cast<std::size_t>(from) + i % 23);
  };
  for (std::size_t i = 0; i < kAll; ++i) filled[i] = byte_of(rank.comm.rank(), i);
  got(rank.stream.copy(source.data(), filled.data(), kAll));
  std::vector<Request> puts;
  for (std::size_t i = 0; i < kPuts; ++i)
    for (std::uint32_t which = 0; which < kTargets; ++which) {
      const Slice from{source_id, which * kBytes + i * kPutBytes, kPutBytes};
      puts.push_back(got(rank.comm.put_on_stream(rank.stream, next, from, ids[which], i * kPutBytes, SignalId{which},
                                                 static_cast<Word>(i + 1))));
    }
  for (std::uint32_t which = 0; which < kTargets; ++which) {
    got(rank.comm.wait_word_on_stream(rank.stream, SignalId{which}, kPuts));
    got(rank.stream.copy(read.data() + which * kBytes, targets[which].data(), kBytes));
  }
  got(rank.comm.finish(rank.stream));
  got(rank.comm.wait(puts));
  for (std::size_t i = 0; i < kAll; ++i)
    if (read[i] != byte_of(before, i))
      throw RankFault{{ErrorCode::Machine,
                       fmt::format("byte {} of target {}, which rank {} has put, is {:#x}, and not {:#x}", i % kBytes,
                                   i / kBytes, before, static_cast<int>(read[i]), static_cast<int>(byte_of(before, i))),
                       {}}};
}

void exchange(const RankOnGpu& rank) {
  MessageBuffers buffers(rank);
  rank.report.say("has its buffers");
  for (std::size_t round = 0; round < kRounds; ++round) {
    exchange_round(rank, buffers, round);
    rank.report.say(fmt::format("has ended round {}", round));
  }
  exchange_puts(rank);
  rank.report.say("has ended its puts");
}

/// Where buffers lie, and how many ranks there are.
class CommGpuProcesses : public testing::TestWithParam<std::pair<BufferPlace, int>> {
 protected:
  [[nodiscard]] JobOfTest job_named(const std::string& name) const {
    JobOfTest job;
    job.name = name;
    job.buffers = GetParam().first;
    job.ranks = GetParam().second;
    job.network.latency = Duration{1500};
    return job;
  }
};

// 12 rounds of 3 messages between each two ranks, in both directions, then 20 puts into each of three buffers.
TEST_P(CommGpuProcesses, MessagesAndPutsArriveWithTheirBytes) { expect_well(run_job(job_named("exchange"), exchange)); }

TEST_P(CommGpuProcesses, TheNicMayBeAProcessOfItsOwn) {
  JobOfTest job = job_named("served");
  job.has_served_nic = true;
  expect_well(run_job(job, exchange));
}

// One of ten entries fails, so all of 200 messages arrive once in 10^9 runs. The first that does not ends both sides.
TEST_P(CommGpuProcesses, AMessageThatFailsIsAnErrorAtAllRanks) {
  JobOfTest job = job_named("fails");
  job.network.fail_per_million = 100'000;
  const auto ends = run_job(job, [](const RankOnGpu& rank) {
    const auto memory = got(rank.comm.allocate(1000));
    const BufferId buffer = got(rank.comm.register_buffer(memory));
    for (int message = 0; message < 200; ++message) {
      const Slice all{buffer, 0, memory.size()};
      std::vector<Request> requests;
      if (rank.comm.rank() == 0) requests.push_back(got(rank.comm.send_on_stream(rank.stream, 1, all)));
      if (rank.comm.rank() == 1) requests.push_back(got(rank.comm.post_recv(0, all)));
      if (!requests.empty()) got(rank.comm.wait_on_stream(rank.stream, requests[0]));
      if (rank.comm.rank() > 1) got(rank.comm.wait_word_on_stream(rank.stream, SignalId{0}, 1));
      got(rank.comm.finish(rank.stream));
      got(rank.comm.wait(requests));
    }
  });
  for (const ProcessEnd& end : ends) {
    EXPECT_EQ(end.code, 3) << end.text;
    EXPECT_NE(end.text.find("of rank 0 to rank 1 failed: the network lost it"), std::string::npos) << end.text;
  }
}

// The streams of the others wait for words that no rank will set: they end with exit code 3 and its name, and not where
// their patience ends, which has other words. Rank 0 has the NIC.
TEST_P(CommGpuProcesses, TheOthersEndWithTheNameOfARankThatIsKilled) {
  for (const int victim : {0, 1}) {
    JobOfTest job = job_named("dies");
    job.patience = {.limit = seconds{100}, .silence = seconds{100}};
    const auto ends = run_job(job, [&](const RankOnGpu& rank) {
      const auto memory = got(rank.comm.allocate(4096));
      static_cast<void>(got(rank.comm.register_buffer(memory)));
      got(rank.comm.wait_word_on_stream(rank.stream, SignalId{0}, 1));
      got(rank.stream.copy(memory.data(), memory.data() + 1024, 1024));
      if (rank.comm.rank() == victim) {
        std::this_thread::sleep_for(milliseconds{300});
        raise(SIGKILL);
      }
      got(rank.comm.finish(rank.stream));
    });
    const ProcessEnd& killed = ends[static_cast<std::size_t>(victim)];
    EXPECT_EQ(killed.code, -SIGKILL) << killed.text;
    for (const ProcessEnd& end : ends) {
      if (&end == &killed) continue;
      EXPECT_EQ(end.code, 3) << end.text;
      EXPECT_NE(end.text.find(fmt::format("rank {} has died", victim)), std::string::npos) << end.text;
    }
  }
}

// A process takes seconds to start on real GPUs: each place and each count once there.
#ifdef TUTTI_HOST_CUDA
const auto kRows = testing::Values(std::pair(BufferPlace::Device, 2), std::pair(BufferPlace::Device, 3),
                                   std::pair(BufferPlace::Pinned, 2), std::pair(BufferPlace::Pinned, 3));
#else
const auto kRows = testing::Values(std::pair(BufferPlace::Device, 3), std::pair(BufferPlace::Pinned, 2));
#endif
INSTANTIATE_TEST_SUITE_P(Buffers, CommGpuProcesses, kRows, [](const auto& row) {
  return fmt::format("{}Of{}Ranks", row.param.first == BufferPlace::Device ? "OnTheGpus" : "InSharedMemory",
                     row.param.second);
});

/// A job of one rank, and what it says.
ProcessEnd run_alone(const std::string& name, const RankProgram& program) {
  JobOfTest job;
  job.name = name;
  job.ranks = 1;
  return run_job(job, program)[0];
}

TEST(CommGpuProcess, BuffersThatOthersCannotReachAreRefused) {
  const ProcessEnd end = run_alone("refused", [](const RankOnGpu& rank) {
    const auto own = got(rank.pinned.allocate(4096));
    static_cast<void>(got(rank.comm.register_buffer(own)));
  });
  EXPECT_EQ(end.code, 2) << end.text;
  EXPECT_NE(
      end.text.find("the buffer is neither shared memory nor memory of a GPU that CUDA IPC shares, so other ranks "
                    "do not reach it; use memory that the communicator allocates"),
      std::string::npos)
      << end.text;
}

TEST(CommGpuProcess, AGpuThatIsNotThereIsRefused) {
  Processes processes;
  processes.start([&](const Report& report) {
    JobOfTest job;
    job.name = "no-gpu";
    job.ranks = 1;
    const auto functions = functions_of_gpus();
    const auto joined = functions.and_then([&](const GpuFunctions* gpu) { return join_test(job, 0, 99, gpu); });
    report.say(joined ? "has joined" : joined.error().message);
    return joined ? 0 : 2;
  });
  const ProcessEnd end = processes.wait()[0];
  EXPECT_EQ(end.code, 2) << end.text;
  EXPECT_EQ(end.text.find("rank 0 asks for GPU 99, and its process sees "), 0U) << end.text;
}

#ifdef TUTTI_HOST_CUDA
// A NIC that cannot open a buffer says which one and why, and all ranks end with that.
TEST(CommGpuProcess, MemoryThatTheNicCannotOpenEndsAllRanks) {
  constexpr int kInvalidHandle = 400;  // cudaErrorInvalidResourceHandle
  JobOfTest job;
  job.name = "not-open";
  const auto ends = run_job(job, [](const RankOnGpu& rank) {
    if (rank.comm.rank() == 0) host_cuda::fail_next("cudaIpcOpenMemHandle", kInvalidHandle);
    exchange(rank);
  });
  for (const ProcessEnd& end : ends) {
    EXPECT_EQ(end.code, 3) << end.text;
    EXPECT_NE(end.text.find("the soft NIC does not reach memory of GPU 1 of process "), std::string::npos) << end.text;
    EXPECT_NE(end.text.find("cudaIpcOpenMemHandle failed"), std::string::npos) << end.text;
  }
}

// A copy that fails ends its message, and says so.
TEST(CommGpuProcess, ACopyThatFailsEndsBothSides) {
  constexpr int kLaunchFailed = 719;  // cudaErrorLaunchFailure
  JobOfTest job;
  job.name = "not-moved";
  const auto ends = run_job(job, [](const RankOnGpu& rank) {
    if (rank.comm.rank() == 0) host_cuda::fail_next("cudaEventRecord", kLaunchFailed);
    exchange(rank);
  });
  for (const ProcessEnd& end : ends) {
    EXPECT_EQ(end.code, 3) << end.text;
    EXPECT_NE(end.text.find("failed: the copy of its bytes failed in the soft NIC"), std::string::npos) << end.text;
  }
}
#endif

/// The number of GPUs, which a process of its own counts; what it says where there is none.
ProcessEnd count_gpus() {
  Processes processes;
  processes.start([](const Report& report) {
    const auto functions = functions_of_gpus();
    if (!functions) report.say(functions.error().message);
    return functions ? std::min((*functions)->devices(), 100) : 0;
  });
  return processes.wait()[0];
}

TEST(CommGpuProcess, IsThere) {
  if (const ProcessEnd gpus = count_gpus(); gpus.code <= 0) GTEST_SKIP() << "skipped: no device " << gpus.text;
}

}  // namespace
}  // namespace tutti::internal::comm

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (tutti::internal::comm::count_gpus().code <= 0) GTEST_FLAG_SET(filter, "CommGpuProcess.IsThere");
  return RUN_ALL_TESTS();
}
