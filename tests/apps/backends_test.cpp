#include "apps/backends.hpp"

#include <string>

#include <gtest/gtest.h>

#include "tests/support/yaml_text.hpp"

namespace tutti::internal {
namespace {

/// What options are refused with; the name of their clock where they are not.
std::string answer(const BackendOptions& options) {
  const auto clock = make_clock(options);
  if (clock) return std::string((*clock)->name());
  EXPECT_EQ(clock.error().code, ErrorCode::InvalidInput);
  return clock.error().text();
}

BackendOptions cuda() {
  BackendOptions options;
  options.backend = "cuda";
  return options;
}

/// Options with one of their words changed.
BackendOptions with(BackendOptions options, std::string BackendOptions::*word, const char* text) {
  options.*word = text;
  return options;
}

TEST(BackendOptions, TakeTheClockOfTheBackendUnlessTold) {
  EXPECT_EQ(answer({}), "virtual");
  EXPECT_EQ(answer(with({}, &BackendOptions::clock, "real")), "real");
  EXPECT_EQ(answer(cuda()), "real");
  EXPECT_EQ(answer(with(cuda(), &BackendOptions::clock, "real")), "real");
}

TEST(BackendOptions, GuessWhatWasMeant) {
  EXPECT_EQ(answer(with({}, &BackendOptions::backend, "cud")), "--backend: there is no 'cud'; did you mean 'cuda'?");
  EXPECT_EQ(answer(with({}, &BackendOptions::backend, "abacus")),
            "--backend: there is no 'abacus'; give one of sim, cuda");
  EXPECT_EQ(answer(with({}, &BackendOptions::clock, "reel")), "--clock: there is no 'reel'; did you mean 'real'?");
  EXPECT_EQ(answer(with({}, &BackendOptions::waiting, "blok")), "--wait: there is no 'blok'; did you mean 'block'?");
  EXPECT_EQ(answer(with(cuda(), &BackendOptions::gate, "memory-wait")),
            "--gate: there is no 'memory-wait'; did you mean 'memory_wait'?");
  EXPECT_EQ(answer(with(cuda(), &BackendOptions::gate, "door")),
            "--gate: there is no 'door'; give one of polling_kernel, memory_wait, host_timed, device_timer");
}

TEST(BackendOptions, RefuseWhatDoesNotGoTogether) {
  EXPECT_EQ(answer(with(cuda(), &BackendOptions::clock, "virtual")),
            "--clock: GPUs run in real time; give real, or leave --clock out");
  BackendOptions bound;
  bound.bind = {"gpu0=0000:06:00.0"};
  for (const BackendOptions& options : {bound, with({}, &BackendOptions::gate, "host_timed")})
    EXPECT_EQ(answer(options), "--bind and --gate are for GPUs; give --backend cuda with them, or leave them out");
}

TEST(BackendOptions, RefuseBindingsThatAreNone) {
  for (const char* text : {"gpu0", "=0000:06:00.0", "gpu0=", "="}) {
    BackendOptions options = cuda();
    options.bind = {"gpu1=GPU-1234", text};
    EXPECT_EQ(answer(options), "--bind: '" + std::string(text) + "' is no GPU=BUSID; write it like gpu0=0000:06:00.0");
  }
  BackendOptions options = cuda();
  options.bind = {"gpu0=0000:06:00.0", "gpu1=GPU-1234"};
  EXPECT_EQ(answer(options), "real");
}

TEST(BackendOptions, MakeTheSimulatedMachine) {
  const Topology machine = test::star(8, {8});
  const KernelRegistry kernels;
  const auto clock = make_clock({}).value();
  const auto backend = make_backend({}, machine, kernels, *clock);
  ASSERT_TRUE(backend.has_value()) << backend.error().text();
  EXPECT_EQ((*backend)->name(), "sim");
  EXPECT_FALSE(make_backend(with({}, &BackendOptions::backend, "abacus"), machine, kernels, *clock).has_value());
}

// The machine's GPU has no bus id: with CUDA or without, on a host with GPUs or without, there is no way to run it.
TEST(BackendOptions, SayWhyThereIsNoGpu) {
  const Topology machine = test::star(8, {8});
  const KernelRegistry kernels;
  const auto clock = make_clock(cuda()).value();
  const auto backend = make_backend(cuda(), machine, kernels, *clock);
  ASSERT_FALSE(backend.has_value());
  EXPECT_FALSE(backend.error().message.empty());
}

}  // namespace
}  // namespace tutti::internal
