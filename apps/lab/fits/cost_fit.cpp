#include "apps/lab/fits/cost_fit.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include <Eigen/Core>
#include <fmt/format.h>

#include "apps/lab/fits/bounded_least_squares.hpp"
#include "apps/lab/fits/cheapest_cover.hpp"
#include "apps/lab/fits/cost_batch.hpp"
#include "model/base/digits.hpp"
#include "model/base/expects.hpp"
#include "model/base/linear_algebra.hpp"
#include "model/base/quantile.hpp"
#include "model/batch/safe_bound.hpp"
#include "model/planners/planner.hpp"

namespace tutti::internal {
namespace {

constexpr int kRateDigits = 4;
constexpr double kDirt = 10;    // ns: costs are written in multiples of it
constexpr double kShort = 1e6;  // ns: longer queues show rates, which are guaranteed elsewhere

// ---- what is to be explained

bool is_copies(CostWork work) { return work < CostWork::Kernel; }
bool is_kernels(CostWork work) { return work == CostWork::Kernel || work == CostWork::LoneKernels; }

/// A sample, and its prediction by the machine without costs; ns.
struct Row {
  std::size_t sample = 0;
  CostWork work{};
  int in_a_row = 0;
  bool beside = false;
  bool idle = false;                                     ///< before
  bool is_slowest = false;                               ///< rows that lie as the slowest do: bounds alone count them
  double lanes = 0;                                      ///< others, that a GPU leads beside it
  double copies = 0;                                     ///< commands that cost as copies of its class do
  double kernels = 0;                                    ///< kernels or pieces of host work that follow each other
  double handovers = 0;                                  ///< of a GPU, between queues
  double turns = 0;                                      ///< copies with other ends than the one before
  double bytes = 0;                                      ///< of one copy
  double alone = 0, alone_guaranteed = 0;                ///< rates of their route
  double base = 0, bound = 0;                            ///< without costs: predicted, and at most
  double median = 0, usual = 0, worst = 0, allowed = 0;  ///< usual: of 9 in 10
};

Row row_of(const Topology& machine, const CostSample& sample, const CostBatch& batch, std::size_t position) {
  Row row;
  row.sample = position;
  row.work = sample.work;
  row.in_a_row = sample.in_a_row;
  row.beside = sample.beside.count > 0;
  row.idle = sample.idle.count() > 0;
  row.is_slowest = sample.row > Bytes{0} && is_across_lines(sample.row);
  row.lanes = sample.lanes;
  const Planner& at_once = *find_planner("all_at_once");
  const ExecutionPlan planned = plan(at_once, batch.batch);
  const LatestFinish latest = latest_finish(planned);
  for (std::size_t s = 0; s < batch.timed; ++s) {
    row.base = std::max(row.base, as_ns(planned.timeline.streams[s].end()));
    row.bound = std::max(row.bound, as_ns(latest.streams[s]));
  }
  const StreamWork& work = batch.batch.work().front();
  if (work.route_class != kNone) {
    const RouteClass& route_class = batch.batch.route_class(work.route_class);
    row.alone = route_class.alone.nominal.value;
    row.alone_guaranteed = route_class.alone.guaranteed.value;
    row.copies = sample.count;
    row.bytes = static_cast<double>(sample.bytes.count);
    if (sample.work == CostWork::Staged && sample.bytes.count > 0) {
      const Bytes chunk = machine.staging_chunk().count > 0 ? machine.staging_chunk() : sample.bytes;
      row.copies *= 1 + std::ceil(row.bytes / static_cast<double>(chunk.count));
      row.bytes = std::min(row.bytes, static_cast<double>(chunk.count));
    }
  }
  if (is_kernels(sample.work)) row.kernels = sample.count;
  if (sample.work == CostWork::PeerTurns && machine.gpus().size() > 2) row.turns = sample.count - 1;
  if (sample.work == CostWork::Kernel) row.handovers = 1;
  if (sample.work == CostWork::LoneKernels && sample.count > 1) row.handovers = sample.count;
  if (sample.work == CostWork::Host) row.kernels = 1;  // pieces of different streams overlap
  row.median = quantile(sample.ns, 0.5);
  row.usual = quantile(sample.ns, 0.9);
  row.worst = quantile(sample.ns, 1);
  row.allowed = allowed(sample.ns);
  return row;
}

// ---- nominal: least squares over medians

/// Inverse of the error that counts as 1: `kError` ns plus `kPart` of the measured time.
double weight_of(double measured) {
  constexpr double kError = 2000, kPart = 0.02;
  return 1 / (kError + kPart * measured);
}

/// Cost of a class's copies: t = opening + copies x (each + slower x bytes, where they are small, + more by size).
struct CopyFit {
  double opening = 0, each = 0, slower = 0;  ///< ns, ns, ns a byte
  double below = 0;                          ///< bytes
  double error = std::numeric_limits<double>::infinity();
  std::map<double, double> more = {};  ///< by bytes: ns that such a copy costs more than the smallest
};

/// What an error counts: above 1 linearly, not squared (Huber), so that a few outliers, such as copies over links that
/// slept, do not bend a fit.
double huber(double off) { return off <= 1 ? off * off : 2 * off - 1; }

/// Weighted least squares.
/// @param below  copies of fewer bytes have a rate of their own; 0: none do
CopyFit fit_copies(std::span<const Row* const> rows, double below) {
  constexpr double kMost = 1e12;
  constexpr int kRounds = 20;
  Eigen::MatrixXd terms(rows.size(), 3);
  Eigen::VectorXd values(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Row& row = *rows[i];
    const double weight = weight_of(row.median);
    const auto at = static_cast<Eigen::Index>(i);
    terms.row(at) << weight, weight * row.copies, row.bytes < below ? weight * row.copies * row.bytes : 0;
    values(at) = weight * (row.median - row.base);
  }
  Eigen::VectorXd scale = terms.colwise().norm();
  for (double& value : scale) value = value > 0 ? value : 1;
  for (Eigen::Index c = 0; c < 3; ++c) terms.col(c) /= scale(c);
  Eigen::VectorXd counts = Eigen::VectorXd::Ones(values.size());
  Eigen::VectorXd found, off;
  for (int round = 0; round < kRounds; ++round) {
    const Eigen::MatrixXd counted = counts.asDiagonal() * terms;
    const Eigen::MatrixXd square = transposed_product(terms, counted) + 1e-9 * Eigen::MatrixXd::Identity(3, 3);
    found = bounded_least_squares(square, counted.transpose() * values, Eigen::VectorXd::Zero(3),
                                  Eigen::VectorXd::Constant(3, kMost));
    off = (terms * found - values).cwiseAbs();
    counts = off.cwiseMax(1).cwiseInverse();
  }
  double error = 0;
  for (const double one : off) error += huber(one);
  return {found(0) / scale(0), found(1) / scale(1), found(2) / scale(2), below, error};
}

/// A copy by a kernel or by the host may be slower than an engine's at every size.
bool has_own_rate(CostWork work) {
  return work == CostWork::SmUp || work == CostWork::SmDown || work == CostWork::MappedUp ||
         work == CostWork::MappedDown;
}

/// Rising.
std::set<double> sizes_of(std::span<const Row* const> rows) {
  std::set<double> sizes;
  for (const Row* row : rows) sizes.insert(row->bytes);
  return sizes;
}

/// The best of finer fits, one for each of these sizes, where it explains a good part of the error; otherwise `plain`.
/// @param fit_at  size -> CopyFit
template <class Sizes, class FitAt>
CopyFit finer_fit(const CopyFit& plain, std::size_t rows, const Sizes& sizes, FitAt fit_at) {
  constexpr double kWorthIt = 0.7;
  constexpr double kNoise = 1e-3;  // error per row below which there is nothing to explain
  CopyFit best = plain;
  if (plain.error < kNoise * static_cast<double>(rows)) return best;
  for (const double size : sizes) {
    CopyFit fit = fit_at(size);
    if (fit.error < best.error && fit.error < kWorthIt * plain.error) best = std::move(fit);
  }
  return best;
}

/// Gives small copies a rate of their own only where it explains a good part of the error.
CopyFit fit_copies(std::span<const Row* const> rows) {
  std::set<double> sizes = sizes_of(rows);
  if (has_own_rate(rows.front()->work)) sizes.insert(static_cast<double>(kEverySize.count));
  const auto third = std::ranges::next(sizes.begin(), 2, sizes.end());
  return finer_fit(fit_copies(rows, 0), rows.size(), std::ranges::subrange(third, sizes.end()),
                   [&](double size) { return fit_copies(rows, size); });
}

/// Copies of pageable memory: small copies show the costs, and each larger size what it costs more.
CopyFit fit_by_size(std::span<const Row* const> rows) {
  std::map<double, std::vector<const Row*>> by_size;
  for (const Row* row : rows) by_size[row->bytes].push_back(row);
  CopyFit fit = fit_copies(by_size.begin()->second, 0);
  double most = 0;
  for (const auto& [size, of_size] : by_size) {
    if (size == by_size.begin()->first) continue;
    std::vector<double> extra;
    for (const Row* row : of_size) extra.push_back((row->median - row->base - fit.opening) / row->copies - fit.each);
    fit.more[size] = most = std::max(most, quantile(std::move(extra), 0.5));
  }
  return fit;
}

/// Kinds of copies of which a GPU led samples.
constexpr std::array kLedKinds{CopyKind::Up, CopyKind::Down, CopyKind::Peer};

Cost written(double nominal, double guaranteed) {
  const auto at = [](double ns) { return round_up_ns(std::ceil(std::max(ns, 0.0) / kDirt - 1e-6) * kDirt); };
  return {round_up_ns(std::round(std::max(nominal, 0.0) / kDirt) * kDirt), std::max(at(guaranteed), at(nominal))};
}

/// Cost of a copy beside its bytes at rate `alone`; includes the loss where small copies have a rate of their own.
double copy_ns(const CopyCost& cost, Basis basis, const Row& row, double alone) {
  const double start = cost.ns(basis, row.bytes);
  if (!cost.small || row.bytes >= static_cast<double>(cost.below.count)) return start;
  return start + std::max(0.0, row.bytes / cost.small->at(basis).value - row.bytes / alone);
}

/// State of one fit.
class Fitting {
 public:
  Fitting(const Topology& machine, const CostMeasurements& measured) : measured_(measured) {
    fit_.setup = machine.setup();
    for (std::size_t i = 0; i < measured.samples.size(); ++i) {
      const CostSample& sample = measured.samples[i];
      if (sample.ns.empty() || sample.against) continue;
      const auto batch = cost_batch(machine, sample);
      if (batch) {
        rows_.push_back(row_of(machine, sample, *batch, i));
      } else {
        fit_.left_out.push_back(fmt::format("costs of {}: {}", to_string(sample.work), batch.error().message));
      }
    }
    for (std::size_t i = 0; i < measured.led.size(); ++i)
      if (const auto batch = cost_batch(machine, measured.led[i]); batch && !measured.led[i].ns.empty())
        led_.push_back(row_of(machine, measured.led[i], *batch, i));
  }

