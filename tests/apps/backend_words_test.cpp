#include "apps/backend_words.hpp"

#include <string>

#include <gtest/gtest.h>

#include "runtime/core/backend_options.hpp"

namespace tutti::programs {
namespace {

/// What words are refused with; empty where they are not.
std::string fault_of(const BackendWords& words) {
  tutti::BackendOptions options;
  return read_backend_words(words, options);
}

tutti::BackendOptions meaning_of(const BackendWords& words) {
  tutti::BackendOptions options;
  EXPECT_EQ(read_backend_words(words, options), "");
  return options;
}

BackendWords cuda() {
  BackendWords words;
  words.backend = "cuda";
  return words;
}

/// Words with one of them changed.
BackendWords with(BackendWords words, std::string BackendWords::*word, const char* text) {
  words.*word = text;
  return words;
}

TEST(BackendWords, MeanTheSimulatedMachineAndItsClockUnlessGiven) {
  const tutti::BackendOptions options = meaning_of({});
  EXPECT_EQ(options.kind, BackendKind::Simulated);
  EXPECT_EQ(options.clock, ClockKind::OfBackend);
  EXPECT_EQ(options.waiting, WaitKind::Spin);
  EXPECT_FALSE(options.gate.has_value());
  EXPECT_EQ(BackendWords{}.clock_name(), "virtual");
  EXPECT_EQ(cuda().clock_name(), "real");
  EXPECT_EQ(with({}, &BackendWords::clock, "real").clock_name(), "real");
}

TEST(BackendWords, EachHasItsMeaning) {
  EXPECT_EQ(meaning_of(cuda()).kind, BackendKind::Cuda);
  EXPECT_EQ(meaning_of(with({}, &BackendWords::clock, "real")).clock, ClockKind::Real);
  EXPECT_EQ(meaning_of(with({}, &BackendWords::clock, "virtual")).clock, ClockKind::Virtual);
  EXPECT_EQ(meaning_of(with(cuda(), &BackendWords::waiting, "yield")).waiting, WaitKind::Yield);
  EXPECT_EQ(meaning_of(with(cuda(), &BackendWords::waiting, "block")).waiting, WaitKind::Block);
  for (const GateKind kind : kGateKinds)
    EXPECT_EQ(meaning_of(with(cuda(), &BackendWords::gate, std::string(to_string(kind)).c_str())).gate, kind);
}

TEST(BackendWords, LetTheHostWaitAfterEachCommandOnGpusAlone) {
  BackendWords words = cuda();
  words.serialize = true;
  EXPECT_TRUE(meaning_of(words).serialize);
  words.backend = "sim";
  EXPECT_EQ(fault_of(words).find("--serialize finds the command that breaks a GPU"), 0U);
}

TEST(BackendWords, GuessWhatWasMeant) {
  EXPECT_EQ(fault_of(with({}, &BackendWords::backend, "cud")), "--backend: there is no 'cud'; did you mean 'cuda'?");
  EXPECT_EQ(fault_of(with({}, &BackendWords::backend, "abacus")),
            "--backend: there is no 'abacus'; give one of sim, cuda");
  EXPECT_EQ(fault_of(with({}, &BackendWords::clock, "reel")), "--clock: there is no 'reel'; did you mean 'real'?");
  EXPECT_EQ(fault_of(with({}, &BackendWords::waiting, "blok")), "--wait: there is no 'blok'; did you mean 'block'?");
  EXPECT_EQ(fault_of(with(cuda(), &BackendWords::gate, "memory-wait")),
            "--gate: there is no 'memory-wait'; did you mean 'memory_wait'?");
  EXPECT_EQ(fault_of(with(cuda(), &BackendWords::gate, "door")),
            "--gate: there is no 'door'; give one of polling_kernel, memory_wait, host_timed, device_timer");
}

TEST(BackendWords, RefuseWhatDoesNotGoTogether) {
  EXPECT_EQ(fault_of(with(cuda(), &BackendWords::clock, "virtual")),
            "--clock: GPUs run in real time; give real, or leave --clock out");
  BackendWords bound;
  bound.bind = {"gpu0=0000:06:00.0"};
  for (const BackendWords& words : {bound, with({}, &BackendWords::gate, "host_timed")})
    EXPECT_EQ(fault_of(words), "--bind and --gate are for GPUs; give --backend cuda with them, or leave them out");
}

TEST(BackendWords, AskForPriorityAndCoresInRealTime) {
  BackendWords words = with({}, &BackendWords::clock, "real");
  EXPECT_EQ(meaning_of(words).real_time.priority, 0);
  EXPECT_TRUE(meaning_of(words).real_time.cores.empty());
  words.priority = 50;
  words.cores = "3,12";
  EXPECT_EQ(meaning_of(words).real_time.priority, 50);
  EXPECT_EQ(meaning_of(words).real_time.cores, (std::vector<int>{3, 12}));
  words.clock = "";
  EXPECT_EQ(fault_of(words),
            "--priority and --cores are for real time; give --clock real with them, or leave them out");
  words.backend = "cuda";
  EXPECT_EQ(fault_of(words), "");
}

TEST(BackendWords, RefuseListsOfCoresThatAreNone) {
  for (const char* text : {"a", "1,", ",1", "1,,2", "-1", "1 2", "1.5", "99999999999", ","})
    EXPECT_EQ(fault_of(with(cuda(), &BackendWords::cores, text)),
              "--cores: '" + std::string(text) + "' is no list of cores; write it like 2,3");
  EXPECT_EQ(fault_of(with(cuda(), &BackendWords::cores, "2,3,2")), "--cores: 2 is there twice");
}

TEST(BackendWords, AskForAWatchdog) {
  using std::chrono::milliseconds;
  using std::chrono::seconds;
  EXPECT_EQ(meaning_of({}).watchdog, (Watchdog{10, seconds(2)}));
  for (const auto& [text, meant] : {std::pair("5x+100ms", Watchdog{5, milliseconds(100)}),
                                    {"1x+0s", Watchdog{1, Duration{0}}},
                                    {"1.5x+2us", Watchdog{1.5, Duration{2000}}},
                                    {"2x+0.0005us", Watchdog{2, Duration{1}}}})
    EXPECT_EQ(meaning_of(with({}, &BackendWords::watchdog, text)).watchdog, meant) << text;
}

TEST(BackendWords, RefuseWatchdogsThatAreNone) {
  for (const char* text : {"5", "2s", "5x", "5x+", "x+2s", "5x+2", "5x+2h", "0.5x+2s", "-5x+2s", "5x+-2s", "5x-2s",
                           "nanx+2s", "infx+2s", "5x+infs", "1e3x+2s", "5 x + 2 s", "9999999x+2s", "5x+9999999999s"})
    EXPECT_EQ(fault_of(with({}, &BackendWords::watchdog, text)),
              "--watchdog: '" + std::string(text) +
                  "' is no limit; write it like 10x+2s: at least once the planned length, and a time (ns, us, ms, s) "
                  "beyond it");
}

TEST(BackendWords, LimitPinnedMemoryOfGpusAlone) {
  EXPECT_FALSE(meaning_of(cuda()).pinned_limit.has_value());
  for (const auto& [text, meant] : {std::pair("4 MiB", 4 << 20), {"1.5KiB", 1536}, {"3 MB", 3'000'000}, {"7 B", 7}})
    EXPECT_EQ(meaning_of(with(cuda(), &BackendWords::pinned_limit, text)).pinned_limit, Bytes{meant}) << text;
  for (const char* text : {"4", "-4 MiB", "much", "0", "0 B", "0.5 B", "4  MiB", "9999999999 GiB", "nan GiB", " "})
    EXPECT_EQ(fault_of(with(cuda(), &BackendWords::pinned_limit, text)),
              "--pinned-limit: '" + std::string(text) + "' is no size above 0; write it like 4 GiB");
  EXPECT_EQ(fault_of(with({}, &BackendWords::pinned_limit, "4 GiB")),
            "--pinned-limit is for GPUs; give --backend cuda with it, or leave it out");
}

TEST(BackendWords, RefuseBindingsThatAreNone) {
  for (const char* text : {"gpu0", "=0000:06:00.0", "gpu0=", "="}) {
    BackendWords words = cuda();
    words.bind = {"gpu1=GPU-1234", text};
    EXPECT_EQ(fault_of(words), "--bind: '" + std::string(text) + "' is no GPU=BUSID; write it like gpu0=0000:06:00.0");
  }
  BackendWords words = cuda();
  words.bind = {"gpu0=0000:06:00.0", "gpu1=GPU-1234"};
  const std::vector<std::pair<std::string, std::string>> bound{{"gpu0", "0000:06:00.0"}, {"gpu1", "GPU-1234"}};
  EXPECT_EQ(meaning_of(words).bind, bound);
}

}  // namespace
}  // namespace tutti::programs
