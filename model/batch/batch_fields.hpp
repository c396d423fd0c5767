#pragma once
#include "model/base/record.hpp"
#include "model/batch/batch_spec.hpp"

/// The field tables of a batch: what a file may say, and where it goes.
namespace tutti::internal {

template <>
struct Words<CopyMethod> {
  static constexpr std::string_view what = "transfer method";
  static constexpr std::array values = kCopyMethods;
};

template <>
struct Words<Capture> {
  static constexpr std::string_view what = "way to call a kernel";
  static constexpr std::array values{Capture::Once, Capture::Never};
};

/// "32 MB", "image", or "40% of image".
template <>
struct Form<SizeSpec> : Unchecked {
  static SizeSpec read(Reader& reader, const Node& node, const FieldRules& rules);
  static Node write(const SizeSpec& size);
  static std::string schema(const FieldRules& rules);
};
/// "on", "off", "true", "false", "transitive".
template <>
struct Form<Merging> : Unchecked {
  static Merging read(Reader& reader, const Node& node, const FieldRules& rules);
  static Node write(Merging merging);
  static std::string schema(const FieldRules& rules);
};

template <>
struct Record<KernelSpec> {
  static constexpr std::string_view what = "a kernel";
  static constexpr std::tuple fields{Field{"on", &KernelSpec::on},
                                     Field{"time", &KernelSpec::time},
                                     Field{"throughput", &KernelSpec::throughput},
                                     Field{"of", &KernelSpec::of},
                                     Field{"worst", &KernelSpec::worst},
                                     Field{"name", &KernelSpec::name},
                                     Field{"capture", &KernelSpec::capture},
                                     Field{"reads", &KernelSpec::reads},
                                     Field{"writes", &KernelSpec::writes}};
};
template <>
struct Record<StreamSpec> {
  static constexpr std::string_view what = "a stream";
  static constexpr std::tuple fields{Field{"name", &StreamSpec::name},
                                     Field{"from", &StreamSpec::from},
                                     Field{"to", &StreamSpec::to},
                                     Field{"size", &StreamSpec::size},
                                     Field{"copy", &StreamSpec::copy},
                                     Field{"at", &StreamSpec::at},
                                     Field{"to_at", &StreamSpec::to_at},
                                     Field{"route", &StreamSpec::route},
                                     Field{"via", &StreamSpec::via},
                                     Field{"method", &StreamSpec::method},
                                     Field{"rows", &StreamSpec::rows}.within(1, 1 << 30),
                                     Field{"pitch", &StreamSpec::pitch},
                                     Field{"kernel", &StreamSpec::kernel},
                                     Field{"kernels", &StreamSpec::kernels}};
};
template <>
struct Record<BatchSpec> {
  static constexpr std::string_view what = "a batch file";
  static constexpr bool is_file = true;
  static constexpr std::tuple fields{Field{"machine", &BatchSpec::machine}.any_text(),
                                     Field{"merging", &BatchSpec::merging},
                                     Field{"streams", &BatchSpec::streams}.required()};
};

}  // namespace tutti::internal
