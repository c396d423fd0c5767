#include "model/planners/all_at_once.hpp"

namespace tutti::internal {

void plan_all_at_once(BatchSimulation& loaded, Effort) { loaded.run_forward({}); }

}  // namespace tutti::internal
