#include "runtime/cuda/base/tool_ranges.hpp"

#ifdef TUTTI_NVTX
#include <array>

#include <fmt/format.h>
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtCudaRt.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace tutti::internal::cuda {

#ifdef TUTTI_NVTX
namespace {

constexpr std::uint32_t kBatches = 1, kJobs = 2;  // categories

/// One for the process, since a tool shows domains and not backends; null where no tool is attached. NVTX sets itself
/// up in its first call, beside which others would read what it writes: every use goes through here first.
nvtxDomainHandle_t tool_domain() {
  static const nvtxDomainHandle_t domain = [] {
    const nvtxDomainHandle_t made = nvtxDomainCreateA("tutti");
    if (made != nullptr) {
      nvtxDomainNameCategoryA(made, kBatches, "batches");
      nvtxDomainNameCategoryA(made, kJobs, "jobs");
    }
    return made;
  }();
  return domain;
}

nvtxEventAttributes_t attributes(std::uint32_t category, std::uint64_t job) {
  nvtxEventAttributes_t attributes{};
  attributes.version = NVTX_VERSION;
  attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  attributes.category = category;
  attributes.payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64;
  attributes.payload.ullValue = job;
  return attributes;
}

}  // namespace

RangeName::RangeName(const std::string& name) {
  if (tool_domain() != nullptr) handle_ = nvtxDomainRegisterStringA(tool_domain(), name.c_str());
}

ToolRange ToolRange::of_batch(const RangeName& name, std::uint64_t job) {
  if (name.handle_ == nullptr) return {};
  nvtxEventAttributes_t range = attributes(kBatches, job);
  range.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
  range.message.registered = static_cast<nvtxStringHandle_t>(name.handle_);
  return ToolRange(nvtxDomainRangeStartEx(tool_domain(), &range));
}

ToolRange ToolRange::of_job(std::string_view task, std::uint64_t index) {
  if (tool_domain() == nullptr) return {};
  std::array<char, 128> text{};
  fmt::format_to_n(text.data(), text.size() - 1, "{} {}", task.substr(0, 100), index);
  nvtxEventAttributes_t range = attributes(kJobs, index);
  range.messageType = NVTX_MESSAGE_TYPE_ASCII;
  range.message.ascii = text.data();
  return ToolRange(nvtxDomainRangeStartEx(tool_domain(), &range));
}

void ToolRange::end() {
  if (number_ != 0) nvtxDomainRangeEnd(tool_domain(), number_);
  number_ = 0;
}

void name_for_tools(cudaStream_t stream, const std::string& name) {
  if (tool_domain() != nullptr) nvtxNameCudaStreamA(stream, name.c_str());
}

void name_thread_for_tools(const char* name) {
  if (tool_domain() != nullptr) nvtxNameOsThreadA(static_cast<std::uint32_t>(syscall(SYS_gettid)), name);
}

#else

RangeName::RangeName(const std::string& /*name*/) {}
ToolRange ToolRange::of_batch(const RangeName& /*name*/, std::uint64_t /*job*/) { return {}; }
ToolRange ToolRange::of_job(std::string_view /*task*/, std::uint64_t /*index*/) { return {}; }
void ToolRange::end() { number_ = 0; }
void name_for_tools(cudaStream_t /*stream*/, const std::string& /*name*/) {}
void name_thread_for_tools(const char* /*name*/) {}

#endif

}  // namespace tutti::internal::cuda
