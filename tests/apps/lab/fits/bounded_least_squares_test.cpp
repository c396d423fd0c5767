#include "apps/lab/fits/bounded_least_squares.hpp"

#include <gtest/gtest.h>

#include "tests/support/random.hpp"

namespace tutti::internal {
namespace {

// x^2 - 2x + y^2 - 6y is least at (1, 3); with y <= 2 at (1, 2).
TEST(BoundedLeastSquares, StopsAtABound) {
  const Eigen::MatrixXd A = 2 * Eigen::MatrixXd::Identity(2, 2);
  const Eigen::Vector2d b(2, 6);
  EXPECT_TRUE(bounded_least_squares(A, b, Eigen::Vector2d(-9, -9), Eigen::Vector2d(9, 9)).isApprox(b / 2));
  EXPECT_TRUE(
      bounded_least_squares(A, b, Eigen::Vector2d(-9, -9), Eigen::Vector2d(9, 2)).isApprox(Eigen::Vector2d(1, 2)));
}

// x^2 / 2 + x is least at -1; with x >= 0 at 0.
TEST(BoundedLeastSquares, StaysWhereItStartsAtABound) {
  const Eigen::VectorXd one = Eigen::VectorXd::Ones(1);
  EXPECT_EQ(bounded_least_squares(Eigen::MatrixXd::Identity(1, 1), -one, 0 * one, one)(0), 0);
}

// A bound that was in the way at first may have to be left again. At the solution no step that the bounds allow leads
// down: the gradient is 0 inside, and points outwards at a bound.
TEST(BoundedLeastSquares, NoAllowedStepLeadsFurtherDown) {
  test::Random random(7);
  for (int n = 1; n <= 12; ++n) {
    for (int trial = 0; trial < 50; ++trial) {
      Eigen::MatrixXd M(n + 2, n);
      Eigen::VectorXd b(n), low(n), high(n);
      for (Eigen::Index i = 0; i < n; ++i) {
        for (Eigen::Index j = 0; j < n + 2; ++j) M(j, i) = random.real(-1, 1);
        b(i) = random.real(-3, 3);
        low(i) = random.one_in(4) ? 0 : -random.real(0, 1);
        high(i) = random.one_in(4) ? 0 : random.real(0, 1);
      }
      const Eigen::MatrixXd A = M.transpose() * M + 1e-3 * Eigen::MatrixXd::Identity(n, n);
      const Eigen::VectorXd x = bounded_least_squares(A, b, low, high);
      const Eigen::VectorXd gradient = A * x - b;
      for (Eigen::Index i = 0; i < n; ++i) {
        ASSERT_GE(x(i), low(i));
        ASSERT_LE(x(i), high(i));
        EXPECT_TRUE(x(i) == low(i) || gradient(i) <= 1e-8);
        EXPECT_TRUE(x(i) == high(i) || gradient(i) >= -1e-8);
      }
    }
  }
}

}  // namespace
}  // namespace tutti::internal
