#pragma once
#include <Eigen/Core>

namespace tutti::internal {

/// The x inside [low, high] with the least x' A x / 2 - b' x.
///
/// Active sets: solve for the free variables, go towards the solution until a bound stops it, fix that variable there,
/// and free a variable whose bound holds it in the wrong direction, until there is none.
/// @param A  [n, n] symmetric and positive definite.
/// @pre low <= 0 <= high, entry by entry: the search starts at 0.
[[nodiscard]] Eigen::VectorXd bounded_least_squares(const Eigen::MatrixXd& A, const Eigen::VectorXd& b,
                                                    const Eigen::VectorXd& low, const Eigen::VectorXd& high);

}  // namespace tutti::internal
