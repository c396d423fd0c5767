#pragma once
#include <cstdint>
#include <vector>

#include "model/base/error.hpp"
#include "model/base/quantities.hpp"
#include "model/control/exchange_spec.hpp"

namespace tutti::internal {

/// A field of 64-bit integers in two or three dimensions, cut into slabs along its last axis: a slab for each rank.
///
/// The next value of a point is 3 times its own plus those of its four or six neighbours, modulo 2^64, so that every
/// order of additions gives the same bits. The last axis is a ring; beyond the other edges everything is 0.
struct StencilSpec {
  std::vector<int> gpus;        ///< [ranks] CUDA's number of the GPU of each rank, 1 to 32; several ranks may share one
  int dimensions = 3;           ///< 2 or 3
  std::uint32_t edge = 64;      ///< points along each axis that is not cut, 1 to 4096
  std::uint32_t layers = 64;    ///< of each rank along the last axis, 2 to 65536: the first and the last are sent
  std::uint32_t threads = 256;  ///< of a block, 32 to 1024, a multiple of 32
  Duration limit = std::chrono::seconds(60);      ///< for a run of the fused kernels; then they are told to give up
  Duration last_wait = std::chrono::seconds(10);  ///< for kernels that were told to give up; then they are left behind

  /// Points of a layer.
  [[nodiscard]] std::uint64_t face() const { return dimensions == 3 ? std::uint64_t{edge} * edge : edge; }
};

/// Most points of a rank.
inline constexpr std::uint64_t kMostStencilPoints = std::uint64_t{1} << 30;

/// Times of the parts of an iteration, each alone; the longest of all ranks, and the median of several samples.
struct StencilSteps {
  Duration launch{};            ///< of a kernel of each rank, in the host, as a part of an iteration
  Duration copy_calls{};        ///< of enqueueing both messages of all ranks, in the host
  Duration packed_calls{};      ///< of letting the sends of all ranks follow their packing, in the host
  Duration sent_calls{};        ///< of letting all ranks follow what their neighbours send, in the host
  Duration synchronize{};       ///< what a wait of the host for a kernel of each rank takes longer than the kernels
  Duration pack{};              ///< of the first and the last layer, on the GPU
  Duration inner{};             ///< of all layers between
  Duration unpack{};            ///< of the messages of both neighbours
  Duration fused_pack{};        ///< as `pack`, on as many blocks as the fused kernel has for it
  Duration fused_inner{};       ///< as `inner`, so
  Duration fused_unpack{};      ///< as `unpack`, so
  Duration message{};           ///< both messages, all ranks at once, on the GPU
  Duration event{};             ///< from a stream to the next through an event, the mean of the two in an iteration
  Duration fused_launch{};      ///< of one fused kernel, in the host
  Duration fused_round{};       ///< an iteration of fused kernels with as many blocks, on the smallest field
  Duration least_kernel{};      ///< of a kernel on the smallest field, on the GPU
  std::uint32_t senders = 0;    ///< blocks of the fused kernel and iteration
  std::uint32_t unpackers = 0;  ///< as many
  std::uint32_t blocks = 0;     ///< blocks that an iteration has at once, the receiver too
};

/// A stencil on GPUs, in place: each run goes on where the one before ended.
///
/// An iteration packs (computes the first and the last layer and sends them), computes the layers between, and unpacks
/// (puts the layers that neighbours sent beside its own). A rank is its own neighbour where it is alone.
/// @source [AGO17] HPGMG: one send task, one inner task, one receive task
class Stencil {
 public:
  virtual ~Stencil() = default;
  /// Sets every point to a number that its place and the seed make; places are those of the whole field, so fields of
  /// as many layers are the same whatever the number of ranks.
  /// @errors Machine: a call failed.
  [[nodiscard]] virtual Expected<void> fill(std::uint64_t seed) = 0;
  /// Some iterations.
  /// @param iterations  1 to 2^31
  /// @return from the first launch until the host knows that the last kernel has ended
  /// @errors InvalidInput: no iteration, or too many. Machine: a call failed; the fused kernels gave up.
  [[nodiscard]] virtual Expected<Duration> run(ControlMode mode, std::uint64_t iterations) = 0;
  /// [layers of all ranks][face]
  /// @errors Machine: a call failed.
  [[nodiscard]] virtual Expected<std::vector<std::uint64_t>> field() = 0;
  /// Times the parts. The field has no meaning behind that until it is filled.
  /// @param samples  >= 1
  /// @errors Machine: a call failed; the fused kernels gave up.
  [[nodiscard]] virtual Expected<StencilSteps> time_steps(int samples) = 0;
};

/// The number that `Stencil::fill` sets a point to.
/// @param place  layer * face + place in the layer
[[nodiscard]] constexpr std::uint64_t stencil_start(std::uint64_t seed, std::uint64_t place) {
  std::uint64_t mixed = (place + 1) * 0x9e3779b97f4a7c15U + seed;
  mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9U;
  mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111ebU;
  return mixed ^ mixed >> 31;
}

}  // namespace tutti::internal
