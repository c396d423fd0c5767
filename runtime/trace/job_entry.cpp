#include "runtime/trace/job_entry.hpp"

namespace tutti::internal {

std::string_view to_string(JobVerdict verdict) {
  switch (verdict) {
    case JobVerdict::Met: return "met";
    case JobVerdict::Missed: return "missed";
    case JobVerdict::Dropped: return "dropped";
    case JobVerdict::Failed: return "failed";
    case JobVerdict::Aborted: return "aborted";
    case JobVerdict::NeverRun: return "never_run";
    case JobVerdict::Skipped: return "skipped";
  }
  return "";
}

}  // namespace tutti::internal
