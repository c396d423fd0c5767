#include "model/cheapest_cover.hpp"

#include <numeric>
#include <utility>
#include <vector>

#include "model/expects.hpp"

namespace tutti {

/// The table has the coefficients of what is not in the basis, the right side, and in the last row the aim. Scaled to
/// prices and needs of 1. Bland's rule, so that it ends: the first column that helps, and of rows that are equally near
/// the one of the first variable.
Eigen::VectorXd cheapest_cover(const Eigen::MatrixXd& A, const Eigen::VectorXd& need, const Eigen::VectorXd& price) {
  constexpr double kZero = 1e-11;
  const Eigen::Index n = A.cols();
  std::vector<Eigen::Index> columns;  // the rows that need something
  for (Eigen::Index row = 0; row < A.rows(); ++row)
    if (need(row) > 0) columns.push_back(row);
  const auto count = static_cast<Eigen::Index>(columns.size());
  Eigen::MatrixXd table = Eigen::MatrixXd::Zero(n + 1, count + 1);
  for (Eigen::Index c = 0; c < count; ++c) {
    const Eigen::Index row = columns[static_cast<std::size_t>(c)];
    table.col(c).head(n) = A.row(row).transpose().cwiseQuotient(price) / need(row);
    TUTTI_EXPECTS(table.col(c).head(n).maxCoeff() > 0, "something covers every need");
  }
  table.col(count).head(n).setOnes();
  table.row(n).head(count).setConstant(-1);
  std::vector<Eigen::Index> outside(static_cast<std::size_t>(count)), inside(static_cast<std::size_t>(n));
  std::iota(outside.begin(), outside.end(), n);  // 0 ... n - 1 are the slacks, whose reduced costs are x
  std::iota(inside.begin(), inside.end(), 0);
  for (;;) {
    const auto name_out = [&](Eigen::Index c) -> Eigen::Index& { return outside[static_cast<std::size_t>(c)]; };
    const auto name_in = [&](Eigen::Index r) -> Eigen::Index& { return inside[static_cast<std::size_t>(r)]; };
    Eigen::Index column = -1, pivot = -1;
    for (Eigen::Index c = 0; c < count; ++c)
      if (table(n, c) < -kZero && (column < 0 || name_out(c) < name_out(column))) column = c;
    if (column < 0) break;
    for (Eigen::Index r = 0; r < n; ++r) {
      if (table(r, column) <= kZero) continue;
      const double ratio = table(r, count) / table(r, column);
      const double best = pivot < 0 ? 0 : table(pivot, count) / table(pivot, column);
      if (pivot < 0 || ratio < best || (ratio == best && name_in(r) < name_in(pivot))) pivot = r;
    }
    if (pivot < 0) break;  // nothing but what rounding has left covers it
    const double by = table(pivot, column);
    const Eigen::VectorXd factors = table.col(column);
    table.row(pivot) /= by;
    table(pivot, column) = 1 / by;
    for (Eigen::Index r = 0; r <= n; ++r) {
      if (r == pivot || factors(r) == 0) continue;
      table.row(r) -= factors(r) * table.row(pivot);
      table(r, column) = -factors(r) * table(pivot, column);
    }
    std::swap(name_out(column), name_in(pivot));
  }
  Eigen::VectorXd x = Eigen::VectorXd::Zero(n);
  for (Eigen::Index c = 0; c < count; ++c)
    if (const Eigen::Index slack = outside[static_cast<std::size_t>(c)]; slack < n)
      x(slack) = std::max(table(n, c), 0.0) / price(slack);
  return x;
}

}  // namespace tutti