  CostFit fit() {
    fit_nominal();
    fit_guaranteed();
    fit_conductor();
    for (const Row& row : rows_)
      fit_.residuals.push_back({row.sample, predicted(row), promised(row), row.median, row.worst});
    return std::move(fit_);
  }

 private:
  [[nodiscard]] SetupTimes& setup() { return fit_.setup; }
  [[nodiscard]] const SetupTimes& setup() const { return fit_.setup; }

  template <class Wanted>
  [[nodiscard]] std::vector<const Row*> rows(Wanted wanted) const {
    std::vector<const Row*> found;
    for (const Row& row : rows_)
      if (wanted(row)) found.push_back(&row);
    return found;
  }

  void fit_nominal() {
    fit_commands();
    find_carried();
    if (up().carried == SizeCost{}) return;
    fit_commands();  // without what is carried
    find_carried();
  }

  void fit_commands() {
    std::array<double, kCopyKinds.size()> openings{};
    for (const CopyKind route : kCopyKinds) {
      const auto of_class = rows([&](const Row& row) {
        return is_copies(row.work) && copy_kind(row.work) == route && row.turns == 0 && is_plain(row) &&
               !is_carried(row);
      });
      if (of_class.empty()) continue;
      CopyFit fit = is_pageable(route)  ? fit_by_size(of_class)
                    : is_of_rows(route) ? fit_copies(of_class, 0)
                                        : fit_copies(of_class);
      openings[static_cast<std::size_t>(route)] = fit.opening;
      CopyCost& cost = setup().transfer.of(route);
      cost.each = written(fit.each, fit.each);
      for (std::size_t i = 0; const auto& [size, ns] : fit.more)
        if (i < cost.sizes.size()) cost.sizes[i++] = {Bytes{static_cast<std::int64_t>(size)}, written(ns, ns)};
      const Row& row = *of_class.front();
      if (fit.below == 0 || fit.slower <= 0 || route == CopyKind::Staged) continue;
      cost.below = {static_cast<std::int64_t>(fit.below)};
      const double rate = to_digits(1 / (fit.slower + 1 / row.alone), kRateDigits);
      cost.small = Bandwidth{{rate}, {down_to_digits(rate * row.alone_guaranteed / row.alone, kRateDigits)}};
    }
    write_openings(openings, 0);
    const auto turns = [](const Row& row) { return row.turns; };
    setup().turn = written(each_of([](const Row& row) { return row.turns > 0 && is_plain(row); }, turns), 0);
    fit_kernels();
    write_openings(openings, opening_of(openings));
    const auto kernels = [](const Row& row) { return row.kernels; };
    setup().host =
        written(each_of([](const Row& row) { return row.work == CostWork::Host && is_plain(row); }, kernels), 0);
    const auto batches = [](const Row& row) { return static_cast<double>(row.in_a_row); };
    setup().dispatch = written(each_of([](const Row& row) { return row.in_a_row > 0; }, batches), 0);
  }

