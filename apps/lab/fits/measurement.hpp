#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/base/units.hpp"
#include "model/machine/copy_route.hpp"
#include "model/machine/costs.hpp"
#include "model/machine/measured_table.hpp"

namespace tutti::internal {

/// The steady rates of one combination of streams, measured once.
struct MeasuredRates {
  PortSet streams;
  std::vector<double> rates;  ///< [streams] GB/s
  std::string place;          ///< where it stands in its file
};

/// One batch whose streams all started at once.
struct MeasuredBatch {
  struct Stream {
    CopyPort stream;
    double bytes = 0;      ///< > 0
    double finish_ns = 0;  ///< from the common start; > 0
  };
  std::vector<Stream> streams;  ///< each at most once
  std::string place;
};

/// The steady rates of copies that are not all between the first memory and a GPU, measured once.
struct MeasuredRoutes {
  CopyRouteSet copy_routes;
  std::vector<double> rates;  ///< [copy_routes] GB/s
  std::string place;          ///< where it stands in its file
};

/// Kind of the commands in a cost sample.
enum class CostWork : std::uint8_t {
  Up,            ///< copies from the first memory to a GPU
  Down,          ///< copies back
  Peer,          ///< copies to one other GPU
  PeerTurns,     ///< copies to the other GPUs in turn
  Staged,        ///< copies to another GPU through the first memory
  PageableUp,    ///< copies from the first pageable memory to a GPU
  PageableDown,  ///< copies back
  SmUp,          ///< as `Up`, by kernels
  SmDown,        ///< copies back, by kernels
  InlineUp,      ///< as `Up`, as arguments of kernels
  MappedUp,      ///< as `Up`, by stores of the host
  MappedDown,    ///< copies back, by loads of the host
  RowsUp,        ///< as `Up`, of rows that lie apart
  RowsDown,      ///< copies back, to rows that lie apart
  Kernel,        ///< kernels behind each other and behind as many copies to their GPU
  LoneKernels,   ///< kernels without copies, each a stream of its own
  Host,          ///< pieces of host work
};
inline constexpr std::array kCostWorks{
    CostWork::Up,          CostWork::Down,         CostWork::Peer,   CostWork::PeerTurns, CostWork::Staged,
    CostWork::PageableUp,  CostWork::PageableDown, CostWork::SmUp,   CostWork::SmDown,    CostWork::InlineUp,
    CostWork::MappedUp,    CostWork::MappedDown,   CostWork::RowsUp, CostWork::RowsDown,  CostWork::Kernel,
    CostWork::LoneKernels, CostWork::Host};

/// "up", "down", "peer", "peer_turns", "staged", "pageable_up", "pageable_down", "sm_up", "sm_down", "inline_up",
/// "mapped_up", "mapped_down", "rows_up", "rows_down", "kernel", "lone_kernels", "host".
[[nodiscard]] std::string_view to_string(CostWork work);

/// The class of a work's copies; `Up` where it has none of its own.
[[nodiscard]] CopyKind copy_kind(CostWork work);

/// A batch that was run repeatedly to measure the costs of its commands: one engine queue of equal commands.
struct CostSample {
  CostWork work = CostWork::Up;
  std::uint32_t gpu = 0;  ///< position; of copies between GPUs, the source
  int count = 1;          ///< commands
  Bytes bytes;            ///< of each copy
  Duration time{};        ///< of each kernel or piece of host work
  Bytes beside;           ///< of the copies that run on all other engines meanwhile; 0: none do
  int in_a_row = 0;  ///< number of such batches in one job, timed from its start until the program has seen its end;
                     ///< 0: one batch, timed from its start to the end of its queue
  std::vector<double> ns = {};           ///< [repetitions]
  Duration idle{};                       ///< time without work before: links sleep then; 0: a moment
  Bytes row{};                           ///< of copies of rows, the length of each; there are `bytes` / `row`
  std::optional<CostWork> against = {};  ///< one copy of this class on the same GPU, of `beside` bytes, is all that
                                         ///< runs meanwhile
  int lanes = 0;                         ///< of a batch that a GPU leads: further lanes of the GPU that run it in turn
  bool on_all = false;                   ///< every GPU does the same at once, each with its own commands

  friend bool operator==(const CostSample&, const CostSample&) = default;
};

/// Measurements of the costs of commands.
struct CostMeasurements {
  std::vector<CostSample> samples;
  std::vector<double> gates;         ///< ns from a gate's planned instant to the start behind it, nothing else active
  std::vector<double> gates_busy;    ///< as `gates`, while large copies run in both directions
  std::vector<double> gates_loaded;  ///< as `gates_busy`, with all cores of the host busy too; empty: not measured
  std::vector<double> pauses;        ///< ns for which the host took the processor from a thread
  /// Batches that a GPU led, timed from when a job could start until its conductor had seen the end; empty: not
  /// measured.
  std::vector<CostSample> led = {};
  std::vector<double> bursts = {};  ///< ns from when many jobs arrived, which overlap, until a GPU's conductor had
                                    ///< begun one on each engine, last
  int visits = 0;                   ///< of the conductor in each of these

  friend bool operator==(const CostMeasurements&, const CostMeasurements&) = default;
};

/// All measurements of one host.
struct Measurements {
  std::string host;   ///< in the words of the file
  std::string date;   ///< in the words of the file; empty where it does not say
  std::string sizes;  ///< in the words of the file; empty where it does not say
  std::vector<MeasuredRates> rates;
  std::vector<MeasuredBatch> batches;
  std::vector<MeasuredRoutes> copy_routes;  ///< further memories, and between GPUs
  std::vector<int> copy_engines;            ///< [GPUs] how many were seen to work at once; empty: not measured
  CostMeasurements costs;
  std::vector<std::string> left_out;  ///< a sentence for everything in the file that could not be read

  /// One more than the highest GPU position.
  [[nodiscard]] std::size_t gpus() const;
};

/// The measurements of one combination, merged.
struct Combination {
  PortSet streams;
  std::vector<double> rates;   ///< medians
  std::vector<double> lowest;  ///< of all repetitions
  int repetitions = 0;
};

/// A `Combination` of copies of all kinds.
struct RouteCombination {
  CopyRouteSet copy_routes;    ///< rising
  std::vector<double> rates;   ///< [copy_routes] medians
  std::vector<double> lowest;  ///< [copy_routes] of all repetitions
};

/// Measurements that are fit for calculations.
struct CleanMeasurements {
  std::vector<Combination> combinations;  ///< in rising order of `streams`
  std::vector<Combination> doubtful;      ///< repetitions contradict each other: only `lowest` is of use
  std::vector<MeasuredBatch> batches;
  std::vector<RouteCombination> copy_routes;      ///< in rising order of `copy_routes`
  std::vector<RouteCombination> doubtful_routes;  ///< as `doubtful`
  std::vector<std::string> left_out;              ///< a sentence for everything that could not be used
};

/// Merges repetitions and leaves out implausible measurements: a combination of which fewer than two thirds of the
/// repetitions lie within an eighth of their median, a stream much faster beside others than alone (or its rate alone,
/// where most of its combinations contradict it), a batch much faster than its streams alone or slower than in any
/// combination.
[[nodiscard]] CleanMeasurements clean(const Measurements& measurements);

/// How far the total rate of a combination lies from its median, relative, in four of five repetitions; 0 where nothing
/// was measured three times.
[[nodiscard]] double spread_of(const Measurements& measurements);

}  // namespace tutti::internal
