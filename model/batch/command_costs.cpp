#include "model/batch/command_costs.hpp"

#include <algorithm>

namespace tutti::internal {

// Threads fill buffers while a copy of pageable memory goes on, as slowly as it does: beside others that takes longer,
// too.
CopyTimes copy_times(const SetupTimes& setup, Basis basis, const StreamWork& work, double copies) {
  const CopyCost& cost = setup.transfer.of(work.route);
  const double all = cost.ns(basis, work.bytes);
  if (!is_pageable(work.route)) return {copies * all, 0};
  const double each = as_ns(cost.each.at(basis));
  return {copies * each, (all - each) * (basis == Basis::Nominal ? kFillingWork : 1)};
}

double kernel_time(const SetupTimes& setup, Basis basis, const StreamWork& work) {
  return as_ns((work.gpu == kNone ? setup.host : setup.kernel).at(basis)) +
         (basis == Basis::Nominal ? work.kernel : work.kernel_worst);
}

double most_before_copy(const SetupTimes& setup, const StreamWork& work) {
  const double handover = as_ns(setup.handover.guaranteed);
  const double turn = std::max(as_ns(setup.turn.guaranteed), handover);  // the copy before it may be a staged one
  const double second = work.last_hop != kNone || work.by_kernel ? handover : 0;
  return as_ns(setup.gate.guaranteed) + as_ns(setup.transfer.of(work.route).first.guaranteed) + turn + second;
}

double most_before_kernel(const SetupTimes& setup, const StreamWork& work) {
  return as_ns(setup.gate.guaranteed) + (work.gpu == kNone ? 0 : as_ns(setup.handover.guaranteed));
}

}  // namespace tutti::internal