  /// Time of every batch before its first command: the least that was found. Staged copies count only where nothing
  /// else was found, since one takes so long.
  [[nodiscard]] double opening_of(const std::array<double, kCopyKinds.size()>& openings) const {
    std::vector<double> found, staged;
    for (const Row* row : rows([](const Row& r) { return is_plain(r); })) {
      const bool lone_kernel = row->work == CostWork::LoneKernels && row->kernels == 1;
      if (lone_kernel) found.push_back(std::max(row->median - row->base - as_ns(setup().kernel.nominal), 0.0));
      if (!is_copies(row->work)) continue;
      (row->work == CostWork::Staged ? staged : found)
          .push_back(openings[static_cast<std::size_t>(copy_kind(row->work))]);
    }
    if (found.empty()) found = std::move(staged);
    return found.empty() ? 0 : *std::min_element(found.begin(), found.end());
  }

  /// Up to some size the command of an engine carries the bytes of a lone copy to the GPU itself: there the time before
  /// the copy is less than half of `first`.
  void find_carried() {
    constexpr double kMostCarried = 4 << 10, kLess = 0.5;
    std::map<double, std::vector<double>> firsts;  // by bytes
    for (const Row* row : rows([](const Row& r) { return r.work == CostWork::Up && r.copies == 1 && is_plain(r); }))
      if (row->bytes < kMostCarried)
        firsts[row->bytes].push_back(row->median - predicted(*row) + up().first_ns(Basis::Nominal, row->bytes, true));
    double most = 0;
    for (auto& [bytes, found] : firsts) {
      most = std::max(most, quantile(std::move(found), 0.5));
      if (most >= kLess * as_ns(up().first.nominal)) return;
      up().carried = {Bytes{static_cast<std::int64_t>(bytes)}, written(most, 0).nominal};
    }
  }
  [[nodiscard]] bool is_carried(const Row& row) const {
    return row.work == CostWork::Up && row.copies == 1 && row.bytes <= static_cast<double>(up().carried.size.count);
  }
  [[nodiscard]] CopyCost& up() { return setup().transfer.of(CopyKind::Up); }
  [[nodiscard]] const CopyCost& up() const { return setup().transfer.of(CopyKind::Up); }

