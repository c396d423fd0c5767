#include "model/base/linear_algebra.hpp"

#include <Eigen/Cholesky>
#include <Eigen/Eigenvalues>

namespace tutti::internal {

Eigen::MatrixXd transposed_product(const Eigen::MatrixXd& A, const Eigen::MatrixXd& B) { return A.transpose() * B; }

NormalEquations normal_equations(const Eigen::MatrixXd& A, const Eigen::VectorXd& weights, const Eigen::VectorXd& b) {
  return {A.transpose() * weights.asDiagonal() * A, A.transpose() * weights.asDiagonal() * b};
}

Eigen::VectorXd solve_symmetric(const Eigen::MatrixXd& A, const Eigen::VectorXd& b) { return A.ldlt().solve(b); }
Eigen::Vector3d solve_symmetric(const Eigen::Matrix3d& A, const Eigen::Vector3d& b) { return A.ldlt().solve(b); }

std::optional<CholeskySolution> solve_definite(const Eigen::MatrixXd& A, const Eigen::VectorXd& b) {
  const Eigen::LLT<Eigen::MatrixXd> factor(A);
  if (factor.info() != Eigen::Success) return std::nullopt;
  const Eigen::VectorXd diagonal = factor.matrixLLT().diagonal();
  return CholeskySolution{factor.solve(b), diagonal.array().log().sum()};
}

Eigenpairs eigenpairs_of_square(const Eigen::MatrixXd& A) {
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(A.transpose() * A);
  return {solver.eigenvalues(), solver.eigenvectors()};
}

}  // namespace tutti::internal
