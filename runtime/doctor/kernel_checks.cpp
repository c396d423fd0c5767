// How the kernel schedules, tells the time and translates addresses, and what its log says of GPUs.
#include <algorithm>
#include <array>
#include <map>

#include <fmt/format.h>

#include "runtime/doctor/host_checks.hpp"
#include "runtime/doctor/processor_times.hpp"

namespace tutti::internal {
namespace {

/// Clock sources that a program reads without a system call.
constexpr std::array<std::string_view, 4> kQuickClocks{"tsc", "kvm-clock", "hyperv_clocksource_tsc_page",
                                                       "arch_sys_counter"};

bool has_word(std::string_view text, std::string_view word) {
  const auto words = words_of(text);
  return std::ranges::find(words, word) != words.end();
}

/// Words in the names that the firmware of virtual machines gives itself.
constexpr std::array<std::string_view, 10> kVirtualFirmware{
    "QEMU", "KVM", "VMware", "VirtualBox", "Xen", "EC2", "Compute Engine", "OpenStack", "Parallels", "Virtual Machine"};

/// What runs the system, or "none"; empty where nothing says so. Processors of arm64 do not: there the firmware does.
std::string hypervisor(const HostFiles& files) {
  if (const auto kind = files.text("sys/hypervisor/type"); kind && !kind->empty()) return kind->substr(0, kLongestName);
  const std::string processors = files.bytes("proc/cpuinfo").value_or("");
  if (const auto flags = rest_of_line(processors, "flags"))
    return has_word(*flags, "hypervisor") ? "a virtual machine" : "none";
  std::string firmware = files.text("proc/device-tree/model").value_or("");
  for (const char* const name : {"sys_vendor", "product_name"})
    firmware += " " + files.text(fmt::format("sys/class/dmi/id/{}", name)).value_or("");
  const bool is_virtual = files.has_folder("proc/device-tree/hypervisor") ||
                          std::ranges::any_of(kVirtualFirmware, [&](std::string_view word) {
                            return firmware.find(word) != firmware.npos;
                          });
  if (is_virtual) return "a virtual machine";
  return words_of(firmware).empty() ? "" : "none";
}

/// The word of a parameter of the kernel's command line: "full" of "preempt=full"; empty where it is not there.
std::string boot_word(const HostFiles& files, std::string_view parameter) {
  const std::string line = files.text("proc/cmdline").value_or("");
  std::string word;
  for (const std::string_view part : words_of(line))
    if (part.starts_with(parameter)) word = part.substr(parameter.size());
  return word;
}

/// "full" of "none voluntary (full)".
std::string word_in_parentheses(std::string_view text) {
  const std::size_t open = text.find('(');
  const std::size_t close = text.find(')', open == text.npos ? 0 : open);
  if (open == text.npos || close == text.npos) return "";
  return std::string(text.substr(open + 1, close - open - 1));
}

/// The preemption model of a kernel that can choose it; empty where it does not say.
std::string dynamic_model(const HostFiles& files) {
  std::string chosen = word_in_parentheses(files.text("sys/kernel/debug/sched/preempt").value_or(""));
  return chosen.empty() ? boot_word(files, "preempt=") : chosen;
}

/// Kinds of the IOMMU's groups with their count: those of the GPUs, where these are known, else all.
std::map<std::string, std::size_t> iommu_kinds(const HostQuestion& question) {
  std::vector<std::string> groups;
  for (const std::string& gpu : question.gpus) groups.push_back("sys/bus/pci/devices/" + gpu + "/iommu_group");
  if (groups.empty())
    for (const std::string& group : question.files.entries("sys/kernel/iommu_groups"))
      groups.push_back("sys/kernel/iommu_groups/" + group);
  std::map<std::string, std::size_t> kinds;
  for (const std::string& group : groups)
    if (const auto kind = question.files.text(group + "/type")) ++kinds[kind->substr(0, kLongestName)];
  return kinds;
}

constexpr std::size_t kExtendedCapabilities = 0x100;  // where they begin in the settings of a PCIe device

/// Whether a bridge sends requests or completions between the devices below it upwards: bits 2 and 3 of its ACS
/// control.
/// @param config  settings of the device, of any contents
/// @source PCI Express Base Specification 5.0, 7.7.8 (Access Control Services)
bool redirects_peers(std::string_view config) {
  constexpr std::size_t kId = 0x0d, kControl = 6;
  const auto byte = [&](std::size_t at) { return static_cast<std::size_t>(static_cast<unsigned char>(config[at])); };
  std::size_t at = kExtendedCapabilities;
  for (std::size_t step = 0; step < config.size() / 8 && at + 8 <= config.size(); ++step) {
    if ((byte(at) | byte(at + 1) << 8) == kId) return (byte(at + kControl) & 0b1100) != 0;
    at = byte(at + 2) >> 4 | byte(at + 3) << 4;
    if (at < kExtendedCapabilities) return false;  // the last one
  }
  return false;
}

}  // namespace

Finding check_throttling(const HostQuestion& question) {
  const auto runtime = question.files.number("proc/sys/kernel/sched_rt_runtime_us");
  if (!runtime) return Finding::unread("no sched_rt_runtime_us", "mount /proc");
  if (*runtime < 0) return Finding::ok("off");
  const std::int64_t period = question.files.number("proc/sys/kernel/sched_rt_period_us").value_or(1'000'000);
  return Finding::risk_if(*runtime < period, fmt::format("after {} of {} us", *runtime, period),
                          "the kernel stops real-time threads that run without a pause; sysctl "
                          "kernel.sched_rt_runtime_us=-1");
}

Finding check_preemption(const HostQuestion& question) {
  // NVIDIA's driver refuses to load there on x86, unless it is told to ignore that.
  const bool has_driver = question.files.bytes("proc/driver/nvidia/version").has_value() || !question.gpus.empty();
  const std::string remedy =
      std::string("a system call of another program may hold a thread up for milliseconds; boot with preempt=full") +
      (has_driver ? " (a kernel with PREEMPT_RT is refused by NVIDIA's driver on x86)"
                  : ", or install a kernel with PREEMPT_RT");
  const auto version = question.files.text("proc/sys/kernel/version");
  if (question.files.number("sys/kernel/realtime") == 1 || has_word(version.value_or(""), "PREEMPT_RT"))
    return Finding::ok("PREEMPT_RT");
  if (!version || version->empty()) return Finding::unread("no version of the kernel", "mount /proc");
  if (has_word(*version, "PREEMPT_DYNAMIC")) {
    const std::string model = dynamic_model(question.files);
    if (model.empty())
      return Finding::unread("PREEMPT_DYNAMIC, the model is not readable",
                             "look at /sys/kernel/debug/sched/preempt as root; boot with preempt=full");
    return Finding::risk_if(model != "full", model.substr(0, kLongestName), remedy);
  }
  if (has_word(*version, "PREEMPT")) return Finding::ok("full");
  return Finding::risk("none or voluntary", remedy);
}

Finding check_clock_source(const HostQuestion& question) {
  const std::string source = question.files.text("sys/devices/system/clocksource/clocksource0/current_clocksource")
                                 .value_or("")
                                 .substr(0, kLongestName);
  if (source.empty()) return Finding::unread("no clock source", "mount /sys");
  return Finding::risk_if(std::ranges::find(kQuickClocks, source) == kQuickClocks.end(), source,
                          "every look at the clock is a system call of microseconds; boot with clocksource=tsc "
                          "tsc=reliable where the processor has a steady TSC");
}

Finding check_hypervisor(const HostQuestion& question) {
  const std::string kind = hypervisor(question.files);
  if (kind.empty())
    return Finding::unread("neither processors nor firmware say", "mount /proc and /sys; or ask who runs it");
  if (kind == "none") return Finding::ok(kind);
  const auto stolen = stolen_share(question.processor_times, "cpu ");
  return Finding::risk(
      fmt::format("{}, {} of its time taken by others", kind,
                  stolen ? fmt::format("{:.1f} %", 100 * *stolen) : "an unknown share"),
      "the hypervisor may take a core away at any instant; pin the virtual cores to real ones, or run on the hardware "
      "itself");
}

Finding check_iommu(const HostQuestion& question) {
  const auto kinds = iommu_kinds(question);
  if (kinds.empty()) {
    if (question.files.has_folder("sys/kernel/iommu_groups") && question.files.entries("sys/class/iommu").empty())
      return Finding::ok("off");
    return Finding::unread("no groups of the IOMMU", "mount /sys; look for 'iommu' in the kernel's log");
  }
  std::string value;
  bool translates = false;
  for (const auto& [kind, count] : kinds) {
    value += fmt::format("{}{} of {} group{}", value.empty() ? "" : ", ", kind, count, count == 1 ? "" : "s");
    translates = translates || kind != "identity";
  }
  return Finding::risk_if(translates, std::move(value),
                          "each copy looks its addresses up in tables, which takes longer when many are in use; boot "
                          "with iommu=pt, on arm64 iommu.passthrough=1");
}

Finding check_acs(const HostQuestion& question) {
  constexpr std::string_view kDevices = "sys/bus/pci/devices", kBridge = "0x0604";
  if (!question.files.has_folder("sys")) return Finding::unread("no settings of PCIe bridges", "mount /sys");
  if (question.gpus.size() < 2) return Finding::ok("no copies between GPUs");
  std::size_t bridges = 0, redirect = 0, short_of = 0;
  for (const std::string& device : question.files.entries(std::string(kDevices))) {
    const std::string folder = fmt::format("{}/{}/", kDevices, device);
    if (!question.files.text(folder + "class").value_or("").starts_with(kBridge)) continue;
    const std::string config = question.files.bytes(folder + "config").value_or("");
    ++bridges;
    short_of += config.size() <= kExtendedCapabilities ? 1 : 0;
    redirect += redirects_peers(config) ? 1 : 0;
  }
  if (short_of > 0)
    return Finding::unread("no settings of PCIe bridges", "only root may read them; run tutti doctor as root once");
  return Finding::risk_if(
      redirect > 0, redirect == 0 ? "off" : fmt::format("redirects at {} of {} bridges", redirect, bridges),
      "copies between GPUs below one PCIe switch go up to the processor and back, at half the rate; "
      "turn ACS off in the firmware, or by setpci at each boot");
}

Finding check_link_rest(const HostQuestion& question) {
  constexpr std::string_view kRemedy =
      "the first copy after a pause waits until the link is awake; boot with pcie_aspm=off, or write 0 to "
      "/sys/bus/pci/devices/BUSID/link/l0s_aspm and l1_aspm";
  if (!question.files.has_folder("sys")) return Finding::unread("no settings of PCIe links", "mount /sys");
  if (question.gpus.empty()) return Finding::ok("no GPUs");
  const auto may_sleep = [&](const std::string& gpu) {
    const std::string link = fmt::format("sys/bus/pci/devices/{}/link/", gpu);
    return question.files.number(link + "l0s_aspm") == 1 || question.files.number(link + "l1_aspm") == 1;
  };
  if (const auto count = std::ranges::count_if(question.gpus, may_sleep); count > 0)
    return Finding::risk(fmt::format("{} of {} GPUs let their links sleep", count, question.gpus.size()),
                         std::string(kRemedy));
  const auto policy = question.files.text("sys/module/pcie_aspm/parameters/policy");
  if (!policy)
    return Finding::unread("no pcie_aspm", "the firmware decides whether links sleep; switch ASPM off there");
  return Finding::risk_if(policy->find("[power") != policy->npos, "policy " + *policy, std::string(kRemedy));
}

Finding check_gpu_faults(const HostQuestion& question) {
  constexpr std::string_view kMark = "NVRM: Xid (";
  const auto log = question.files.bytes("dev/kmsg");
  if (!log)
    return Finding::unread("the kernel's log",
                           "run this as root, or with sysctl kernel.dmesg_restrict=0; or look for 'NVRM: Xid' in it "
                           "(journalctl -k)");
  std::size_t count = 0;
  std::string_view last;
  for (std::size_t at = log->find(kMark); at != log->npos; at = log->find(kMark, at + 1)) {
    ++count;
    last = std::string_view(*log).substr(at + kMark.size() - 1, std::min<std::size_t>(60, log->find('\n', at) - at));
  }
  if (count == 0) return Finding::ok("none in the kernel's log");
  last = last.substr(0, last.find_first_of(",\n"));
  return Finding::risk(fmt::format("{}, the last: {}", count, last),
                       "a GPU reported faults since the start of the host; look its number up in NVIDIA's list of Xid "
                       "errors");
}

}  // namespace tutti::internal