  /// Splits the time before the first copy of the classes' queues into the costs of gate, batch and class.
  void write_openings(const std::array<double, kCopyKinds.size()>& openings, double opening) {
    for (const CopyKind route : kCopyKinds)
      setup().transfer.of(route).first = written(openings[static_cast<std::size_t>(route)] - opening, 0);
    const double gate = std::min(median(measured_.gates), opening);
    setup().gate = written(gate, gate);
    setup().batch = written(opening - as_ns(setup().gate.nominal), 0);
  }

  /// Whether a row's batch ran alone, with links awake, and not in a row.
  [[nodiscard]] static bool is_plain(const Row& row) {
    return !row.beside && !row.idle && row.in_a_row == 0 && !row.is_slowest;
  }

  /// Cost of one of the things that `count` counts in a row, all other costs known.
  template <class Wanted, class Count>
  [[nodiscard]] double each_of(Wanted wanted, Count count) const {
    double counts = 0, missing = 0;
    for (const Row* row : rows(wanted)) {
      const double weight = std::pow(weight_of(row->median), 2) * count(*row);
      counts += weight * count(*row);
      missing += weight * (row->median - predicted(*row));
    }
    return counts > 0 ? missing / counts : 0;
  }

  /// Fits kernels behind copies, t = handover + count x kernel, all other costs known.
  void fit_kernels() {
    Eigen::Matrix2d square = 1e-12 * Eigen::Matrix2d::Identity();
    Eigen::Vector2d values = Eigen::Vector2d::Zero();
    for (const Row* row : rows([](const Row& r) { return r.work == CostWork::Kernel && is_plain(r); })) {
      const Eigen::Vector2d terms = weight_of(row->median) * Eigen::Vector2d(1, row->kernels);
      square += terms * terms.transpose();
      values += weight_of(row->median) * (row->median - predicted(*row)) * terms;
    }
    constexpr double kMost = 1e12;
    const Eigen::VectorXd found =
        bounded_least_squares(square, values, Eigen::Vector2d::Zero(), Eigen::Vector2d::Constant(kMost));
    setup().handover = written(found(0), 0);
    setup().kernel = written(found(1), 0);
  }

