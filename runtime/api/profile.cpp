#include "runtime/api/profile.hpp"

#include <algorithm>
#include <memory>

#include <fmt/format.h>

#include "model/base/quantile.hpp"
#include "runtime/api/handles.hpp"
#include "runtime/api/user_program.hpp"
#include "runtime/dispatch/kernel_profile.hpp"
#include "runtime/dispatch/partition_machines.hpp"
#include "runtime/host/text_of.hpp"
#include "runtime/host/today.hpp"
#include "sched/tasks/task_yaml.hpp"

namespace tutti {
namespace {

using internal::Handles;

constexpr Duration kLongest = std::chrono::hours{24 * 100};  // of a kernel

Expected<void> check_options(const ProfileOptions& options) {
  if (options.backend.kind == BackendKind::Simulated)
    return internal::invalid_input(
        "the simulated machine takes the times that are declared; kernels are measured on GPUs, so take that backend");
  if (options.repeats < 1) return internal::invalid_input("a kernel is measured once or more; give repeats above 0");
  if (!(options.margin >= 0 && options.margin <= 100))
    return internal::invalid_input("a margin is a share from 0 to 100; 0.1 is ten percent");
  return {};
}

KernelTimes times_of(const internal::TaskSet& set, const internal::MeasuredKernel& measured, double margin) {
  const internal::DeclaredTime declared = measured.declared(margin, internal::today());
  const auto median_of = [](const std::vector<double>& runs) { return internal::round_up_ns(internal::median(runs)); };
  KernelTimes times;
  times.task = set.tasks[declared.at.task].name;
  times.batch = declared.at.batch;
  times.stream = declared.at.stream;
  times.runs = measured.all().size();
  times.alone = median_of(measured.alone);
  if (!measured.beside_copies.empty()) times.beside_copies = median_of(measured.beside_copies);
  if (!measured.beside_kernels.empty()) times.beside_kernels = median_of(measured.beside_kernels);
  times.largest = internal::round_up_ns(internal::quantile(measured.all(), 1));
  times.time = declared.time;
  times.worst = declared.worst;
  times.remark = declared.remark;
  return times;
}

/// @errors InvalidInput: there is no such kernel, its time is above its worst.
Expected<std::vector<internal::DeclaredTime>> declared_in(const TaskSetSpec& spec,
                                                          const std::vector<KernelTimes>& times) {
  std::vector<internal::DeclaredTime> declared;
  for (const KernelTimes& one : times) {
    const auto task = std::ranges::find(spec.tasks, one.task, &TaskSpec::name);
    const internal::KernelPlace at{static_cast<std::size_t>(task - spec.tasks.begin()), one.batch, one.stream};
    if (!has_kernel(spec, at))
      return internal::invalid_input(fmt::format(
          "the set has no kernel in stream {} of batch {} of a task '{:.80}'; give times that were measured "
          "for this set",
          one.stream, one.batch, one.task));
    if (one.time < Duration{0} || one.time > one.worst || one.worst > kLongest)
      return internal::invalid_input(fmt::format(
          "a time of task '{}' is below 0 or above its worst, or that above 100 days; give 0 <= time <= worst",
          one.task));
    if (std::ranges::any_of(one.remark, [](unsigned char c) { return c < 0x20 || c == 0x7f; }))
      return internal::invalid_input(
          fmt::format("a remark of task '{}' has a control character; write it on one line", one.task));
    if (std::ranges::find(declared, at, &internal::DeclaredTime::at) != declared.end())
      return internal::invalid_input(fmt::format(
          "stream {} of batch {} of task '{}' is there twice; give each kernel once", one.stream, one.batch, one.task));
    declared.push_back({at, one.time, one.worst, one.remark});
  }
  return declared;
}

}  // namespace

Expected<std::vector<KernelTimes>> profile(const TaskSet& set, const Kernels& kernels, const TaskPrograms& programs,
                                           const ProfileOptions& options) {
  const auto& study = Handles::state(set);
  const auto& registry = Handles::state(kernels);
  if (!study) return internal::empty_handle("task set");
  if (!registry) return internal::empty_handle("kernel table");
  if (auto ok = check_options(options); !ok) return tl::unexpected(std::move(ok.error()));
  const internal::TaskSet& tasks = study->tasks;
  if (auto ok = internal::check_programs(tasks, programs); !ok) return tl::unexpected(std::move(ok.error()));
  internal::TakenRings rings;
  if (auto ok = rings.take(programs); !ok) return tl::unexpected(std::move(ok.error()));
  if (!tasks.machine)
    return internal::invalid_input("no task of the set has a batch, so there is nothing to measure; give one a job");
  const auto stack = internal::BackendStack::make(options.backend, *tasks.machine, *registry);
  if (!stack) return tl::unexpected(stack.error());
  std::atomic<bool> own_stop = false;
  std::atomic<bool>& stop = options.stop != nullptr ? *options.stop : own_stop;
  internal::CallbackGuard guard(stop);
  const internal::UserPrograms users(tasks, programs, options.seed, guard);
  const auto measured = profile_kernels(stack->executor(), tasks, users.table(), {options.repeats, false, &stop});
  if (guard.error()) return tl::unexpected(*guard.error());
  return measured.map([&](const std::vector<internal::MeasuredKernel>& kernels_measured) {
    std::vector<KernelTimes> times;
    for (const internal::MeasuredKernel& kernel : kernels_measured)
      times.push_back(times_of(tasks, kernel, options.margin));
    return times;
  });
}

Expected<TaskSet> with_times(const TaskSet& set, const std::vector<KernelTimes>& times) {
  const auto& study = Handles::state(set);
  if (!study) return internal::empty_handle("task set");
  return declared_in(study->spec, times)
      .and_then([&](const std::vector<internal::DeclaredTime>& declared) {
        return internal::TaskStudy::make(with_kernel_times(study->spec, declared), study->tasks.machine);
      })
      .map([](internal::TaskStudy&& changed) {
        return Handles::make<TaskSet>(std::make_shared<const internal::TaskStudy>(std::move(changed)));
      });
}

Expected<std::string> file_with_times(const std::string& path, const std::vector<KernelTimes>& times) {
  return internal::text_of(path).and_then([&](const std::string& text) {
    return internal::parse_task_spec(text, path)
        .and_then([&](const TaskSetSpec& spec) { return declared_in(spec, times); })
        .and_then([&](const std::vector<internal::DeclaredTime>& declared) {
          return internal::with_kernel_times(text, path, declared);
        });
  });
}

}  // namespace tutti
