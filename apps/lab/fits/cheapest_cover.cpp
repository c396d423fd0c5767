#include "apps/lab/fits/cheapest_cover.hpp"

#include <numeric>
#include <utility>
#include <vector>

#include "model/base/expects.hpp"

namespace tutti::internal {
namespace {

constexpr double kZero = 1e-11;

/// The dual of a cover: a value for each need, with a slack for each price. Prices and needs are scaled to 1.
class Tableau {
 public:
  Tableau(const Eigen::MatrixXd& A, const Eigen::VectorXd& need, const Eigen::VectorXd& price)
      : prices_(A.cols()), needs_((need.array() > 0).count()), outside_(index(needs_)), inside_(index(prices_)) {
    table_ = Eigen::MatrixXd::Zero(prices_ + 1, needs_ + 1);
    for (Eigen::Index row = 0, column = 0; row < A.rows(); ++row) {
      if (need(row) <= 0) continue;
      table_.col(column).head(prices_) = A.row(row).transpose().cwiseQuotient(price) / need(row);
      TUTTI_EXPECTS(table_.col(column++).head(prices_).maxCoeff() > 0, "something covers every need");
    }
    table_.col(needs_).head(prices_).setOnes();
    table_.row(prices_).head(needs_).setConstant(-1);
    std::iota(outside_.begin(), outside_.end(), prices_);
    std::iota(inside_.begin(), inside_.end(), 0);
  }

  /// The first column that improves the aim, or -1. Bland's rule (take the first) makes the steps end.
  [[nodiscard]] Eigen::Index entering() const {
    Eigen::Index entering = -1;
    for (Eigen::Index c = 0; c < needs_; ++c)
      if (table_(prices_, c) < -kZero && (entering < 0 || outside_[index(c)] < outside_[index(entering)])) entering = c;
    return entering;
  }

  /// The nearest row, and of equally near ones that of the first variable; -1: the column has only rounding noise.
  [[nodiscard]] Eigen::Index leaving(Eigen::Index column) const {
    Eigen::Index leaving = -1;
    double nearest = 0;
    for (Eigen::Index r = 0; r < prices_; ++r) {
      if (table_(r, column) <= kZero) continue;
      const double ratio = table_(r, needs_) / table_(r, column);
      const bool first = leaving < 0 || (ratio == nearest && inside_[index(r)] < inside_[index(leaving)]);
      if (!first && ratio >= nearest) continue;
      leaving = r;
      nearest = ratio;
    }
    return leaving;
  }

  void pivot(Eigen::Index row, Eigen::Index column) {
    const double by = table_(row, column);
    const Eigen::VectorXd factors = table_.col(column);
    table_.row(row) /= by;
    table_(row, column) = 1 / by;
    for (Eigen::Index r = 0; r <= prices_; ++r) {
      if (r == row || factors(r) == 0) continue;
      table_.row(r) -= factors(r) * table_.row(row);
      table_(r, column) = -factors(r) * table_(row, column);
    }
    std::swap(outside_[index(column)], inside_[index(row)]);
  }

  /// The reduced costs of the slacks: the cover, in units of 1 / price.
  [[nodiscard]] Eigen::VectorXd slack_costs() const {
    Eigen::VectorXd costs = Eigen::VectorXd::Zero(prices_);
    for (Eigen::Index c = 0; c < needs_; ++c)
      if (const Eigen::Index slack = outside_[index(c)]; slack < prices_)
        costs(slack) = std::max(table_(prices_, c), 0.0);
    return costs;
  }

 private:
  static std::size_t index(Eigen::Index i) { return static_cast<std::size_t>(i); }

  Eigen::Index prices_, needs_;
  // The names of the variables outside and inside the basis: 0 ... prices - 1 are the slacks.
  std::vector<Eigen::Index> outside_, inside_;
  // The coefficients of the variables outside the basis; the right side in the last column, the aim in the last row.
  Eigen::MatrixXd table_;
};

}  // namespace

/// Simplex method on the dual.
Eigen::VectorXd cheapest_cover(const Eigen::MatrixXd& A, const Eigen::VectorXd& need, const Eigen::VectorXd& price) {
  Tableau tableau(A, need, price);
  for (Eigen::Index column; (column = tableau.entering()) >= 0;) {
    const Eigen::Index row = tableau.leaving(column);
    if (row < 0) break;
    tableau.pivot(row, column);
  }
  return tableau.slack_costs().cwiseQuotient(price);
}

}  // namespace tutti::internal