  /// A guaranteed cost: how many of it a row has, and what raises it.
  struct Raisable {
    std::function<double(const Row&)> count;
    std::function<void(double ns)> raise;
  };

  /// Raises costs until 9 repetitions of 10 are within each row's bound, with the least growth of all bounds together,
  /// each relative to its row's 90 % quantile. The excess of the tenth belongs to no command: the machine or the host
  /// is held up now and then, whatever runs, and not before every command.
  void fit_guaranteed() {
    for (const std::vector<double>& starts : {measured_.gates, measured_.gates_busy})
      if (!starts.empty()) raise(setup().gate, allowed(starts));
    const auto alone = rows([](const Row& row) {
      const bool is_one = row.copies == 1 && is_pageable(copy_kind(row.work));  // however long it is to get going
      return row.in_a_row == 0 && (row.base <= kShort || is_one);
    });
    const std::vector<Raisable> costs = raisable(alone);
    Eigen::MatrixXd counts(alone.size(), costs.size());
    Eigen::VectorXd missing(alone.size()), price = Eigen::VectorXd::Constant(counts.cols(), 1e-12);
    for (Eigen::Index r = 0; r < counts.rows(); ++r) {
      const Row& row = *alone[static_cast<std::size_t>(r)];
      missing(r) = row.usual - promised(row);
      for (Eigen::Index c = 0; c < counts.cols(); ++c)
        price(c) += (counts(r, c) = costs[static_cast<std::size_t>(c)].count(row)) / row.usual;
    }
    const Eigen::VectorXd more = cheapest_cover(counts, missing, price);
    for (Eigen::Index c = 0; c < counts.cols(); ++c)
      if (more(c) > 0) costs[static_cast<std::size_t>(c)].raise(more(c));
    for (const CopyKind route : kCopyKinds) {  // a longer copy never costs less
      Duration most{};
      for (SizeCost& size : setup().transfer.of(route).sizes)
        if (size.size > Bytes{0}) most = size.more.guaranteed = std::max(size.more.guaranteed, most);
    }
    const auto in_a_row = rows([](const Row& row) { return row.in_a_row > 0; });
    for (const Row* row : in_a_row) raise(setup().dispatch, *row, row->in_a_row, row->usual);
    if (!measured_.pauses.empty()) raise(setup().job, quantile(measured_.pauses, 1));
    const auto is_host = [](const Row* row) { return row->work == CostWork::Host; };
    for (const auto& some : {alone, in_a_row})
      for (const Row* row : some)
        if (!is_host(row)) raise(setup().job, *row, 1, row->allowed);
    for (const Row* row : alone)  // the system's scheduler delays host work, for which nothing else waits
      if (is_host(row)) raise(setup().host, *row, row->kernels, row->allowed);
  }

