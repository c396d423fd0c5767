#include "model/planners/bandwidth_allocation.hpp"

namespace tutti::internal {

void plan_bandwidth_allocation(BatchSimulation& loaded, Effort) {
  loaded.run_forward({});  // the shares come with the loaded rate rule
}

}  // namespace tutti::internal
