// Ranks that are processes, on this host. A program of its own, which forks before it has threads.
#include <chrono>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/comm/communicator.hpp"
#include "runtime/comm/gpu_functions.hpp"
#include "runtime/comm/soft_stream.hpp"
#include "runtime/comm/transports.hpp"

namespace tutti::internal::comm {
namespace {

using std::chrono::seconds;

/// What a rank's process does: its exit code, and what it has to say.
struct RankEnd {
  int code = 0;
  std::string text;
};

/// A rank with a stream in a thread.
struct RankTools {
  Communicator comm;
  SoftStream& stream;
};

using RankProgram = std::function<Expected<void>(RankTools& tools)>;

/// Exit code of a rank, as the commands of tutti have them.
int code_of(const Error& error) { return error.code == ErrorCode::InvalidInput ? 2 : 3; }

SharedJob job_named(const std::string& name, int ranks) {
  return {.name = fmt::format("test-{}-{}", name, getpid()), .ranks = ranks, .memory = 1 << 20, .meeting = seconds{20}};
}

/// One process for each rank, and one for the NIC if asked; the test's process reads what they say.
class Ranks {
 public:
  void start(const std::function<Expected<void>()>& program) {
    int ends[2] = {};
    ASSERT_EQ(pipe(ends), 0);
    const pid_t process = fork();
    if (process == 0) {
      const auto result = program();
      if (!result) {
        const std::string& message = result.error().message;
        static_cast<void>(!write(ends[1], message.data(), message.size()));
      }
      _exit(result ? 0 : code_of(result.error()));
    }
    close(ends[1]);
    processes_.push_back(process);
    pipes_.push_back(ends[0]);
  }
  [[nodiscard]] pid_t process(std::size_t rank) const { return processes_[rank]; }
  RankEnd end_of(std::size_t rank) {
    RankEnd end;
    char text[512];
    for (ssize_t bytes = 0; (bytes = read(pipes_[rank], text, sizeof text)) > 0;)
      end.text.append(text, static_cast<std::size_t>(bytes));
    close(pipes_[rank]);
    int status = 0;
    waitpid(processes_[rank], &status, 0);
    end.code = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    return end;
  }