  /// What a batch that a GPU leads takes above its own time, which `job` of the host is no part of.
  void fit_conductor() {
    if (led_.empty()) return;
    std::vector<double> medians;
    for (const Row& row : led_)
      if (row.lanes == 0) medians.push_back(beyond(row));
    const double usual = medians.empty() ? 0 : quantile(std::move(medians), 0.5);
    const CopyCosts by_host = setup().transfer;
    for (const CopyKind kind : kLedKinds) fit_led_first(kind, usual);
    const bool are_visits_known = !measured_.bursts.empty() && measured_.visits > 0;
    double most_usual = 0;
    for (const Row& row : led_)
      if (row.lanes == 0 || !are_visits_known) most_usual = std::max(most_usual, row.usual - own(row));
    setup().conductor = written(usual, most_usual);
    if (are_visits_known) fit_lanes();
    fit_hold_ups();
    fit_hold_ups_in_a_row();
    if (are_visits_known) {
      const auto share = [&](double q) { return quantile(measured_.bursts, q) / measured_.visits; };
      setup().conductor_visit = written(share(0.5), share(0.9));
      raise(*setup().conductor_job, (share(1) - share(0.9)) * measured_.visits);
    }
    for (const CopyKind kind : kLedKinds) {
      CopyCost& cost = setup().transfer.of(kind);
      cost.led_first = std::exchange(cost.first, by_host.of(kind).first);
    }
  }

  /// A GPU keeps links awake and knows no pauses of the host, so the first copy of an engine queue takes no longer than
  /// what is usual there asks for. @param conductor  ns of it, usually
  void fit_led_first(CopyKind kind, double conductor) {
    Cost& first = setup().transfer.of(kind).first;
    double least = as_ns(first.nominal);
    for (const Row& row : led_)
      if (row.lanes == 0 && row.copies > 0 && copy_kind(row.work) == kind)
        least = std::max(least, row.usual - own(row) - conductor + as_ns(first.guaranteed));
    first = written(as_ns(first.nominal), std::min(least, as_ns(first.guaranteed)));
  }

  /// What each lane that waits beside a batch adds to it.
  void fit_lanes() {
    double most = 0;
    std::vector<double> medians;
    for (const Row& row : led_) {
      if (row.lanes == 0) continue;
      medians.push_back((beyond(row) - as_ns(setup().conductor->nominal)) / row.lanes);
      most = std::max(most, (row.usual - own(row) - as_ns(setup().conductor->guaranteed)) / row.lanes);
    }
    if (!medians.empty()) setup().conductor_lane = written(quantile(std::move(medians), 0.5), most);
  }

