#pragma once
#include <span>
#include <vector>

#include "model/machine/topology.hpp"

namespace tutti::internal {

/// The route class of a transfer over these links, with all capacities that they use: transfers of any engine may be
/// beside it.
/// @param first,second  the links of the route, in two legs; the second may be empty.
[[nodiscard]] RouteClass whole_route_class(const Topology& machine, std::span<const LinkId> first,
                                           std::span<const LinkId> second, double weight);

/// The route class of a transfer over these links.
///
/// Links at a GPU are left out of `uses` where only one copy engine moves data over them, one transfer at a time: they
/// limit a transfer alone and never two against each other.
///
/// @param first,second  the links of the route, in two legs; the second may be empty.
/// @param met  links of GPUs over which copies that other GPUs or devices issue go as well, rising
[[nodiscard]] RouteClass make_route_class(const Topology& machine, std::span<const LinkId> first,
                                          std::span<const LinkId> second, double weight,
                                          std::span<const LinkId> met = {});

/// Caps the rate of a route class: small copies never exceed theirs.
void cap(RouteClass& route_class, const Bandwidth& rate);

/// What the gaps of rows take, in bytes for each byte of the rows; 0: no rows, or rows without gaps.
struct GapShare {
  double nominal = 0;
  double guaranteed = 0;
  [[nodiscard]] double at(Basis basis) const { return basis == Basis::Nominal ? nominal : guaranteed; }
};

/// The share of the gaps of a class's copies of such rows. Rows that an engine reads less than 16 B apart have longer
/// gaps: rows of 2 B every 3 B took 5.2 ns each, 3.5 times those every 128 B (measured on an H200).
/// @param row,pitch  of copies of rows; pitch > row
[[nodiscard]] GapShare gap_share(const CopyCost& cost, CopyKind kind, Bytes row, Bytes pitch);

/// Whether copies with this cost share their links otherwise than those of an engine.
[[nodiscard]] bool shares_otherwise(const CopyCost& cost);

/// Lets a route class share its links as copies with this cost do: with their weight, slower by the gaps of short rows,
/// which then weigh as much less, and with their load on the capacities that both directions of a link share. The load
/// is measured beside a copy of the same GPU: where both directions of that GPU's link share a capacity, other
/// capacities have it in bounds alone where it is more than the bytes with their gaps, and in predictions these. Alone,
/// a copy has the rate of its rows.
/// @param route  its links
/// @param gaps   of copies of rows
void share_as(const Topology& machine, std::span<const LinkId> route, const CopyCost& cost, const GapShare& gaps,
              RouteClass& route_class);

/// The numbers of a route class as a key for look-ups.
[[nodiscard]] std::vector<double> route_class_key(const RouteClass& kind);

}  // namespace tutti::internal
