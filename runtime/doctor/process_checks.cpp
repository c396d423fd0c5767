// What the process may ask for, and where its memory lies.
#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <set>

#include <fmt/format.h>

#include "model/base/joined.hpp"
#include "runtime/doctor/host_checks.hpp"

namespace tutti::internal {
namespace {

// Numbers of capabilities, as in linux/capability.h.
constexpr int kMayLockMemory = 14;
constexpr int kMaySetPriorities = 23;

bool has_capability(const HostFiles& files, int number) {
  const std::string status = files.bytes("proc/self/status").value_or("");
  const std::string_view mask = rest_of_line(status, "CapEff:").value_or("");
  std::uint64_t bits = 0;
  const auto [stop, fault] = std::from_chars(mask.data(), mask.data() + mask.size(), bits, 16);
  return fault == std::errc{} && stop == mask.data() + mask.size() && (bits >> number & 1) != 0;
}

constexpr std::int64_t kUnlimited = std::numeric_limits<std::int64_t>::max();

/// The soft limit of that name in "proc/self/limits"; nothing where it cannot be read.
std::optional<std::int64_t> limit_of(const HostFiles& files, std::string_view name) {
  const std::string limits = files.bytes("proc/self/limits").value_or("");
  const auto words = words_of(rest_of_line(limits, name).value_or(""));
  if (words.empty()) return std::nullopt;
  return words.front() == "unlimited" ? kUnlimited : whole_number(words.front());
}

/// kB of a line of "proc/meminfo".
std::optional<std::int64_t> memory_kb(std::string_view meminfo, std::string_view line) {
  const auto words = words_of(rest_of_line(meminfo, line).value_or(""));
  return words.empty() ? std::nullopt : whole_number(words.front());
}

/// The word in brackets: "madvise" of "always [madvise] never".
std::string chosen_word(std::string_view text) {
  const std::size_t open = text.find('[');
  const std::size_t close = text.find(']', open == text.npos ? 0 : open);
  if (open == text.npos || close == text.npos) return "";
  return std::string(text.substr(open + 1, close - open - 1));
}

/// "2.00 cores in each 100000 us"; empty where the texts are no quota, or there is none.
std::string quota_words(std::string_view most, std::string_view period) {
  const auto used = whole_number(most);
  const auto each = whole_number(period);
  if (!used || !each || *used < 0 || *each <= 0) return "";
  return fmt::format("{:.2f} cores in each {} us", static_cast<double>(*used) / static_cast<double>(*each), *each);
}

/// The first quota of a group or of those above it; empty where there is none.
/// @param group  relative to the root of all groups
std::string quota_words(const HostFiles& files, std::filesystem::path group) {
  const std::string root = "sys/fs/cgroup";
  const std::string older = root + "/cpu/cpu.cfs_";  // version 1: a container sees its own group as the root
  std::string words =
      quota_words(files.text(older + "quota_us").value_or(""), files.text(older + "period_us").value_or(""));
  for (bool is_root = false; words.empty() && !is_root; group = group.parent_path()) {
    const std::string quota = files.text((root / group / "cpu.max").string()).value_or("");
    if (const auto parts = words_of(quota); parts.size() == 2) words = quota_words(parts[0], parts[1]);
    is_root = group.empty() || group == group.parent_path();
  }
  return words;
}

/// The nodes of memory that these cores belong to.
std::set<int> nodes_of_cores(const HostQuestion& question) {
  std::set<int> nodes;
  for (const std::string& name : question.files.entries("sys/devices/system/node")) {
    const auto number = name.starts_with("node") ? whole_number(name.substr(4)) : std::nullopt;
    const auto cores = question.files.cores(fmt::format("sys/devices/system/node/{}/cpulist", name));
    if (!number || !cores) continue;
    const auto is_there = [&](int core) { return std::ranges::binary_search(*cores, core); };
    if (std::ranges::any_of(question.own, is_there)) nodes.insert(static_cast<int>(*number));
  }
  return nodes;
}

std::string list_of(const std::set<int>& nodes) { return list_of_cores(std::vector<int>(nodes.begin(), nodes.end())); }

}  // namespace

Finding check_priority_limit(const HostQuestion& question) {
  if (has_capability(question.files, kMaySetPriorities)) return Finding::ok("any (CAP_SYS_NICE)");
  const auto most = limit_of(question.files, "Max realtime priority");
  if (!most) return Finding::unread("no limit in /proc/self/limits", "mount /proc");
  const std::int64_t wanted = question.priority + 1;  // the thread that opens gates has one more
  return Finding::risk_if(*most < wanted, fmt::format("{} at most", *most),
                          fmt::format("threads cannot have SCHED_FIFO priority, so they wait for others on their "
                                      "cores; allow {} (ulimit -r) or CAP_SYS_NICE",
                                      question.priority > 0 ? wanted : 99));
}

Finding check_memory_limit(const HostQuestion& question) {
  if (has_capability(question.files, kMayLockMemory)) return Finding::ok("any (CAP_IPC_LOCK)");
  const auto most = limit_of(question.files, "Max locked memory");
  if (!most) return Finding::unread("no limit in /proc/self/limits", "mount /proc");
  if (*most == kUnlimited) return Finding::ok("unlimited");
  return Finding::risk(fmt::format("{} B at most", *most),
                       "memory cannot be locked, so a start may wait for a page; allow it (ulimit -l unlimited, "
                       "CAP_IPC_LOCK)");
}

Finding check_pollers(const HostQuestion& question) {
  // As /proc/PID/comm has them: 15 letters.
  constexpr std::array<std::string_view, 7> kPollers{"nvidia-smi", "nvtop",           "gpustat",      "dcgm-exporter",
                                                     "dcgmi",      "nvidia_gpu_expo", "nv-hostengine"};
  std::set<std::string> found;
  bool any = false;
  for (const std::string& entry : question.files.entries("proc")) {
    if (!whole_number(entry)) continue;
    any = true;
    const std::string name = question.files.text("proc/" + entry + "/comm").value_or("");
    if (std::ranges::count(kPollers, name) > 0) found.insert(name);
  }
  if (!any) return Finding::unread("no processes in /proc", "mount /proc");
  if (found.empty()) return Finding::ok("none");
  return Finding::risk(joined(std::vector<std::string>(found.begin(), found.end())),
                       "they ask the driver again and again, which holds up copies and launches of others for up to "
                       "milliseconds; stop them while deadlines count");
}

Finding check_quota(const HostQuestion& question) {
  const std::string groups = question.files.bytes("proc/self/cgroup").value_or("");
  const auto own = rest_of_line(groups, "0::/");
  const std::filesystem::path group = std::filesystem::path(own.value_or("..")).lexically_normal();
  if (group.is_absolute() || *group.begin() == ".." || !question.files.has_folder("sys/fs/cgroup"))
    return Finding::unread("no group of the process", "look for a CPU quota in the set-up of the container");
  const std::string quota = quota_words(question.files, group);
  return Finding::risk_if(!quota.empty(), quota.empty() ? "none" : quota,
                          "all threads are stopped until the period ends when they have used it up; take the quota of "
                          "the group away (cpu.max)");
}

Finding check_swap(const HostQuestion& question) {
  const std::string meminfo = question.files.bytes("proc/meminfo").value_or("");
  const auto total = memory_kb(meminfo, "SwapTotal:");
  const auto free = memory_kb(meminfo, "SwapFree:");
  if (!total || !free) return Finding::unread("no SwapTotal in /proc/meminfo", "mount /proc");
  if (*total == 0) return Finding::ok("none");
  return Finding::risk_if(*free < *total, fmt::format("{} of {} kB used", *total - *free, *total),
                          "a page that was swapped out takes milliseconds to come back; free memory, then swapoff -a, "
                          "or run with --priority, which locks memory");
}

Finding check_huge_pages(const HostQuestion& question) {
  const std::string state = chosen_word(question.files.text("sys/kernel/mm/transparent_hugepage/enabled").value_or(""));
  if (state.empty()) return Finding::unread("no state of transparent huge pages", "mount /sys");
  return Finding::risk_if(state == "always", state,
                          "the kernel stops threads while it joins their pages; write madvise to "
                          "/sys/kernel/mm/transparent_hugepage/enabled");
}

Finding check_memory_nodes(const HostQuestion& question) {
  const std::set<int> nodes = nodes_of_cores(question);
  if (nodes.empty()) return Finding::unread("no memory nodes in /sys/devices/system/node", "mount /sys");
  std::set<int> of_gpus;
  for (const std::string& gpu : question.gpus)
    if (const auto node = question.files.number(fmt::format("sys/bus/pci/devices/{}/numa_node", gpu));
        node.value_or(-1) >= 0)
      of_gpus.insert(static_cast<int>(*node));
  std::string value = fmt::format("core{} {} at node {}", question.own.size() == 1 ? "" : "s",
                                  list_of_cores(question.own), list_of(nodes));
  if (!of_gpus.empty()) value += fmt::format(", GPUs at {}", list_of(of_gpus));
  std::set<int> all = nodes;
  all.insert(of_gpus.begin(), of_gpus.end());
  return Finding::risk_if(all.size() > 1, std::move(value),
                          "signals and data cross the link between processors; name cores at the node of the GPUs "
                          "(--cores), or give the GPUs of each node tasks of their own");
}

Finding check_balancing(const HostQuestion& question) {
  const auto state = question.files.number("proc/sys/kernel/numa_balancing");
  if (!state) {
    const auto nodes = question.files.cores("sys/devices/system/node/online");
    if (nodes && nodes->size() == 1) return Finding::ok("one memory node");
    return Finding::unread("no numa_balancing", "mount /proc; a kernel without CONFIG_NUMA_BALANCING has none");
  }
  return Finding::risk_if(*state != 0, *state != 0 ? "on" : "off",
                          "the kernel takes pages away to see who uses them, and moves them; sysctl "
                          "kernel.numa_balancing=0");
}

}  // namespace tutti::internal