  /// How long a GPU is held up once a job; where copies between GPUs exceed that, they wake links.
  void fit_hold_ups() {
    double most = 0, most_of_peers = 0;
    for (const Row& row : led_) {
      double& most_of_kind = row.copies > 0 && copy_kind(row.work) == CopyKind::Peer ? most_of_peers : most;
      most_of_kind = std::max(most_of_kind, row.allowed - usually_led(row));
    }
    setup().conductor_job = written(0, most);
    Cost& first = setup().transfer.of(CopyKind::Peer).first;
    if (most_of_peers > most) raise(first, as_ns(first.guaranteed) + most_of_peers - most);
  }

  /// How long it is held up by jobs in a row together: the largest sum of what each takes beyond what is usual, over as
  /// many jobs in a row as make it largest, with the allowance for longer observation of one.
  void fit_hold_ups_in_a_row() {
    double most = as_ns(setup().conductor_job->guaranteed);
    for (const Row& row : led_) {
      const double usual = usually_led(row);
      double sum = 0, largest = 0;
      for (const double ns : measured_.led[row.sample].ns) {
        sum = std::max(0.0, sum + ns - usual);
        largest = std::max(largest, sum);
      }
      most = std::max(most, largest + row.allowed - row.worst);
    }
    setup().conductor_jobs = written(0, most);
  }

  /// ns that are promised of a batch that a GPU leads, without hold-ups.
  [[nodiscard]] double usually_led(const Row& row) const {
    const double lanes = setup().conductor_lane ? row.lanes * as_ns(setup().conductor_lane->guaranteed) : 0;
    return own(row) + as_ns(setup().conductor->guaranteed) + lanes;
  }
  /// ns that are promised without a conductor and without hold-ups.
  [[nodiscard]] double own(const Row& row) const { return promised(row) - as_ns(setup().job.guaranteed); }
  /// ns that the median of what a GPU leads is beyond the prediction.
  [[nodiscard]] double beyond(const Row& row) const { return row.median - predicted(row) + as_ns(setup().job.nominal); }

  [[nodiscard]] std::vector<Raisable> raisable(const std::vector<const Row*>& alone) {
    SetupTimes& costs = setup();
    std::vector<Raisable> found;
    const auto add = [&](Cost& cost, std::function<double(const Row&)> count) {
      found.push_back({std::move(count), [&cost](double ns) { raise(cost, as_ns(cost.guaranteed) + ns); }});
    };
    add(costs.batch, [](const Row&) { return 1; });
    add(costs.kernel, [](const Row& row) { return is_kernels(row.work) ? row.kernels : 0; });
    add(costs.host, [](const Row& row) { return row.work == CostWork::Host ? row.kernels : 0; });
    add(costs.handover, [](const Row& row) { return row.handovers; });
    add(costs.turn, [](const Row& row) { return row.turns; });
    for (const CopyKind route : kCopyKinds) {
      const auto is_of_class = [route](const Row& row) { return row.copies > 0 && copy_kind(row.work) == route; };
      CopyCost& cost = costs.transfer.of(route);
      add(cost.first, [=](const Row& row) { return is_of_class(row) ? 1 : 0; });
      add(cost.each, [=](const Row& row) { return is_of_class(row) ? row.copies : 0; });
      for (SizeCost& size : cost.sizes)
        if (size.size > Bytes{0})
          add(size.more, [=, bytes = static_cast<double>(size.size.count)](const Row& row) {
            return is_of_class(row) && row.bytes == bytes ? row.copies : 0;
          });
      add_small(cost, route, alone, found);
    }
    return found;
  }

