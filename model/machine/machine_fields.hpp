#pragma once
#include "model/base/record.hpp"
#include "model/machine/machine_spec.hpp"

/// The field tables of a machine: what a file may say, and where it goes. A new property of machines is a member of a
/// struct in `machine_spec.hpp` and a row here.
namespace tutti::internal {

template <>
struct Words<VertexKind> {
  static constexpr std::string_view what = "kind of vertex";
  static constexpr std::array values{VertexKind::Memory, VertexKind::Cpu, VertexKind::Hub,
                                     VertexKind::Switch, VertexKind::Gpu, VertexKind::Device};
};
template <>
struct Words<RateSource> {
  static constexpr std::string_view what = "source of rates";
  static constexpr std::array values{RateSource::Table, RateSource::Interpolated};
};

template <>
struct Record<Bandwidth> {
  static constexpr std::string_view what = "a bandwidth";
  static constexpr std::tuple fields{Field{"nominal", &Bandwidth::nominal}.required(),
                                     Field{"guaranteed", &Bandwidth::guaranteed}};
};
template <>
struct Record<LoadRate> {
  static constexpr std::string_view what = "a load";
  static constexpr std::tuple fields{Field{"nominal", &LoadRate::nominal}.required(), Field{"most", &LoadRate::most}};
};
template <>
struct Record<Cost> {
  static constexpr std::string_view what = "a cost";
  static constexpr std::tuple fields{Field{"nominal", &Cost::nominal}.required(),
                                     Field{"guaranteed", &Cost::guaranteed}};
};

template <>
struct Record<Gap> {
  static constexpr std::string_view what = "a gap";
  static constexpr std::tuple fields{Field{"nominal", &Gap::nominal}.required(), Field{"guaranteed", &Gap::guaranteed},
                                     Field{"in_step", &Gap::in_step}};
};

/// One figure for both, or a map with the nominal one and the field behind it, which is the nominal one if left out.
template <class T, class Figure>
struct TwoSided : Unchecked {
  static T read(Reader& reader, const Node& node, const FieldRules& rules) {
    if (node.kind != Node::Kind::Map) return T(Form<Figure>::read(reader, node, rules));
    T value{};
    read_fields(reader, node, Record<T>::what, value);
    constexpr auto& other = std::get<1>(Record<T>::fields);
    if (node.find(other.key) == nullptr) value.*other.member = value.nominal;
    return value;
  }
  static Node write(const T& value) {
    if (value == T(value.nominal)) return Form<Figure>::write(value.nominal);
    Node map;
    map.kind = Node::Kind::Map;
    write_fields(value, map);
    return map;
  }
  static std::string schema(const FieldRules& rules) {
    return schema_of_any(std::array{Form<Figure>::schema(rules), schema_of_keys(key_schemas<T>())});
  }
};
template <>
struct Form<Bandwidth> : TwoSided<Bandwidth, GBps> {};
template <>
struct Form<LoadRate> : TwoSided<LoadRate, GBps> {};
template <>
struct Form<Cost> : TwoSided<Cost, Duration> {};
template <>
struct Form<Gap> : TwoSided<Gap, Bytes> {};

template <>
struct Record<LinkBandwidth> {
  static constexpr std::string_view what = "a bandwidth";
  static constexpr auto fields =
      std::tuple_cat(Record<Bandwidth>::fields, std::tuple{Field{"theoretical", &LinkBandwidth::theoretical}});
};
template <>
struct Form<LinkBandwidth> : TwoSided<LinkBandwidth, GBps> {};

template <>
struct Record<LinkSpec> {
  static constexpr std::string_view what = "a link";
  static constexpr std::tuple fields{Field{"from", &LinkSpec::from}.required(), Field{"to", &LinkSpec::to}.required(),
                                     Field{"bandwidth", &LinkSpec::bandwidth}.required(),
                                     Field{"back", &LinkSpec::back}};
};
template <>
struct Record<MemberSpec> {
  static constexpr std::string_view what = "a member";
  static constexpr std::tuple fields{Field{"from", &MemberSpec::from}.required(),
                                     Field{"to", &MemberSpec::to}.required(),
                                     Field{"cost", &MemberSpec::cost}.within(1e-3, 1e3)};
};
template <>
struct Record<SharedSpec> {
  static constexpr std::string_view what = "a shared capacity";
  static constexpr std::tuple fields{Field{"name", &SharedSpec::name}.required(),
                                     Field{"capacity", &SharedSpec::capacity}.required(),
                                     Field{"members", &SharedSpec::members}.required()};
};

template <>
struct Record<BackgroundSpec> {
  static constexpr std::string_view what = "a flow in the background";
  static constexpr std::tuple fields{Field{"from", &BackgroundSpec::from}.required(),
                                     Field{"to", &BackgroundSpec::to}.required(),
                                     Field{"bandwidth", &BackgroundSpec::bandwidth}.required()};
};

/// Of a vertex, all but its name: its key in the map of all.
template <>
struct Record<Vertex> {
  static constexpr std::string_view what = "a vertex";
  static constexpr std::tuple fields{Field{"kind", &Vertex::kind}.required(),
                                     Field{"copy_engines", &Vertex::copy_engines}.within(1, 64),
                                     Field{"cores", &Vertex::cores}.within(1, 1024),
                                     Field{"pageable", &Vertex::pageable},
                                     Field{"producers", &Vertex::producers}.within(1, 64),
                                     Field{"buffer", &Vertex::buffer},
                                     Field{"crossover", &Vertex::crossover},
                                     Field{"memory", &Vertex::memory},
                                     Field{"bus_id", &Vertex::bus_id}.any_text(),
                                     Field{"uuid", &Vertex::uuid}.any_text(),
                                     Field{"domain", &Vertex::domain}};
};
/// A map by name, in the order of the file.
template <>
struct Form<std::vector<Vertex>> {
  static std::vector<Vertex> read(Reader& reader, const Node& node, const FieldRules& rules);
  static Node write(const std::vector<Vertex>& vertices);
  static void check(const std::vector<Vertex>& vertices, const FieldRules&, Faults& faults, const std::string& path);
  static std::string schema(const FieldRules&);
};

template <>
struct Record<SharingWeights> {
  static constexpr std::string_view what = "'weights'";
  static constexpr std::tuple fields{Field{"h2d", &SharingWeights::h2d}.within(1e-3, 1e3),
                                     Field{"d2h", &SharingWeights::d2h}.within(1e-3, 1e3),
                                     Field{"peer", &SharingWeights::peer}.within(1e-3, 1e3)};
};

/// "all", "none", "same_domain", or a list of pairs.
template <>
struct Form<PeerSpec> : Unchecked {
  static PeerSpec read(Reader& reader, const Node& node, const FieldRules& rules);
  static Node write(const PeerSpec& peers);
  static std::string schema(const FieldRules&);
};

/// A cost, with the rate of small copies and the extra of the first one in a map.
template <>
struct Form<CopyCost> : Unchecked {
  static CopyCost read(Reader& reader, const Node& node, const FieldRules& rules);
  static Node write(const CopyCost& cost);
  static std::string schema(const FieldRules&);
};
/// One cost for all copies, or a map with one for each route class; a class that is left out costs nothing.
template <>
struct Form<CopyCosts> : Unchecked {
  static CopyCosts read(Reader& reader, const Node& node, const FieldRules& rules);
  static Node write(const CopyCosts& costs);
  static std::string schema(const FieldRules&);
};
template <>
struct Record<SetupTimes> {
  static constexpr std::string_view what = "'setup'";
  static constexpr std::tuple fields{Field{"batch", &SetupTimes::batch},
                                     Field{"transfer", &SetupTimes::transfer},
                                     Field{"kernel", &SetupTimes::kernel},
                                     Field{"gate", &SetupTimes::gate},
                                     Field{"host", &SetupTimes::host},
                                     Field{"handover", &SetupTimes::handover},
                                     Field{"turn", &SetupTimes::turn},
                                     Field{"dispatch", &SetupTimes::dispatch},
                                     Field{"job", &SetupTimes::job},
                                     Field{"conductor", &SetupTimes::conductor},
                                     Field{"conductor_job", &SetupTimes::conductor_job},
                                     Field{"conductor_jobs", &SetupTimes::conductor_jobs},
                                     Field{"conductor_visit", &SetupTimes::conductor_visit},
                                     Field{"conductor_lane", &SetupTimes::conductor_lane}};
};

template <>
struct Record<Margin> {
  static constexpr std::string_view what = "'margin'";
  static constexpr std::tuple fields{Field{"relative", &Margin::relative}.within(0, 100),
                                     Field{"absolute", &Margin::absolute}};
};
template <>
struct Record<StagingSpec> {
  static constexpr std::string_view what = "'staging'";
  static constexpr std::tuple fields{Field{"chunk", &StagingSpec::chunk}.required()};
};
template <>
struct Record<Provenance> {
  static constexpr std::string_view what = "'provenance'";
  static constexpr double kMost = 1e6;
  static constexpr std::tuple fields{Field{"date", &Provenance::date}.any_text(),
                                     Field{"host", &Provenance::host}.any_text(),
                                     Field{"fingerprint", &Provenance::fingerprint}.any_text(),
                                     Field{"combinations", &Provenance::combinations}.within(0, kMost),
                                     Field{"batches", &Provenance::batches}.within(0, kMost),
                                     Field{"repetitions", &Provenance::repetitions}.within(1, kMost),
                                     Field{"sizes", &Provenance::sizes}.any_text()};
};
template <>
struct Record<CopyRate> {
  static constexpr std::string_view what = "a measured copy";
  static constexpr std::tuple fields{Field{"from", &CopyRate::from}.required(), Field{"to", &CopyRate::to}.required(),
                                     Field{"rate", &CopyRate::rate}.required()};
};
template <>
struct Record<TableRow> {
  static constexpr std::string_view what = "a measured combination";
  static constexpr std::tuple fields{Field{"h2d", &TableRow::h2d}, Field{"d2h", &TableRow::d2h},
                                     Field{"copies", &TableRow::copies}, Field{"source", &TableRow::source}};
};

template <>
struct Record<MachineSpec> {
  static constexpr std::string_view what = "the machine";
  static constexpr std::tuple fields{Field{"name", &MachineSpec::name}.required(),
                                     Field{"provenance", &MachineSpec::provenance},
                                     Field{"vertices", &MachineSpec::vertices}.required(),
                                     Field{"links", &MachineSpec::links}.required(),
                                     Field{"shared", &MachineSpec::shared},
                                     Field{"background", &MachineSpec::background},
                                     Field{"weights", &MachineSpec::weights},
                                     Field{"peer_access", &MachineSpec::peer_access},
                                     Field{"setup", &MachineSpec::setup},
                                     Field{"margin", &MachineSpec::margin},
                                     Field{"spread", &MachineSpec::spread}.within(0, kWidestSpread),
                                     Field{"staging", &MachineSpec::staging},
                                     Field{"gate", &MachineSpec::gate}.one_of(kGateWords),
                                     Field{"conductor_sms", &MachineSpec::conductor_sms}.within(0, kMostGateSms),
                                     Field{"symmetric", &MachineSpec::symmetric}.formerly("alike"),
                                     Field{"table", &MachineSpec::table}};
};

/// A machine file.
struct MachineFile {
  MachineSpec machine;
};
template <>
struct Record<MachineFile> {
  static constexpr std::string_view what = "a machine file";
  static constexpr bool is_file = true;
  static constexpr std::tuple fields{Field{"machine", &MachineFile::machine}.required()};
};

}  // namespace tutti::internal
