#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "model/base/quantities.hpp"

namespace tutti {

/// The figures that a prediction uses: the usual ones, or those that the machine never falls below.
enum class Basis : std::uint8_t { Nominal, Guaranteed };

/// An effective bandwidth. guaranteed <= nominal, both > 0.
struct Bandwidth {
  GBps nominal{};
  GBps guaranteed{};

  constexpr Bandwidth() = default;
  /// One rate for both.
  constexpr Bandwidth(GBps both) : nominal(both), guaranteed(both) {}  // NOLINT: a rate is a bandwidth
  constexpr Bandwidth(GBps usual, GBps at_least) : nominal(usual), guaranteed(at_least) {}
  [[nodiscard]] GBps at(Basis basis) const { return basis == Basis::Nominal ? nominal : guaranteed; }
  friend bool operator==(const Bandwidth&, const Bandwidth&) = default;
};

/// A time that a command takes beside its work: what it usually is, and what it never exceeds.
/// 0 <= nominal <= guaranteed.
struct Cost {
  Duration nominal{};
  Duration guaranteed{};

  constexpr Cost() = default;
  /// One time for both.
  constexpr Cost(Duration both) : nominal(both), guaranteed(both) {}  // NOLINT: a time is a cost
  constexpr Cost(Duration usual, Duration at_most) : nominal(usual), guaranteed(at_most) {}
  [[nodiscard]] constexpr Duration at(Basis basis) const { return basis == Basis::Nominal ? nominal : guaranteed; }
  friend constexpr bool operator==(const Cost&, const Cost&) = default;
};

/// What each row of a copy takes, as the time of so many bytes more: usually, and at most.
/// 0 <= nominal <= guaranteed <= in_step.
struct Gap {
  Bytes nominal{};
  Bytes guaranteed{};
  std::optional<Bytes> in_step = {};  ///< in place of `guaranteed` where the pitch is a multiple of 32 B, and all rows
                                      ///< may lie across lines of the memory; absent: the same

  constexpr Gap() = default;
  /// One size for both.
  constexpr Gap(Bytes both) : nominal(both), guaranteed(both) {}  // NOLINT: a size is a gap
  constexpr Gap(Bytes usual, Bytes at_most) : nominal(usual), guaranteed(at_most) {}
  [[nodiscard]] constexpr Bytes at_most(Bytes pitch) const {
    return pitch.count % 32 == 0 ? in_step.value_or(guaranteed) : guaranteed;
  }
  friend constexpr bool operator==(const Gap&, const Gap&) = default;
};

/// Kind of a copy: each kind has its own costs.
enum class CopyKind : std::uint8_t {
  Up,            ///< memory to GPU
  Down,          ///< GPU to memory
  Peer,          ///< GPU to GPU
  Staged,        ///< one chunk's copy over one leg of a staged copy
  PageableUp,    ///< pageable memory to GPU, whole, through pinned buffers
  PageableDown,  ///< GPU to pageable memory
  SmUp,          ///< memory to GPU, by a kernel
  SmDown,        ///< GPU to memory, by a kernel
  InlineUp,      ///< memory to GPU, as an argument of a kernel
  MappedUp,      ///< memory to GPU, by stores of the host
  MappedDown,    ///< GPU to memory, by loads of the host
  RowsUp,        ///< rows of a memory to GPU, by a copy engine
  RowsDown,      ///< GPU to rows of a memory, by a copy engine
};
inline constexpr std::array kCopyKinds{
    CopyKind::Up,           CopyKind::Down,   CopyKind::Peer,    CopyKind::Staged,   CopyKind::PageableUp,
    CopyKind::PageableDown, CopyKind::SmUp,   CopyKind::SmDown,  CopyKind::InlineUp, CopyKind::MappedUp,
    CopyKind::MappedDown,   CopyKind::RowsUp, CopyKind::RowsDown};

/// "up", "down", "peer", "staged", "pageable_up", "pageable_down", "sm_up", "sm_down", "inline_up", "mapped_up",
/// "mapped_down", "rows_up", "rows_down".
[[nodiscard]] constexpr std::string_view to_string(CopyKind route) {
  constexpr std::array<std::string_view, kCopyKinds.size()> names{
      "up",      "down",      "peer",      "staged",      "pageable_up", "pageable_down", "sm_up",
      "sm_down", "inline_up", "mapped_up", "mapped_down", "rows_up",     "rows_down"};
  return names[static_cast<std::size_t>(route)];
}

/// The class whose costs count where a machine gives none for this one.
[[nodiscard]] constexpr CopyKind base_of(CopyKind kind) {
  switch (kind) {
    case CopyKind::SmUp:
    case CopyKind::InlineUp:
    case CopyKind::MappedUp:
    case CopyKind::RowsUp: return CopyKind::Up;
    case CopyKind::SmDown:
    case CopyKind::MappedDown:
    case CopyKind::RowsDown: return CopyKind::Down;
    default: return kind;
  }
}
/// Whether the copies of a class are of pageable memory.
[[nodiscard]] constexpr bool is_pageable(CopyKind kind) {
  return kind == CopyKind::PageableUp || kind == CopyKind::PageableDown;
}
/// Whether the copies of a class are of rows.
[[nodiscard]] constexpr bool is_of_rows(CopyKind kind) {
  return kind == CopyKind::RowsUp || kind == CopyKind::RowsDown;
}

/// Threads fill and empty the buffers of a copy of pageable memory, which is the `more` of its size. Usually this part
/// of it takes what bytes take of the capacities; the rest leaves them to other copies. Measured on four GPUs.
inline constexpr double kFillingWork = 0.6;

/// Above every size of a copy.
inline constexpr Bytes kEverySize{std::int64_t{1} << 62};

/// What a copy of some size costs more than one of no bytes, beside its bytes at the full rate.
struct SizeCost {
  Bytes size;  ///< > 0; 0: not used
  Cost more;
  friend bool operator==(const SizeCost&, const SizeCost&) = default;
};

/// Cost of one copy on its engine, beside its bytes at the full rate, and how it shares its link with others.
struct CopyCost {
  static constexpr std::size_t kMostSizes = 12;