  /// The guaranteed rate of small copies: of all up to the longest that are fitted, where no others are known. A copy
  /// that shares its route with others has that rate anyway.
  void add_small(CopyCost& cost, CopyKind route, const std::vector<const Row*>& alone, std::vector<Raisable>& found) {
    const auto is_of_class = [route](const Row& row) {
      return !row.beside && is_copies(row.work) && copy_kind(row.work) == route;
    };
    const auto first = std::find_if(alone.begin(), alone.end(), [&](const Row* row) { return is_of_class(*row); });
    if (first == alone.end() || route == CopyKind::Staged || is_of_rows(route) || is_pageable(route)) return;
    double below = static_cast<double>((has_own_rate((*first)->work) ? kEverySize : cost.below).count);
    for (const Row* row : alone)
      if (!cost.small && is_of_class(*row)) below = std::max(below, 4 * row->bytes);
    const double rate = (*first)->alone, least = (*first)->alone_guaranteed;
    found.push_back({[=](const Row& row) { return is_of_class(row) && row.bytes < below ? row.copies * row.bytes : 0; },
                     [=, &cost](double slower) {
                       if (!cost.small) cost.small = Bandwidth{{rate}, {least}};
                       cost.below = {static_cast<std::int64_t>(below)};
                       const double before = cost.small->guaranteed.value;
                       cost.small->guaranteed = {
                           down_to_digits(1 / (1 / std::min(before, least) + slower), kRateDigits)};
                     }});
  }

  /// Raises a cost that a row has `count` times, until the row's bound is `wanted`.
  void raise(Cost& cost, const Row& row, double count, double wanted) const {
    const double missing = wanted - promised(row);
    if (missing > 0) raise(cost, as_ns(cost.guaranteed) + missing / count);
  }
  static void raise(Cost& cost, double guaranteed) {
    cost.guaranteed = std::max(cost.guaranteed, written(0, guaranteed).guaranteed);
  }

  [[nodiscard]] double predicted(const Row& row) const { return with_costs(row, Basis::Nominal, row.base, row.alone); }
  [[nodiscard]] double promised(const Row& row) const {
    return with_costs(row, Basis::Guaranteed, row.bound, row.alone_guaranteed);
  }
  [[nodiscard]] double with_costs(const Row& row, Basis basis, double length, double alone) const {
    const Cost& kernel = row.work == CostWork::Host ? setup().host : setup().kernel;
    // Kernels without copies are queues of their own: each has a gate, and keeps its GPU from the others meanwhile.
    const bool lone = row.work == CostWork::LoneKernels;
    const double gates = lone ? row.kernels : 1, part = lone && basis == Basis::Nominal ? 0.5 : 1;
    double ns = length + as_ns(setup().batch.at(basis)) + gates * as_ns(setup().gate.at(basis)) +
                row.kernels * as_ns(kernel.at(basis)) + part * row.handovers * as_ns(setup().handover.at(basis)) +
                row.turns * as_ns(setup().turn.at(basis));
    if (row.copies > 0) {
      const CopyCost& cost = setup().transfer.of(copy_kind(row.work));
      ns += cost.first_ns(basis, row.bytes, row.copies == 1) + row.copies * copy_ns(cost, basis, row, alone);
    }
    if (row.in_a_row > 0) ns = row.in_a_row * (ns + as_ns(setup().dispatch.at(basis)));
    return ns + as_ns(setup().job.at(basis));
  }

  const CostMeasurements& measured_;
  std::vector<Row> rows_;
  std::vector<Row> led_;  // of batches that a GPU led
  CostFit fit_;
};

}  // namespace

CostFit fit_costs(const Topology& machine, const CostMeasurements& measured) {
  const auto& classes = machine.setup().transfer.classes;
  SetupTimes sharing;
  for (std::size_t i = 0; i < classes.size(); ++i) {
    CopyCost& cost = sharing.transfer.classes[i];
    const auto sharing_of = [](auto& of) { return std::tie(of.gap, of.weight, of.load, of.small, of.below); };
    sharing_of(cost) = sharing_of(classes[i]);
  }
  TUTTI_EXPECTS(machine.setup() == sharing, "costs are found on a machine without any");
  return Fitting(machine, measured).fit();
}

double allowed(std::vector<double> repetitions) {
  std::sort(repetitions.begin(), repetitions.end());
  const double worst = repetitions.empty() ? 0 : repetitions.back();
  return 2 * worst - quantile(std::move(repetitions), 0.99);
}

}  // namespace tutti::internal
