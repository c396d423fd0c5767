#pragma once
#include <Eigen/Core>

namespace tutti::internal {

/// The x >= 0 with the least price' x such that A x >= need: a linear program, by the simplex method on its dual,
/// max need' y such that A' y <= price, y >= 0, from y = 0.
/// @param A      [rows, n] >= 0
/// @param need   [rows]; a row that needs nothing, or less, holds anyway
/// @param price  [n] > 0
/// @pre a row that needs something has an entry above 0
[[nodiscard]] Eigen::VectorXd cheapest_cover(const Eigen::MatrixXd& A, const Eigen::VectorXd& need,
                                             const Eigen::VectorXd& price);

}  // namespace tutti::internal