  Cost each;
  Bytes below;                          ///< smaller copies have a rate of their own
  std::optional<Bandwidth> small = {};  ///< that rate, which they never exceed; absent: none
  Cost first = {};        ///< extra before the first of its class in an engine queue: links between GPUs sleep
  SizeCost carried = {};  ///< a copy of at most this size that is an engine queue's only one goes with its command, and
                          ///< has this in place of `first`, usually; 0 B: none does
  std::optional<Cost> led_first = {};  ///< in place of `first` where a GPU leads jobs, which keeps links awake; absent:
                                       ///< the same
  std::array<SizeCost, kMostSizes> sizes = {};  ///< rising; those in use come first. Pipelines take time to fill
  Gap gap = {};                                 ///< of copies of rows: each row takes as long as so many bytes more
  double weight = 1;  ///< share of a link beside a copy of an engine in the same direction, which has 1
  double load = 1;    ///< what a byte takes of a capacity that both directions of a GPU's link share; a copy of an
                      ///< engine takes 1. Of rows: what a byte of a gap takes

  /// Cost before the first copy of its class in an engine queue, ns. @param only  whether that is the queue's only copy
  [[nodiscard]] constexpr double first_ns(Basis basis, double bytes, bool only) const {
    const bool goes_along = basis == Basis::Nominal && only && bytes <= static_cast<double>(carried.size.count);
    return static_cast<double>((goes_along ? carried.more : first).at(basis).count());
  }
  /// Cost of a copy of some bytes, ns, `first` left out: between two sizes linear, constant beyond the last.
  [[nodiscard]] constexpr double ns(Basis basis, double bytes) const {
    const auto as_ns = [&](const Cost& cost) { return static_cast<double>(cost.at(basis).count()); };
    double size = 0, more = 0;
    for (const SizeCost& next : sizes) {
      if (next.size.count == 0) break;
      const auto next_size = static_cast<double>(next.size.count);
      const double next_more = as_ns(next.more);
      if (bytes < next_size) return as_ns(each) + more + (next_more - more) * (bytes - size) / (next_size - size);
      size = next_size;
      more = next_more;
    }
    return as_ns(each) + more;
  }
  friend bool operator==(const CopyCost&, const CopyCost&) = default;
};

/// The copies of every route class.
struct CopyCosts {
  std::array<CopyCost, kCopyKinds.size()> classes;

