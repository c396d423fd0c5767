#include "model/planners/static_allocation.hpp"

namespace tutti::internal {

void plan_static_allocation(BatchSimulation& loaded, Effort) {
  loaded.run_forward({});  // the shares come with the loaded rate rule
}

}  // namespace tutti::internal
