#include "apps/lab/reports/verification_output.hpp"

namespace tutti::internal {

std::vector<DeclaredStreamOutput> declared_output(const Batch& batch) {
  std::vector<DeclaredStreamOutput> streams;
  for (const CommandStream& stream : batch.streams()) {
    DeclaredStreamOutput& row = streams.emplace_back(DeclaredStreamOutput{stream.name});
    if (const auto& transfer = stream.transfer) {
      row.from = batch.machine().vertex(transfer->from).name;
      row.to = batch.machine().vertex(transfer->to).name;
      row.bytes = transfer->size;
      row.method = to_string(transfer->method);
      row.rows = transfer->rows.count;
      if (transfer->is_strided()) row.pitch = transfer->rows.pitch;
    }
    if (stream.kernel) row.kernel = stream.kernel->time;
  }
  return streams;
}

}  // namespace tutti::internal
