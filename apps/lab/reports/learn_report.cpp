#include "apps/lab/reports/learn_report.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "apps/lab/learn/learned_tasks.hpp"
#include "apps/table.hpp"
#include "apps/tutti/reports/report.hpp"

namespace tutti::internal {
namespace {

LearnedTaskOutput task_output(const LearnedTask& task) {
  LearnedTaskOutput output;
  output.name = task.name;
  output.release = task.release;
  output.jobs = task.jobs.size();
  output.skipped = task.skipped;
  output.incomplete = static_cast<std::uint64_t>(
      std::ranges::count_if(task.jobs, [](const auto& job) { return std::ranges::find(job, kMissing) != job.end(); }));
  output.period = Duration(task.period);
  output.jitter = Duration(task.jitter);
  output.offset = Duration(task.offset);
  output.length = Duration(task.length.usual);
  output.worst_length = Duration(task.length.worst);
  output.batches = task.operations.back().step + 1;
  for (const LearnedOperation& operation : task.operations) {
    ++(is_copy(operation.kind) ? output.copies : output.kernels);
    if (is_copy(operation.kind)) output.bytes.count += operation.bytes;
  }
  return output;
}

std::string percent_text(double share) { return fmt::format("{:.2f} %", 100 * share); }

std::string release_text(const LearnedTaskOutput& task) {
  return task.release == Release::ClosedLoop ? "when done" : "clock";
}

}  // namespace

LearnOutput learn_output(const RecordedTrace& trace, const LearnedTrace& learned) {
  LearnOutput output;
  output.source = trace.source;
  output.gpus = trace.gpus;
  output.processes = trace.processes;
  output.operations = learned.operations;
  output.unassigned = learned.unassigned;
  output.bytes = Bytes{static_cast<std::int64_t>(learned.bytes.all)};
  output.recognised_bytes = learned.bytes.share();
  output.kernel_time = Duration(static_cast<std::int64_t>(learned.kernel_time.all));
  output.recognised_kernel_time = learned.kernel_time.share();
  for (const LearnedTask& task : learned.tasks) output.tasks.push_back(task_output(task));
  output.seen = learned.machine.seen;
  output.guessed = learned.machine.guessed;
  output.guessed.emplace_back(kGuessedDeadlines);
  output.replay = {learned.replay.operations, learned.replay.median, learned.replay.most_of_95_percent,
                   learned.replay.largest};
  output.notes = learned.notes;
  return output;
}

std::string learn_text(const LearnOutput& output) {
  programs::Table table({"task", "starts", "jobs", "period ms", "jitter ms", "length ms", "worst", "batches", "copies",
                         "kernels", "bytes"});
  table.align_left(1);
  for (const LearnedTaskOutput& task : output.tasks)
    table.add({task.name, release_text(task), fmt::to_string(task.jobs), ms(task.period), ms(task.jitter),
               ms(task.length), ms(task.worst_length), fmt::to_string(task.batches), fmt::to_string(task.copies),
               fmt::to_string(task.kernels), to_string(task.bytes)});
  std::string text =
      fmt::format("{} tasks in {}: {} copies and kernels, {} GPUs, {} processes\n\n{}\n", output.tasks.size(),
                  output.source, output.operations, output.gpus, output.processes, table.text());
  text +=
      fmt::format("recognised: {} of {} copied bytes, {} of {} ms of kernels; {} copies and kernels are in no job\n",
                  percent_text(output.recognised_bytes), to_string(output.bytes),
                  percent_text(output.recognised_kernel_time), ms(output.kernel_time), output.unassigned);
  text += fmt::format(
      "replayed: half of {} ends within {}, 95 % within {}, all within {} of the time since the start of their job\n",
      output.replay.operations, percent_text(output.replay.median), percent_text(output.replay.most_of_95_percent),
      percent_text(output.replay.largest));
  for (const std::string& sentence : output.seen) text += fmt::format("seen: {}\n", sentence);
  for (const std::string& sentence : output.guessed) text += fmt::format("guess: {}\n", sentence);
  return text;
}

std::string what_if_text(const WhatIfOutput& answer) {
  std::string text = fmt::format("\ncopies {:.6g} times as large, on {} GPUs{}: {}\n", answer.scale, answer.gpus,
                                 answer.machine ? " of another machine" : "", answer.tasks);
  if (answer.largest_scale)
    text += fmt::format("largest with every deadline guaranteed: {:.6g} times the copies of the trace\n",
                        *answer.largest_scale);
  if (answer.no_largest_scale)
    text += fmt::format("largest with every deadline guaranteed: none; {}\n", *answer.no_largest_scale);
  if (answer.bottleneck)
    text += fmt::format("bottleneck: {}, for up to {} of the time\n", answer.bottleneck->name,
                        percent_text(answer.bottleneck->utilization));
  return text + "\n";
}

}  // namespace tutti::internal
