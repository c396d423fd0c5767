#pragma once
#include <optional>

#include <Eigen/Core>

namespace tutti::internal {

// Products and decompositions of Eigen behind plain functions. A compiler takes longer for them than for all that asks,
// so they are instantiated in one source, and others include no more than Eigen/Core.

/// A' B
[[nodiscard]] Eigen::MatrixXd transposed_product(const Eigen::MatrixXd& A, const Eigen::MatrixXd& B);

/// Normal equations of a weighted linear least-squares problem: (A' W A) x = A' W b with W = diag(weights).
struct NormalEquations {
  Eigen::MatrixXd square;
  Eigen::VectorXd right;
};
[[nodiscard]] NormalEquations normal_equations(const Eigen::MatrixXd& A, const Eigen::VectorXd& weights,
                                               const Eigen::VectorXd& b);

/// The x with A x = b. @param A  symmetric, semidefinite
[[nodiscard]] Eigen::VectorXd solve_symmetric(const Eigen::MatrixXd& A, const Eigen::VectorXd& b);
[[nodiscard]] Eigen::Vector3d solve_symmetric(const Eigen::Matrix3d& A, const Eigen::Vector3d& b);

/// The x with A x = b, and log det(A) / 2.
struct CholeskySolution {
  Eigen::VectorXd x;
  double half_log_determinant;
};
/// @return  nothing where A is not positive definite, as rounding may have it.
[[nodiscard]] std::optional<CholeskySolution> solve_definite(const Eigen::MatrixXd& A, const Eigen::VectorXd& b);

/// Eigenvalues, ascending, and eigenvectors, one a column.
struct Eigenpairs {
  Eigen::VectorXd values;
  Eigen::MatrixXd vectors;
};
/// Those of A' A.
[[nodiscard]] Eigenpairs eigenpairs_of_square(const Eigen::MatrixXd& A);

}  // namespace tutti::internal