 private:
  std::vector<pid_t> processes_;
  std::vector<int> pipes_;
};

/// Joins a job and runs a program in it.
Expected<void> in_job(Expected<std::unique_ptr<Transport>> transport, Patience patience, const RankProgram& program) {
  if (!transport) return tl::unexpected(transport.error());
  const RealClock clock(WaitKind::Block);
  RealWait host(clock);
  SoftStream stream;
  RankTools tools{Communicator(std::move(*transport), host, patience), stream};
  const ActorThread thread(stream, clock);
  auto result = program(tools);
  if (!result) tools.comm.abort(result.error().message);  // the stream does not wait any more
  return result;
}

/// A number goes round all ranks `rounds` times, plus one at each; only streams pass it on.
Expected<void> pass_round(RankTools& tools, std::uint64_t rounds) {
  Communicator& comm = tools.comm;
  const int before = (comm.rank() + comm.size() - 1) % comm.size(), after = (comm.rank() + 1) % comm.size();
  const auto memory = comm.allocate(2 * 8 * (rounds + 1));
  if (!memory) return tl::unexpected(memory.error());
  const auto out = comm.register_buffer(memory->first(8 * (rounds + 1)));
  const auto in = comm.register_buffer(memory->last(8 * (rounds + 1)));
  if (!out || !in) return tl::unexpected((out ? in : out).error());
  std::byte* const outgoing = memory->data();
  std::byte* const incoming = outgoing + 8 * (rounds + 1);
  for (std::uint64_t round = 0; round < rounds; ++round) {
    const bool first = comm.rank() == 0;
    const auto received = comm.post_recv(before, {*in, round * 8, 8});
    if (!received) return tl::unexpected(received.error());
    const auto pass = [=] {
      std::uint64_t number = 0;
      std::memcpy(&number, incoming + round * 8, 8);
      ++number;
      std::memcpy(outgoing + (first ? round + 1 : round) * 8, &number, 8);
    };
    Expected<void> result;
    if (first) result = comm.send_on_stream(tools.stream, after, {*out, round * 8, 8}).map([](const Request&) {});
    if (result) result = comm.wait_on_stream(tools.stream, *received);
    if (result) result = tools.stream.call(pass, {});
    if (result && !first)
      result = comm.send_on_stream(tools.stream, after, {*out, round * 8, 8}).map([](const Request&) {});
    if (!result) return result;
  }
  if (auto finished = comm.finish(tools.stream); !finished) return finished;
  std::uint64_t number = 0;
  std::memcpy(&number, outgoing + rounds * 8, 8);
  if (comm.rank() == 0 && number != rounds * static_cast<std::uint64_t>(comm.size()))
    return machine_error(fmt::format("the number is {}", number));
  return {};
}

// 3 ranks x 100 rounds are 300 hops, so the number is 300 at the end; rank 0 serves the NIC.
TEST(Processes, PassMessagesThroughSharedMemory) {
  Ranks ranks;
  const SharedJob job = job_named("round", 3);
  for (int rank = 0; rank < 3; ++rank)
    ranks.start([&] {
      return in_job(join_by("soft", {.job = job, .rank = rank}), {},
                    [](RankTools& tools) { return pass_round(tools, 100); });
    });
  for (std::size_t rank = 0; rank < 3; ++rank) {
    const RankEnd end = ranks.end_of(rank);
    EXPECT_EQ(end.code, 0) << end.text;
  }
  EXPECT_NE(access(fmt::format("/dev/shm/tutti-comm.{}", job.name).c_str(), F_OK), 0) << "the name is still there";
}

TEST(Processes, TheNicMayBeAProcessOfItsOwn) {
  Ranks ranks;
  const SharedJob job = job_named("served", 2);
  for (int rank = 0; rank < 2; ++rank)
    ranks.start(
        [&] { return in_job(join_served_job(job, rank), {}, [](RankTools& tools) { return pass_round(tools, 50); }); });
  ranks.start([&] { return serve_shared_job(job, {.latency = Duration{2000}, .rate = 10}); });
  for (std::size_t process = 0; process < 3; ++process) {
    const RankEnd end = ranks.end_of(process);
    EXPECT_EQ(end.code, 0) << end.text;
  }
}

// Rank 1 is killed while the others wait for its messages: they end with exit code 3 and its name, long before the
// limit of their waits and before its silence is noticed.
TEST(Processes, TheOthersEndWithTheNameOfARankThatDies) {
  for (const int victim : {0, 1}) {
    Ranks ranks;
    const SharedJob job = job_named("dies", 3);
    for (int rank = 0; rank < 3; ++rank)
      ranks.start([&] {
        return in_job(join_by("soft", {.job = job, .rank = rank}), {.limit = seconds{100}, .silence = seconds{100}},
                      [&](RankTools& tools) {
                        if (rank == victim) raise(SIGKILL);
                        return tools.comm.wait_word(SignalId{0}, 1);
                      });
      });
    for (std::size_t rank = 0; rank < 3; ++rank) {
      const RankEnd end = ranks.end_of(rank);
      EXPECT_EQ(end.code, static_cast<int>(rank) == victim ? -SIGKILL : 3);
      if (static_cast<int>(rank) == victim) continue;
      EXPECT_NE(end.text.find(fmt::format("rank {} has died", victim)), std::string::npos) << end.text;
    }
  }
}

// A process that is stopped is there, and shows no sign of life.
TEST(Processes, ARankThatStandsStillIsNoticedByItsSilence) {
  Ranks ranks;
  const SharedJob job = job_named("stands", 2);
  for (int rank = 0; rank < 2; ++rank)
    ranks.start([&] {
      return in_job(join_by("soft", {.job = job, .rank = rank}), {.limit = seconds{100}, .silence = seconds{1}},
                    [&](RankTools& tools) {
                      if (rank == 1) raise(SIGSTOP);
                      return tools.comm.wait_word(SignalId{0}, 1);
                    });
    });
  const RankEnd end = ranks.end_of(0);
  EXPECT_EQ(end.code, 3);
  EXPECT_NE(end.text.find("rank 1 has died: its process is gone, or has shown no sign of life for 1 s"),
            std::string::npos)
      << end.text;
  kill(ranks.process(1), SIGKILL);
  static_cast<void>(ranks.end_of(1));
}

TEST(Processes, BadJobsAreRefused) {
  const auto message = [](const JoinOptions& options) {
    const auto joined = join_by("soft", options);
    EXPECT_FALSE(joined.has_value());
    EXPECT_EQ(joined.error().code, ErrorCode::InvalidInput);
    return joined.error().message;
  };
  EXPECT_EQ(message({.job = {.name = "a/b"}}),
            "'a/b' is no name of a job; it has 1 to 128 letters, digits, '_', '.' or '-'");
  EXPECT_EQ(message({.job = {.name = "x", .ranks = 17}}), "a job has 1 to 16 ranks, and 'x' asks for 17");
  const SharedJob job = job_named("twice", 1);
  const auto first = SharedMapping::create(job);
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(message({.job = job})
                .find(fmt::format("the job '{}' is there already (/dev/shm/tutti-comm.{})", job.name, job.name)),
            0U);
  SharedJob other = job;
  other.ranks = 2;
  EXPECT_EQ(message({.job = other, .rank = 1}),
            fmt::format("the job '{}' has 1 ranks, and one that joins says 2; start all with one number", job.name));
  EXPECT_EQ(message({.job = job, .rank = 1}),
            fmt::format("the job '{}' has the ranks 0 to 0, and no rank 1", job.name));
}

// The header of a fabric of one rank, in a file that ends before the memory that ranks allocate begins.
TEST(Processes, SharedMemoryThatIsTooShortIsRefused) {
  const SharedJob job = job_named("short", 1);
  const auto first = SharedMapping::create(job);
  ASSERT_TRUE(first.has_value());
  const std::string file = "/dev/shm/tutti-comm." + job.name;
  ASSERT_EQ(truncate(file.c_str(), static_cast<off_t>(Fabric::size(1, kSoftLanes))), 0);
  const auto joined = SharedMapping::join(job);
  ASSERT_FALSE(joined.has_value());
  EXPECT_NE(joined.error().message.find(file + ") is too short"), std::string::npos) << joined.error().message;
}

TEST(Processes, ARankThatDoesNotComeIsNamed) {
  SharedJob job = job_named("alone", 2);
  job.meeting = std::chrono::milliseconds{50};
  const auto alone = join_by("soft", {.job = job});
  ASSERT_FALSE(alone.has_value());
  EXPECT_EQ(alone.error().message, "rank 1 of 2 has not joined within 50 ms; start it on this host");
  const auto early = join_by("soft", {.job = job, .rank = 1});
  ASSERT_FALSE(early.has_value());
  EXPECT_EQ(early.error().message,
            fmt::format("the job '{}' has not begun within 50 ms; start its rank 0, on this host", job.name));
}

/// A library that sees one GPU, whose memory no other process opens; a NIC cannot use it.
constexpr GpuFunctions kLoneGpu{
    .version = "",
    .devices = [] { return 1; },
    .make_stream = nullptr,
    .make_buffers = [](int, BufferPlace) -> std::unique_ptr<SoftMemory> { return std::make_unique<ProcessMemory>(); },
    .make_mover = [](int) -> Expected<std::unique_ptr<Mover>> { return machine_error("it is a test's"); },
    .make_proxy_memory = nullptr,
    .reach = [](std::span<std::byte>) -> Expected<std::shared_ptr<void>> { return nullptr; },
    .check_nccl = nullptr,
    .join_nccl = nullptr};

TEST(Processes, AGpuThatIsNotThereIsRefused) {
  const auto joined = join_by("soft", {.job = job_named("gpu", 1), .device = 1, .gpu = &kLoneGpu});
  ASSERT_FALSE(joined.has_value());
  EXPECT_EQ(joined.error().code, ErrorCode::InvalidInput);
  EXPECT_EQ(joined.error().message,
            "rank 0 asks for GPU 1, and its process sees 1 GPUs, counted from 0; run it on another host, or without a "
            "GPU");
}

// Rank 1 has a GPU, and the NIC has none: it says so when all have met, and no rank waits for the limit. What the NIC
// could not open is refused at the rank itself.
TEST(Processes, ANicThatDoesNotReachGpusEndsAllRanks) {
  Ranks ranks;
  const SharedJob job = job_named("no-gpus", 2);
  const RankProgram wait = [](RankTools& tools) { return tools.comm.wait_word(SignalId{0}, 1); };
  ranks.start([&] { return in_job(join_served_job(job, 0), {.limit = seconds{100}}, wait); });
  ranks.start([&] {
    return in_job(join_served_job(job, 1, {&kLoneGpu}), {.limit = seconds{100}}, [&](RankTools& tools) {
      const auto memory = tools.comm.allocate(64);
      const auto buffer = tools.comm.register_buffer(*memory);
      if (buffer || buffer.error().message !=
                        "the buffer is neither shared memory nor memory of a GPU that CUDA IPC shares, so other ranks "
                        "do not reach it; use memory that the communicator allocates")
        return Expected<void>(invalid_input("the buffer was not refused"));
      return wait(tools);
    });
  });
  ranks.start([&] { return serve_shared_job(job, {}, &kLoneGpu); });
  for (std::size_t process = 0; process < 3; ++process) {
    const RankEnd end = ranks.end_of(process);
    EXPECT_EQ(end.code, 3) << end.text;
    EXPECT_NE(end.text.find("the soft NIC cannot move bytes of GPUs: it is a test's"), std::string::npos) << end.text;
  }
}

TEST(Transports, AreFoundByTheirNames) {
  EXPECT_STREQ(find_transport("soft").value()->name, "soft");
  const auto unknown = find_transport("sof");
  ASSERT_FALSE(unknown.has_value());
  EXPECT_EQ(unknown.error().code, ErrorCode::InvalidInput);
  EXPECT_EQ(unknown.error().message.find(
                "there is no transport 'sof'; there are soft, mpi, nccl, nvshmem. did you mean 'soft'?"),
            0U)
      << unknown.error().message;
}

/// One test a transport: the absent ones are skipped by their names.
class TransportRows : public testing::TestWithParam<std::string> {};

// A transport that cannot be used here is refused with its name, the reason and a remedy.
TEST_P(TransportRows, SayWhyTheyAreRefused) {
  const TransportRow& row = *find_transport(GetParam()).value();
  const auto usable = row.check();
  if (usable) return;
  EXPECT_EQ(usable.error().code, ErrorCode::Machine);
  EXPECT_NE(usable.error().message.find("; "), std::string::npos) << "no remedy: " << usable.error().message;
  const auto joined = join_by(row.name, {});
  ASSERT_FALSE(joined.has_value());
  EXPECT_EQ(joined.error().code, ErrorCode::Machine);
  EXPECT_EQ(joined.error().message,
            fmt::format("the transport {} cannot be used here: {}", row.name, usable.error().message));
  GTEST_SKIP() << "skipped: transport " << row.name << ": " << usable.error().message;
}

std::vector<std::string> transport_names() {
  std::vector<std::string> names;
  for (const TransportRow& row : transport_rows()) names.emplace_back(row.name);
  return names;
}
INSTANTIATE_TEST_SUITE_P(All, TransportRows, testing::ValuesIn(transport_names()),
                         [](const auto& name) { return name.param; });

}  // namespace
}  // namespace tutti::internal::comm
