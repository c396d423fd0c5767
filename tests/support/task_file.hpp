#pragma once
#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "sched/tasks/task_yaml.hpp"
#include "tests/apps/temporary_folder.hpp"

namespace tutti::internal::test {

/// A task file from its text, in a folder that is gone afterwards. A refusal ends the test program.
/// @param machine  the text of `m.yaml` beside it; empty: there is none
inline TaskStudy make_study(const std::string& text, const std::string& machine = "",
                            const TaskFileOverrides& overrides = {}) {
  const wafer::TemporaryFolder folder;
  if (!machine.empty()) std::ofstream(folder.file("m.yaml")) << machine;
  std::ofstream(folder.file("t.yaml")) << text;
  auto file = load_study(folder.file("t.yaml"), overrides);
  if (!file) {
    ADD_FAILURE() << file.error().text();
    std::abort();
  }
  return *std::move(file);
}

}  // namespace tutti::internal::test
