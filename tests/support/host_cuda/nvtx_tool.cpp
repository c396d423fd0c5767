// A tool for NVTX: NVTX_INJECTION64_PATH names this library, and it notes the calls that it gets.
#include "tests/support/host_cuda/nvtx_tool.hpp"

#include <deque>
#include <map>
#include <mutex>

#define NVTX_NO_IMPL
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtCudaRt.h>

namespace tutti::internal::test {
namespace {

struct Domain {
  std::string name;
  std::map<std::uint32_t, std::string> categories;
};

struct Tool {
  std::mutex mutex;
  std::deque<Domain> domains;  // handles are addresses
  std::deque<std::string> strings;
  std::vector<ToolCall> calls;
};

Tool& tool() {
  static Tool one;
  return one;
}

nvtxDomainHandle_t NVTX_API create_domain(const char* name) {
  const std::lock_guard lock(tool().mutex);
  return reinterpret_cast<nvtxDomainHandle_t>(&tool().domains.emplace_back(Domain{name, {}}));
}

void NVTX_API name_category(nvtxDomainHandle_t domain, std::uint32_t category, const char* name) {
  const std::lock_guard lock(tool().mutex);
  reinterpret_cast<Domain*>(domain)->categories[category] = name;
}

nvtxStringHandle_t NVTX_API register_string(nvtxDomainHandle_t, const char* text) {
  const std::lock_guard lock(tool().mutex);
  return reinterpret_cast<nvtxStringHandle_t>(&tool().strings.emplace_back(text));
}

nvtxRangeId_t NVTX_API begin_range(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* range) {
  const std::lock_guard lock(tool().mutex);
  Domain& of = *reinterpret_cast<Domain*>(domain);
  const bool registered = range->messageType == NVTX_MESSAGE_TYPE_REGISTERED;
  std::string name =
      registered ? *reinterpret_cast<const std::string*>(range->message.registered) : range->message.ascii;
  const std::uint64_t id = tool().calls.size() + 1;
  tool().calls.push_back(
      {ToolCall::Kind::Begin, of.name, of.categories[range->category], std::move(name), id, range->payload.ullValue});
  return id;
}

void NVTX_API end_range(nvtxDomainHandle_t domain, nvtxRangeId_t id) {
  const std::lock_guard lock(tool().mutex);
  tool().calls.push_back({ToolCall::Kind::End, reinterpret_cast<Domain*>(domain)->name, {}, {}, id});
}

void NVTX_API name_thread(std::uint32_t, const char* name) {
  const std::lock_guard lock(tool().mutex);
  tool().calls.push_back({ToolCall::Kind::NameThread, {}, {}, name});
}

void NVTX_API name_stream(cudaStream_t, const char* name) {
  const std::lock_guard lock(tool().mutex);
  tool().calls.push_back({ToolCall::Kind::NameStream, {}, {}, name});
}

template <class Function>
void put(NvtxFunctionTable table, unsigned int place, Function function) {
  *table[place] = reinterpret_cast<NvtxFunctionPointer>(function);
}

}  // namespace

std::vector<ToolCall> tool_calls() {
  const std::lock_guard lock(tool().mutex);
  return tool().calls;
}

}  // namespace tutti::internal::test

extern "C" __attribute__((visibility("default"))) int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_table) {
  using namespace tutti::internal::test;
  const auto* const callbacks = static_cast<const NvtxExportTableCallbacks*>(get_table(NVTX_ETID_CALLBACKS));
  const auto table_of = [&](NvtxCallbackModule module) {
    NvtxFunctionTable table = nullptr;
    unsigned int size = 0;
    return callbacks->GetModuleFunctionTable(module, &table, &size) != 0 ? table : nullptr;
  };
  const NvtxFunctionTable core = table_of(NVTX_CB_MODULE_CORE), core2 = table_of(NVTX_CB_MODULE_CORE2),
                          cuda = table_of(NVTX_CB_MODULE_CUDART);
  if (core == nullptr || core2 == nullptr || cuda == nullptr) return 0;
  put(core, NVTX_CBID_CORE_NameOsThreadA, name_thread);
  put(core2, NVTX_CBID_CORE2_DomainCreateA, create_domain);
  put(core2, NVTX_CBID_CORE2_DomainNameCategoryA, name_category);
  put(core2, NVTX_CBID_CORE2_DomainRegisterStringA, register_string);
  put(core2, NVTX_CBID_CORE2_DomainRangeStartEx, begin_range);
  put(core2, NVTX_CBID_CORE2_DomainRangeEnd, end_range);
  put(cuda, NVTX_CBID_CUDART_NameCudaStreamA, name_stream);
  return 1;
}
