#include <algorithm>
#include <array>

#include "sched/analyses/np_edf_demand.hpp"
#include "sched/analyses/np_edf_jeffay.hpp"
#include "sched/analyses/np_edf_response_time.hpp"
#include "sched/analyses/np_fp_response_time.hpp"
#include "sched/analyses/utilization_check.hpp"
#include "sched/analysis.hpp"

namespace tutti {
namespace {

bool always(std::span<const TaskTiming>, Policy) { return true; }
bool under_edf(std::span<const TaskTiming>, Policy policy) { return policy == Policy::Edf; }
bool under_edf_in_one_part(std::span<const TaskTiming> tasks, Policy policy) {
  return policy == Policy::Edf &&
         std::ranges::none_of(tasks, [](const TaskTiming& task) { return task.parts.has_value(); });
}
bool under_fixed_priority(std::span<const TaskTiming>, Policy policy) { return policy != Policy::Edf; }

constexpr std::array kAnalyses{
    Analysis{kUtilizationCheck, Exactness::Necessary, always, utilization_check},
    Analysis{kNpEdfJeffay, Exactness::Exact, np_edf_jeffay_applies, np_edf_jeffay},
    Analysis{kNpEdfDemand, Exactness::Exact, under_edf, np_edf_demand},
    Analysis{kNpEdfResponseTime, Exactness::Exact, under_edf_in_one_part, np_edf_response_time},
    Analysis{kNpFpResponseTime, Exactness::Exact, under_fixed_priority, np_fp_response_time},
};

}  // namespace

std::span<const Analysis> analyses() { return kAnalyses; }

}  // namespace tutti
