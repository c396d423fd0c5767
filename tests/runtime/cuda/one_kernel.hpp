#pragma once
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "tests/runtime/small_machine.hpp"

namespace tutti::internal::test {

/// Batches of one kernel each with a word of output on gpu0, behind the gates of a backend.
class OneKernel : public testing::TestWithParam<Station::MakeBackend> {
 protected:
  OneKernel() : station(std::make_unique<DeviceClock>(), GetParam()) {}

  void add(const std::string& name, DeviceKernel kernel) {
    ASSERT_TRUE(station.kernels
                    .add(
                        name, [](const KernelLaunch&) {}, std::move(kernel))
                    .has_value());
  }
  Expected<PreparedBatch> prepare(const std::string& kernel, Capture capture = Capture::Once) {
    CommandStream stream = kernel_stream("s", station.at("gpu0"), kernel, 1'000'000);
    stream.kernel->capture = capture;
    return station.executor.prepare(station.planned({stream}), {{{}, {}, input.view(), output.view(), {}}});
  }
  int word() {
    int word = 0;
    std::memcpy(&word, station.read(output.view()).data(), sizeof word);
    return word;
  }

  Station station;
  Buffer input = station.allocate(station.at("gpu0"), 64), output = station.allocate(station.at("gpu0"), 64);
};

}  // namespace tutti::internal::test
