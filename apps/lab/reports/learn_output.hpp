#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "apps/lab/learn/learned_task.hpp"
#include "apps/tutti/reports/capacity_output.hpp"
#include "apps/tutti/reports/verdict_output.hpp"

/// The output of `learn`.
namespace tutti::internal {

template <>
struct Words<Release> {
  static constexpr std::array values{Release::Periodic, Release::ClosedLoop};
};

struct LearnedTaskOutput {
  std::string name;
  Release release = Release::Periodic;
  std::uint64_t jobs = 0, skipped = 0, incomplete = 0;
  Duration period = {}, jitter = {}, offset = {}, length = {}, worst_length = {};
  std::uint64_t batches = 0, copies = 0, kernels = 0;
  Bytes bytes = {};
};
template <>
struct Record<LearnedTaskOutput> {
  static constexpr std::tuple fields{
      Field{"name", &LearnedTaskOutput::name}.means("name in the task file"),
      Field{"release", &LearnedTaskOutput::release}.means(
          "what starts its jobs: a clock, or the end of the job before"),
      Field{"jobs", &LearnedTaskOutput::jobs}.means("jobs in the trace"),
      Field{"skipped", &LearnedTaskOutput::skipped}.means("periods between two jobs that have none"),
      Field{"incomplete", &LearnedTaskOutput::incomplete}.means("jobs that lack a copy or a kernel in the trace"),
      Field{"period_ms", &LearnedTaskOutput::period}.means("distance of two arrivals; of a closed loop the usual one"),
      Field{"jitter_ms", &LearnedTaskOutput::jitter}.means("how late jobs start at most, against their period"),
      Field{"offset_ms", &LearnedTaskOutput::offset}.means("first arrival, from the first copy or kernel of the trace"),
      Field{"length_ms", &LearnedTaskOutput::length}.means("usual time of a job, from its first start to its last end"),
      Field{"worst_length_ms", &LearnedTaskOutput::worst_length}.means("longest time of a job"),
      Field{"batches", &LearnedTaskOutput::batches}.means("batches of a job, one after the other"),
      Field{"copies", &LearnedTaskOutput::copies}.means("copies of a job"),
      Field{"kernels", &LearnedTaskOutput::kernels}.means("kernels of a job, with copies inside a GPU"),
      Field{"copied_bytes", &LearnedTaskOutput::bytes}.means("bytes that a job copies from and to GPUs")};
};

struct ReplayOutput {
  std::uint64_t operations = 0;
  double median = 0, most_of_95_percent = 0, largest = 0;
};
template <>
struct Record<ReplayOutput> {
  static constexpr std::tuple fields{
      Field{"operations", &ReplayOutput::operations}.means("copies and kernels whose ends were predicted"),
      Field{"median_error", &ReplayOutput::median}.means(
          "median of |predicted - recorded end|, relative to the recorded time since the start of the job"),
      Field{"error_of_95_percent", &ReplayOutput::most_of_95_percent}.means("95 % are at or below it"),
      Field{"largest_error", &ReplayOutput::largest}.means("the largest one")};
};

/// The answer to --scale, --gpus and --machine.
struct WhatIfOutput {
  double scale = 1;
  std::uint64_t gpus = 0;
  std::optional<std::string> machine = {};
  std::string tasks = {};
  VerdictOutput verdict = {};
  std::optional<double> largest_scale = {};
  std::optional<std::string> no_largest_scale = {};
  std::optional<ResourceOutput> bottleneck = {};
};
template <>
struct Record<WhatIfOutput> {
  static constexpr std::tuple fields{
      Field{"scale", &WhatIfOutput::scale}.means("factor of all copies"),
      Field{"gpus", &WhatIfOutput::gpus}.means("number of GPUs that the work runs on"),
      Field{"machine", &WhatIfOutput::machine}.means("machine file of --machine; null: the learned machine"),
      Field{"tasks", &WhatIfOutput::tasks}.means("task file that was written for the question"),
      Field{"verdict", &WhatIfOutput::verdict}.means("the answer of 'check' for it"),
      Field{"largest_scale", &WhatIfOutput::largest_scale}.means(
          "largest factor of all copies with which every deadline is guaranteed, as 'capacity' finds it; null: none"),
      Field{"no_largest_scale", &WhatIfOutput::no_largest_scale}.means(
          "why there is none, in a sentence; null: there is one"),
      Field{"bottleneck", &WhatIfOutput::bottleneck}.means(
          "engine, GPU or cpu that is used most where jobs overlap; null: operations of the set cannot overlap")};
};

struct LearnOutput {
  SchemaVersion schema_version = {};
  std::string source = {};
  std::uint64_t gpus = 0, processes = 0, operations = 0, unassigned = 0;
  Bytes bytes = {};
  double recognised_bytes = 0;
  Duration kernel_time = {};
  double recognised_kernel_time = 0;
  std::vector<LearnedTaskOutput> tasks = {};
  std::vector<std::string> seen = {}, guessed = {};
  ReplayOutput replay = {};
  std::vector<std::string> notes = {};
  std::string machine_file = {}, tasks_file = {};
  std::optional<WhatIfOutput> what_if = {};
};
template <>
struct Record<LearnOutput> {
  static constexpr std::tuple fields{
      Field{"schema_version", &LearnOutput::schema_version}.means("version of these keys"),
      Field{"source", &LearnOutput::source}.means("format of the trace"),
      Field{"gpus", &LearnOutput::gpus}.means("GPUs of the trace"),
      Field{"processes", &LearnOutput::processes}.means("processes of the trace"),
      Field{"operations", &LearnOutput::operations}.means("copies and kernels of the trace"),
      Field{"unassigned", &LearnOutput::unassigned}.means("those that are in no job of a task"),
      Field{"copied_bytes", &LearnOutput::bytes}.means("bytes that were copied from and to GPUs"),
      Field{"recognised_bytes_share", &LearnOutput::recognised_bytes}.means("share of them in jobs of tasks"),
      Field{"kernel_ms", &LearnOutput::kernel_time}.means("time of all kernels, with copies inside a GPU"),
      Field{"recognised_kernel_share", &LearnOutput::recognised_kernel_time}.means("share of it in jobs of tasks"),
      Field{"tasks", &LearnOutput::tasks}.means("tasks, by their first job"),
      Field{"seen", &LearnOutput::seen}.means("rates that the trace shows, a sentence each"),
      Field{"guessed", &LearnOutput::guessed}.means(
          "what the machine file has and the trace does not show, a sentence each"),
      Field{"replay", &LearnOutput::replay}.means("how well the model predicts jobs that it was not fitted to: ten "
                                                  "times, nine tenths of the jobs predict the rest"),
      Field{"notes", &LearnOutput::notes}.means("what the trace has and the model does not, a sentence each"),
      Field{"machine_file", &LearnOutput::machine_file}.means("machine file that was written"),
      Field{"tasks_file", &LearnOutput::tasks_file}.means("task file that was written"),
      Field{"what_if", &LearnOutput::what_if}.means("answer to --scale, --gpus and --machine; null: none is given")};
};

}  // namespace tutti::internal
