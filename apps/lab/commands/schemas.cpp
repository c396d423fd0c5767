#include <array>

#include "apps/lab/reports/learn_output.hpp"
#include "apps/lab/reports/verification_output.hpp"
#include "apps/tutti/commands/schema.hpp"

namespace tutti::internal {
namespace {

constexpr std::array kLaboratory{RecordSchema{"bench-methods", schema_of_output<MethodsOutput>},
                                 RecordSchema{"learn", schema_of_output<LearnOutput>},
                                 RecordSchema{"verify", schema_of_output<VerifyOutput>}};

}  // namespace

std::span<const RecordSchema> laboratory_schemas() { return kLaboratory; }

}  // namespace tutti::internal
