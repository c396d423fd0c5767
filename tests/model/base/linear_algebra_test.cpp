#include "model/base/linear_algebra.hpp"

#include <cmath>

#include <gtest/gtest.h>

#include "tests/support/random.hpp"

namespace tutti::internal {
namespace {

Eigen::MatrixXd random_matrix(test::Random& random, int rows, int columns) {
  Eigen::MatrixXd A(rows, columns);
  for (int r = 0; r < rows; ++r)
    for (int c = 0; c < columns; ++c) A(r, c) = random.real(-1, 1);
  return A;
}

// By the definition: A' A v = value v, vectors of length 1 at right angles. Fewer rows than columns leave values of 0.
TEST(LinearAlgebra, EigenpairsAreThoseOfTheSquare) {
  test::Random random(1);
  for (int round = 0; round < 100; ++round) {
    const int columns = random.between(1, 20);
    const Eigen::MatrixXd A = random_matrix(random, random.between(1, 30), columns);
    const auto [values, vectors] = eigenpairs_of_square(A);
    const Eigen::MatrixXd error = A.transpose() * (A * vectors) - vectors * values.asDiagonal();
    EXPECT_LT(error.cwiseAbs().maxCoeff(), 1e-12);
    const Eigen::MatrixXd skew = vectors.transpose() * vectors - Eigen::MatrixXd::Identity(columns, columns);
    EXPECT_LT(skew.cwiseAbs().maxCoeff(), 1e-13);
    for (int i = 1; i < columns; ++i) EXPECT_LE(values(i - 1), values(i));
  }
}

// A = L L' of L = ((2, 0), (1, 3)): det A = 36, and A (1, -1) = (4 - 2, 2 - 10).
TEST(LinearAlgebra, SolvesDefiniteSystems) {
  Eigen::MatrixXd A(2, 2);
  A << 4, 2, 2, 10;
  const Eigen::VectorXd b = Eigen::Vector2d(2, -8), x = Eigen::Vector2d(1, -1);
  const auto solved = solve_definite(A, b);
  ASSERT_TRUE(solved.has_value());
  EXPECT_LT((solved->x - x).norm(), 1e-15);
  EXPECT_DOUBLE_EQ(solved->half_log_determinant, std::log(6.0));
  EXPECT_LT((solve_symmetric(A, b) - x).norm(), 1e-15);
  A(1, 1) = 0;
  EXPECT_FALSE(solve_definite(A, b).has_value());
}

// Rows (1, 2) and (3, 4) with weights 2 and 1, b = (1, 1): 2 + 9, 4 + 12, 8 + 16; 2 + 3, 4 + 4.
TEST(LinearAlgebra, NormalEquationsCountRowsByTheirWeights) {
  Eigen::MatrixXd A(2, 2);
  A << 1, 2, 3, 4;
  const auto [square, right] = normal_equations(A, Eigen::Vector2d(2, 1), Eigen::Vector2d(1, 1));
  EXPECT_EQ(square, (Eigen::Matrix2d() << 11, 16, 16, 24).finished());
  EXPECT_EQ(right, Eigen::Vector2d(5, 8));
  EXPECT_EQ(transposed_product(A, A), (Eigen::Matrix2d() << 10, 14, 14, 20).finished());
}

}  // namespace
}  // namespace tutti::internal
