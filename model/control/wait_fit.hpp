#pragma once
#include <optional>
#include <span>

#include "model/base/error.hpp"
#include "model/base/quantities.hpp"

namespace tutti::internal {

/// One measured reaction of a stream that waits for a word: the host enqueues a wait and a write, sleeps, stores the
/// word and takes the time until the write is seen.
struct WaitSample {
  Duration sleep{};  ///< dt, >= 0
  int streams = 1;   ///< N, streams that wait at the same time, >= 1
  Duration time{};   ///< WRT, > 0

  friend bool operator==(const WaitSample&, const WaitSample&) = default;
};

/// F(dt): a GPU that looks at the word once a period reacts the later the longer ago its next look is.
struct Sawtooth {
  double period_ns = 0;     ///< > 0
  double amplitude_ns = 0;  ///< from its lowest to its highest value, > 0
  double phase_ns = 0;      ///< dt at which a tooth starts, in [0, period)
  bool rises = false;       ///< F rises along a tooth and falls at its end; otherwise the other way

  /// F in [0, amplitude].
  [[nodiscard]] double at(double sleep_ns) const;
  friend bool operator==(const Sawtooth&, const Sawtooth&) = default;
};

/// WRT(dt, N) = WRT_min + F(dt) + a N.
struct WaitFit {
  double min_ns = 0;                 ///< WRT_min; with a N where `slope_ns` is absent
  std::optional<Sawtooth> sawtooth;  ///< absent where the times show none
  std::optional<double> slope_ns;    ///< a, for each stream; absent where all samples have one N
  double worst_ns = 0;               ///< the longest sample
  double noise_ns = 0;               ///< standard deviation of the samples around the fit, outliers apart

  [[nodiscard]] double at(double sleep_ns, int streams) const;
  friend bool operator==(const WaitFit&, const WaitFit&) = default;
};

/// Fits the reaction time of waits to samples.
///
/// Repetitions of one sleep and one number of streams count by their median. The slope is the median over pairs of
/// these with the same sleep. Then each sleep has one value, the median without the slope, and every period and phase
/// of a grid is tried with the line that fits best. The best three periods are refined on the medians of repetitions.
/// Far outliers are left out, and a residual counts no more than four times the noise. A sawtooth is reported only
/// where its amplitude is ten times its standard error, since so many shapes were tried, and at least a hundredth of
/// the median time.
/// @param samples  any order; periods from four times the distance of two sleeps to the range of all are found
/// @errors InvalidInput: fewer than 16 different sleeps, a sleep below 0, a time not above 0, N below 1.
/// @heuristic
/// @source [AGO17] wait reaction time (published for a K40m: period 12 us, a = 1 us)
[[nodiscard]] Expected<WaitFit> fit_wait(std::span<const WaitSample> samples);

}  // namespace tutti::internal
