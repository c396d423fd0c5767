#pragma once
#include "runtime/cuda/fused/fused_block.hpp"

namespace tutti::internal::cuda {

/// Ranks that a rank exchanges layers with: 0 has the layers above its last one, 1 those below its first one.
inline constexpr std::uint32_t kStencilPeers = 2;
/// Messages of a peer that there is memory for.
inline constexpr std::uint32_t kStencilBuffers = 2;

/// What the blocks of one rank know. Layers 0 and `layers + 1` of a field are those of the neighbours.
struct StencilWork {
  std::uint32_t width, rows, layers;      ///< points of a row; 1 row in two dimensions
  std::uint64_t parity;                   ///< of the field that is read in round 0
  std::uint64_t* fields[2];               ///< [layers + 2][rows][width], read and written in turn
  std::uint64_t* arriving;                ///< [peers][buffers][rows][width] in this GPU's memory
  std::uint64_t* leaving[kStencilPeers];  ///< [buffers][rows][width] of this rank, in the memory of each peer

  [[nodiscard]] TUTTI_HOST_DEVICE std::uint32_t face() const { return width * rows; }
  [[nodiscard]] TUTTI_HOST_DEVICE const std::uint64_t* read(std::uint64_t round) const {
    return fields[(round + parity) & 1];
  }
  [[nodiscard]] TUTTI_HOST_DEVICE std::uint64_t* written(std::uint64_t round) const {
    return fields[(round + parity + 1) & 1];
  }
  /// The layer that a peer gets, and the one that it sends.
  [[nodiscard]] TUTTI_HOST_DEVICE std::uint32_t sent_layer(std::uint32_t peer) const { return peer == 0 ? layers : 1; }
  [[nodiscard]] TUTTI_HOST_DEVICE std::uint32_t halo_layer(std::uint32_t peer) const {
    return peer == 0 ? layers + 1 : 0;
  }

  /// The next value of a point.
  [[nodiscard]] TUTTI_HOST_DEVICE std::uint64_t next(const std::uint64_t* field, std::uint32_t layer,
                                                     std::uint32_t place) const {
    const std::uint32_t x = place % width, y = place / width;
    const std::uint64_t* const point = field + std::uint64_t{layer} * face() + place;
    std::uint64_t sum = 3 * *point + *(point - face()) + *(point + face());
    if (x > 0) sum += *(point - 1);
    if (x + 1 < width) sum += *(point + 1);
    if (y > 0) sum += *(point - width);
    if (y + 1 < rows) sum += *(point + width);
    return sum;
  }

  /// Computes a piece of the layer that a peer gets.
  /// @param message  where it is put besides; null: nowhere
  TUTTI_HOST_DEVICE void pack_layer(std::uint64_t round, std::uint32_t peer, std::uint64_t* message,
                                    std::uint64_t first, std::uint64_t step) const {
    std::uint64_t* const layer = written(round) + std::uint64_t{sent_layer(peer)} * face();
    for (std::uint64_t i = first; i < face(); i += step) {
      const std::uint64_t value = next(read(round), sent_layer(peer), static_cast<std::uint32_t>(i));
      layer[i] = value;
      if (message != nullptr) message[i] = value;
    }
  }
  /// Computes a piece of the layers that no peer gets.
  TUTTI_HOST_DEVICE void compute_inner(std::uint64_t round, std::uint64_t first, std::uint64_t step) const {
    const std::uint64_t count = std::uint64_t{layers - 2} * face();
    for (std::uint64_t i = first; i < count; i += step) {
      const auto point = static_cast<std::uint32_t>(i);  // GPUs divide 64 bits slowly
      written(round)[i + 2 * std::uint64_t{face()}] = next(read(round), point / face() + 2, point % face());
    }
  }
  /// Puts a piece of a message where the layer of the peer lies.
  TUTTI_HOST_DEVICE void unpack_layer(std::uint64_t round, std::uint32_t peer, std::uint32_t buffer,
                                      std::uint64_t first, std::uint64_t step) const {
    const std::uint64_t* const message = arriving + std::uint64_t{peer * kStencilBuffers + buffer} * face();
    std::uint64_t* const layer = written(round) + std::uint64_t{halo_layer(peer)} * face();
    for (std::uint64_t i = first; i < face(); i += step) layer[i] = message[i];
  }

  // For `run_fused_block`. A piece of a round may be unpacked while another block still computes inner layers of the
  // round before: that reads no layer of a peer, and what did read this one was sent to that peer before it answered.

  template <class Block>
  TUTTI_HOST_DEVICE void pack(Block& block, const FusedOrder& order) {
    pack_layer(order.round, order.peer, leaving[order.peer] + std::uint64_t{order.buffer} * face(),
               first_of(block, order), step_of(block, order));
  }
  template <class Block>
  TUTTI_HOST_DEVICE void inner(Block& block, const FusedOrder& order) {
    compute_inner(order.round, first_of(block, order), step_of(block, order));
  }
  template <class Block>
  TUTTI_HOST_DEVICE void unpack(Block& block, const FusedOrder& order) {
    unpack_layer(order.round, order.peer, order.buffer, first_of(block, order), step_of(block, order));
  }

 private:
  // Threads of a block take points side by side.
  template <class Block>
  [[nodiscard]] TUTTI_HOST_DEVICE static std::uint64_t first_of(const Block& block, const FusedOrder& order) {
    return std::uint64_t{order.piece} * block.threads() + block.thread();
  }
  template <class Block>
  [[nodiscard]] TUTTI_HOST_DEVICE static std::uint64_t step_of(const Block& block, const FusedOrder& order) {
    return std::uint64_t{order.pieces} * block.threads();
  }
};

}  // namespace tutti::internal::cuda
