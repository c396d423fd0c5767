#pragma once
#include <string>

#include "apps/lab/learn/learn.hpp"
#include "apps/lab/reports/learn_output.hpp"

namespace tutti::internal {

/// What was learned; the files and the answer to a question are left open.
[[nodiscard]] LearnOutput learn_output(const RecordedTrace& trace, const LearnedTrace& learned);
/// The report of it.
[[nodiscard]] std::string learn_text(const LearnOutput& output);
/// The report of an answer to --scale, --gpus and --machine, without its verdict.
[[nodiscard]] std::string what_if_text(const WhatIfOutput& answer);

}  // namespace tutti::internal
