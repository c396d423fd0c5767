#include "apps/lab/fits/cheapest_cover.hpp"

#include <gtest/gtest.h>

#include "tests/support/random.hpp"

namespace tutti::internal {
namespace {

// One unit of x0 covers 1 of both needs, one of x1 covers 10 of the second. The needs are 3 and 40.
Eigen::VectorXd cover_at(double price0, double price1) {
  Eigen::MatrixXd A(2, 2);
  A << 1, 0, 1, 10;
  return cheapest_cover(A, Eigen::Vector2d(3, 40), Eigen::Vector2d(price0, price1));
}

// x0 = 3 for the first need leaves 37 of the second, which 3.7 of x1 cover at 1 each; 37 more of x0 would cost 37.
TEST(CheapestCover, TakesOfEachWhatIsCheapest) {
  const Eigen::VectorXd x = cover_at(1, 1);
  EXPECT_NEAR(x(0), 3, 1e-9);
  EXPECT_NEAR(x(1), 3.7, 1e-9);
}

// At a price of 50 for x1 it is cheaper to take 40 of x0.
TEST(CheapestCover, LeavesWhatIsDear) {
  const Eigen::VectorXd x = cover_at(1, 50);
  EXPECT_NEAR(x(0), 40, 1e-9);
  EXPECT_NEAR(x(1), 0, 1e-9);
}

TEST(CheapestCover, IsNothingWhereNothingIsNeeded) {
  const Eigen::MatrixXd A = Eigen::MatrixXd::Ones(2, 3);
  EXPECT_EQ(cheapest_cover(A, Eigen::Vector2d(0, -5), Eigen::Vector3d::Ones()), Eigen::VectorXd::Zero(3));
}

// Every need is covered. Nothing is cheaper: with y, the growth of the cover's price with each need, need' y is that
// price, and A' y <= price.
TEST(CheapestCover, CoversAtTheLeastPrice) {
  test::Random random(3);
  for (int trial = 0; trial < 300; ++trial) {
    const Eigen::Index rows = 1 + static_cast<Eigen::Index>(random.below(30)),
                       n = 1 + static_cast<Eigen::Index>(random.below(8));
    Eigen::MatrixXd A(rows, n);
    Eigen::VectorXd need(rows), price(n);
    for (Eigen::Index r = 0; r < rows; ++r) {
      for (Eigen::Index c = 0; c < n; ++c) A(r, c) = random.one_in(3) ? random.real(0, 1000) : 0;
      A(r, r % n) = random.real(0.1, 100);
      need(r) = random.real(-10, 1e5);
    }
    for (Eigen::Index c = 0; c < n; ++c) price(c) = random.real(0.01, 100);
    const Eigen::VectorXd x = cheapest_cover(A, need, price);
    ASSERT_GE(x.minCoeff(), 0);
    Eigen::VectorXd y = Eigen::VectorXd::Zero(rows);
    const double cost = price.dot(x);
    for (Eigen::Index r = 0; r < rows; ++r) {
      EXPECT_GE((A.row(r) * x)(0), need(r) - 1e-6 * std::max(1.0, need(r))) << trial;
      if (need(r) <= 0) continue;
      Eigen::VectorXd more = need;
      more(r) *= 1 + 1e-6;
      y(r) = (price.dot(cheapest_cover(A, more, price)) - cost) / (1e-6 * need(r));
    }
    EXPECT_NEAR(y.cwiseProduct(need.cwiseMax(0)).sum(), cost, 1e-3 * std::max(cost, 1.0)) << trial;
    for (Eigen::Index c = 0; c < n; ++c) EXPECT_LE(A.col(c).dot(y), price(c) * 1.001 + 1e-6) << trial;
  }
}

}  // namespace
}  // namespace tutti::internal
