#include "apps/lab/fits/bounded_least_squares.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "model/base/linear_algebra.hpp"

namespace tutti::internal {
namespace {

/// The solution for the free variables, the others staying as they are in x.
Eigen::VectorXd solve_free(const Eigen::MatrixXd& A, const Eigen::VectorXd& b, const Eigen::VectorXd& x,
                           const std::vector<Eigen::Index>& free) {
  const auto n = static_cast<Eigen::Index>(free.size());
  const Eigen::VectorXd gradient = A * x - b;
  Eigen::MatrixXd part(n, n);
  Eigen::VectorXd right(n);
  for (Eigen::Index i = 0; i < n; ++i) {
    right(i) = -gradient(free[static_cast<std::size_t>(i)]);
    for (Eigen::Index j = 0; j < n; ++j)
      part(i, j) = A(free[static_cast<std::size_t>(i)], free[static_cast<std::size_t>(j)]);
  }
  const Eigen::VectorXd step = solve_symmetric(part, right);
  Eigen::VectorXd result = x;
  for (Eigen::Index i = 0; i < n; ++i) result(free[static_cast<std::size_t>(i)]) += step(i);
  return result;
}

}  // namespace

Eigen::VectorXd bounded_least_squares(const Eigen::MatrixXd& A, const Eigen::VectorXd& b, const Eigen::VectorXd& low,
                                      const Eigen::VectorXd& high) {
  const Eigen::Index n = b.size();
  Eigen::VectorXd x = Eigen::VectorXd::Zero(n);
  std::vector<Eigen::Index> free;
  for (Eigen::Index i = 0; i < n; ++i) free.push_back(i);
  for (Eigen::Index round = 0; round < 10 * n + 10;
       ++round) {  // far more than ever needed; rounding could go in circles
    const Eigen::VectorXd target = solve_free(A, b, x, free);
    double reach = 1;
    Eigen::Index stopped = -1;
    for (const Eigen::Index i : free) {
      const double step = std::abs(target(i) - x(i));
      const double room = std::abs((target(i) > x(i) ? high(i) : low(i)) - x(i));
      if (step * reach <= room) continue;
      reach = room / step;
      stopped = i;
    }
    x += reach * (target - x);
    if (stopped >= 0) {
      x(stopped) = target(stopped) > x(stopped) ? high(stopped) : low(stopped);
      free.erase(std::find(free.begin(), free.end(), stopped));
      continue;
    }
    const Eigen::VectorXd gradient = A * x - b;
    Eigen::Index wrong = -1;
    double worst = 1e-12 * b.lpNorm<Eigen::Infinity>();
    for (Eigen::Index i = 0; i < n; ++i) {
      if (low(i) == high(i) || std::find(free.begin(), free.end(), i) != free.end()) continue;
      const double pull = x(i) == low(i) ? -gradient(i) : gradient(i);
      if (pull <= worst) continue;
      worst = pull;
      wrong = i;
    }
    if (wrong < 0) break;
    free.insert(std::lower_bound(free.begin(), free.end(), wrong), wrong);
  }
  return x;
}

}  // namespace tutti::internal
