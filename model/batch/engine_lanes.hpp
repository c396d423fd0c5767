#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/batch/batch.hpp"

namespace tutti::internal {

/// What one copy engine does, or the kernels of one GPU, or the work of one cpu or memory.
struct EngineLane {
  VertexId device;
  std::string_view engine;  ///< "up", "down", "copies", "peer", "peer in", "in", "out", "kernels", "host work",
                            ///< "mapped copies"
  bool overlaps = false;    ///< work in it may overlap: that of a cpu

  friend bool operator==(const EngineLane&, const EngineLane&) = default;
};

/// The lanes that batches use, in the order of the machine's GPUs, devices and cpus: the rows of their pictures.
class EngineLanes {
 public:
  /// @pre all batches are of this machine
  EngineLanes(const Topology& machine, std::span<const Batch* const> batches);

  [[nodiscard]] std::span<const EngineLane> all() const { return lanes_; }
  /// The lane of an engine, or of what moves data in its place. @pre a batch uses it
  [[nodiscard]] std::size_t of(EngineId engine) const;
  /// The lane of the kernels or the host work of a processor. @pre a batch uses it
  [[nodiscard]] std::size_t of(VertexId processor) const { return of_vertex_[processor.index()]; }
  /// The lanes that a stream's transfer holds, the issuing one first. @pre it has one
  [[nodiscard]] std::vector<std::size_t> of_transfer(const Batch& batch, std::size_t stream) const;
  /// "gpu0 up".
  [[nodiscard]] std::string name(std::size_t lane) const;

 private:
  void note(const Batch& batch, std::vector<bool>& engines, std::vector<bool>& processors) const;
  void add_engines(VertexId gpu, const std::vector<bool>& used);
  void add(std::uint32_t& lane, VertexId device, std::string_view engine, bool overlaps);

  Topology machine_;
  std::vector<std::uint32_t> of_engine_;  // kNone: not used
  std::vector<std::uint32_t> of_vertex_;
  std::vector<EngineLane> lanes_;
};

}  // namespace tutti::internal
