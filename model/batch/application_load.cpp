#include "model/batch/application_load.hpp"

#include "model/base/expects.hpp"
#include "model/batch/fixed_shares.hpp"

namespace tutti::internal {

ApplicationLoad::ApplicationLoad(std::span<const Batch* const> batches) {
  TUTTI_EXPECTS(!batches.empty(), "an application has batches");
  Totals totals;
  totals.capacities.assign(batches.front()->machine().capacities(Basis::Nominal).size(), 0);
  for (const Batch* batch : batches) {
    add_load(batch->machine(), *batch, totals.capacities);
    totals.ports |= ports_of(*batch);
  }
  totals_ = std::make_shared<const Totals>(std::move(totals));
}

}  // namespace tutti::internal
