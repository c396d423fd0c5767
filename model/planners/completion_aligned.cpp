#include "model/planners/completion_aligned.hpp"

namespace tutti {

void plan_completion_aligned(BatchSimulation& loaded) {
  loaded.run_backward();
  if (loaded.contended()) loaded.rerun_forward();
}

}  // namespace tutti
