#include "model/batch/application_load.hpp"

#include "model/base/expects.hpp"
#include "model/batch/fixed_shares.hpp"

namespace tutti::internal {

ApplicationLoad::ApplicationLoad(std::span<const Batch* const> batches) {
  TUTTI_EXPECTS(!batches.empty(), "an application has batches");
  Totals totals;
  for (const Basis basis : {Basis::Nominal, Basis::Guaranteed}) {
    std::vector<double>& load = totals.capacities[static_cast<std::size_t>(basis)];
    load.assign(batches.front()->machine().capacities(basis).size(), 0);
    for (const Batch* batch : batches) add_load(batch->machine(), basis, *batch, load);
  }
  for (const Batch* batch : batches) totals.ports |= ports_of(*batch);
  totals_ = std::make_shared<const Totals>(std::move(totals));
}

}  // namespace tutti::internal