  constexpr CopyCosts() = default;
  /// One cost for all classes.
  constexpr CopyCosts(Duration each) {  // NOLINT: a time is a cost
    for (CopyCost& cost : classes) cost.each = each;
  }
  [[nodiscard]] constexpr const CopyCost& of(CopyKind route) const { return classes[static_cast<std::size_t>(route)]; }
  [[nodiscard]] constexpr CopyCost& of(CopyKind route) { return classes[static_cast<std::size_t>(route)]; }
  /// The class whose costs count for copies of a class: itself, or its base where it has none of its own.
  [[nodiscard]] constexpr CopyKind counted(CopyKind kind) const {
    return of(kind) == CopyCost{} ? base_of(kind) : kind;
  }
  friend bool operator==(const CopyCosts&, const CopyCosts&) = default;
};

/// Costs of commands beside their bytes and their work: the `setup` of a machine file. They hold for execution by the
/// backends: copies of one engine queue with the same ends go as one call, kernels follow each other without marks.
struct SetupTimes {
  Cost batch;          ///< precedes every batch: the part of its time that belongs to no command
  CopyCosts transfer;  ///< precedes every copy
  Cost kernel{};       ///< precedes every kernel on a GPU
  Cost gate{};         ///< from the instant of an engine queue's gate to the start of its first command
  Cost host{};         ///< precedes every piece of host work
  /// From one queue to another: precedes the first kernel behind an engine queue's copies; a kernel without copies on a
  /// GPU that others use (half of it in predictions); a staged copy next to others in its queue, and those next to it;
  /// a staged copy whose second engine another queue uses too, for which two are guaranteed; a copy that lands where
  /// those of another queue do.
  Cost handover{};
  Cost turn{};      ///< precedes a copy with other ends than the copy before it in its queue
  Cost dispatch{};  ///< around every batch of a job: from its submission to its start, and from its last completion
                    ///< until the job goes on
  Cost job{};       ///< once per job or batch that runs by itself: how long machine and host may be held up
  std::optional<Cost> conductor = {};  ///< in place of `dispatch` where a GPU leads jobs: from the planned instant of
                                       ///< a batch until its gates are open, and from its last completion until the
                                       ///< GPU's conductor has seen it; absent: not measured
  std::optional<Cost> conductor_job = {};  ///< in place of `job` there: how long a GPU may be held up; with `conductor`
  /// Where no jobs overlap there: how long in all the jobs of one busy period may be held up; with `conductor_job`;
  /// absent: each as long as one.
  std::optional<Cost> conductor_jobs = {};
  std::optional<Cost> conductor_visit = {};  ///< where jobs overlap there: what the conductor takes for one thing, such
                                             ///< as a release or the begin of another job's copy; with `conductor`;
                                             ///< absent: as long as `conductor`
  std::optional<Cost> conductor_lane = {};  ///< for each further lane that waits on a GPU there, longer for a batch; it
                                            ///< comes with `conductor_visit`; absent: part of `conductor`

  friend bool operator==(const SetupTimes&, const SetupTimes&) = default;
};

/// A cost that is one figure: its key in machine files, and its name in reports.
struct NamedCost {
  using Member = Cost SetupTimes::*;

  std::string_view key;
  std::string_view what;
  Member cost;
};
/// All costs but those of a batch and of copies.
inline constexpr std::array kFurtherCosts{
    NamedCost{"kernel", "a kernel", &SetupTimes::kernel},
    NamedCost{"gate", "a gate", &SetupTimes::gate},
    NamedCost{"host", "host work", &SetupTimes::host},
    NamedCost{"handover", "a handover between queues", &SetupTimes::handover},
    NamedCost{"turn", "a turn to other ends", &SetupTimes::turn},
    NamedCost{"dispatch", "dispatching a batch", &SetupTimes::dispatch},
    NamedCost{"job", "a job", &SetupTimes::job},
};

/// A cost that a machine may lack: its key, its name, and what it takes the place of.
struct ConductorCost {
  using Member = std::optional<Cost> SetupTimes::*;

  std::string_view key;
  std::string_view what;
  Member cost;
  NamedCost::Member in_place_of;
};
/// The costs of jobs that a GPU leads; a machine has all of them or none.
inline constexpr std::array kConductorCosts{
    ConductorCost{"conductor", "a batch that a GPU leads", &SetupTimes::conductor, &SetupTimes::dispatch},
    ConductorCost{"conductor_job", "a job that a GPU leads", &SetupTimes::conductor_job, &SetupTimes::job},
};

/// The costs where a GPU leads jobs; nothing where it was not measured as a conductor.
/// @param lanes  that wait beside those of a batch
[[nodiscard]] constexpr std::optional<SetupTimes> led_by_gpu(SetupTimes setup, std::size_t lanes = 0) {
  for (const ConductorCost& cost : kConductorCosts) {
    if (!(setup.*cost.cost)) return std::nullopt;
    setup.*cost.in_place_of = *(setup.*cost.cost);
  }
  for (CopyCost& cost : setup.transfer.classes) cost.first = cost.led_first.value_or(cost.first);
  const auto count = static_cast<std::int64_t>(lanes);
  if (const auto& lane = setup.conductor_lane)
    setup.dispatch = {setup.dispatch.nominal + count * lane->nominal,
                      setup.dispatch.guaranteed + count * lane->guaranteed};
  return setup;
}

}  // namespace tutti
