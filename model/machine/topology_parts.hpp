#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/machine/topology.hpp"

namespace tutti::internal {

/// Contents of a `Topology`: the description, then what is derived from it so that look-ups are
/// loads.
struct Topology::Parts {
  MachineSpec spec;                      // a link for each direction
  std::optional<SetupTimes> led_by_gpu;  // costs while a GPU leads jobs; absent: the host does
  std::vector<Link> links;
  std::vector<SharedCapacity> shared;
  std::vector<BackgroundFlow> background;
  PeerAccess peer_access;
  std::shared_ptr<const MeasuredTable> table;  // shared by machines that differ elsewhere
  std::vector<Error> notes;

  std::map<std::string, VertexId, std::less<>> vertex_by_name;
  std::map<std::pair<VertexId, VertexId>, LinkId> link_by_ends;
  std::vector<VertexId> memories;
  std::vector<VertexId> gpus;
  std::vector<VertexId> devices;
  std::vector<double> nominal;           // [capacities] without what background flows take
  std::vector<double> guaranteed;        // [capacities]
  std::vector<std::uint32_t> use_begin;  // [links + 1] into `uses`
  std::vector<CapacityUse> uses;
  std::size_t endpoint_count = 0;          // memories, GPUs and devices
  std::vector<std::uint32_t> endpoint;     // [vertices] row in the table of routes; past its end for others
  std::vector<std::uint32_t> route_begin;  // [endpoint_count^2 + 1] into `route_links`, row by row
  std::vector<LinkId> route_links;
  std::vector<RouteClass> route_classes;
  std::vector<std::uint32_t> route_class_of;    // [endpoint_count^2] into `route_classes`, row by row
  std::vector<std::optional<DomainId>> domain;  // [vertices]
  std::vector<EngineId> engine_in;              // [vertices], of GPUs and devices
  std::vector<EngineId> engine_out;             // [vertices], of GPUs and devices
  std::vector<EngineId> peer_engine_in;         // [vertices], of GPUs
  std::vector<EngineId> peer_engine_out;        // [vertices], of GPUs
  std::size_t engine_count = 0;

  /// The place of a pair of endpoints in tables of all pairs; nothing where one is no endpoint.
  [[nodiscard]] std::optional<std::size_t> pair_of(VertexId from, VertexId to) const {
    const std::size_t row = endpoint[from.index()];
    const std::size_t column = endpoint[to.index()];
    if (row >= endpoint_count || column >= endpoint_count) return std::nullopt;
    return row * endpoint_count + column;
  }
};

}  // namespace tutti::internal
