// What cores do beside the work of tasks: they change their clock rate, sleep, and run other programs.
#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <map>
#include <set>
#include <system_error>

#include <fmt/format.h>

#include "runtime/doctor/host_checks.hpp"
#include "runtime/doctor/processor_times.hpp"

namespace tutti::internal {
namespace {

const std::string kCores = "sys/devices/system/cpu";

std::string folder_of(int core) { return fmt::format("{}/cpu{}", kCores, core); }

std::string_view plural(std::size_t count) { return count == 1 ? "" : "s"; }

/// "core 3" or "cores 2,3".
std::string core_words(const std::vector<int>& cores) {
  return fmt::format("core{} {}", plural(cores.size()), list_of_cores(cores));
}

Finding no_cores() {
  return Finding::unread("which cores there are", "mount /proc and /sys, or name the cores (--cores)");
}

/// The cores of the first list that the second leaves out.
std::vector<int> missing_in(const std::vector<int>& cores, const std::vector<int>& list) {
  std::vector<int> missing;
  std::ranges::set_difference(cores, list, std::back_inserter(missing));
  return missing;
}

/// A state that a core may sleep in.
struct IdleState {
  std::string name = "none";
  std::int64_t wakes_us = 0;
};

/// The deepest state that is switched on, among those that wake within the limit; nothing where none can be read.
std::optional<IdleState> deepest_state(const HostQuestion& question, std::int64_t limit_us) {
  std::optional<IdleState> deepest;
  for (const int core : question.cores) {
    const std::string states = folder_of(core) + "/cpuidle";
    for (const std::string& name : question.files.entries(states)) {
      const std::string state = states + "/" + name;
      const auto wakes = question.files.number(state + "/latency");
      if (!wakes) continue;
      if (!deepest) deepest.emplace();
      const bool is_off = question.files.number(state + "/disable").value_or(0) != 0;
      if (is_off || *wakes > limit_us || *wakes < deepest->wakes_us) continue;
      deepest = {question.files.text(state + "/name").value_or(name), *wakes};
    }
  }
  return deepest;
}

/// The latency that programs ask the kernel for, us; a file of four bytes.
std::optional<std::int64_t> asked_latency_us(const HostFiles& files) {
  const auto contents = files.bytes("dev/cpu_dma_latency");
  std::int32_t us = 0;
  if (!contents || contents->size() != sizeof us) return std::nullopt;
  std::memcpy(&us, contents->data(), sizeof us);
  return us;
}

/// The cores that an interrupt may come to; nothing where the host does not say.
std::optional<std::vector<int>> cores_of_interrupt(const HostFiles& files, const std::string& number) {
  for (const char* const list : {"effective_affinity_list", "smp_affinity_list"})
    if (auto cores = files.cores(fmt::format("proc/irq/{}/{}", number, list)); cores && !cores->empty()) return cores;
  return std::nullopt;
}

}  // namespace

Finding check_governor(const HostQuestion& question) {
  std::map<std::string, std::size_t> governors;
  for (const int core : question.cores)
    if (const auto name = question.files.text(folder_of(core) + "/cpufreq/scaling_governor"))
      ++governors[name->substr(0, kLongestName)];
  if (governors.empty())
    return Finding::unread("no cpufreq",
                           "the firmware or the hypervisor chooses the clock rates of cores; set them there");
  std::string value;
  for (const auto& [name, count] : governors)
    value +=
        fmt::format("{}{} of {} core{}", value.empty() ? "" : ", ", name.empty() ? "?" : name, count, plural(count));
  return Finding::risk_if(governors.size() > 1 || governors.begin()->first != "performance", std::move(value),
                          "a core that wakes is slow at first; set performance: cpupower frequency-set -g performance");
}

Finding check_boost(const HostQuestion& question) {
  auto boost = question.files.number(kCores + "/cpufreq/boost");
  if (const auto off = question.files.number(kCores + "/intel_pstate/no_turbo"); !boost && off) boost = *off == 0;
  if (!boost) return Finding::unread("no switch for boost", "if cores boost, switch it off in the firmware");
  return Finding::risk_if(*boost != 0, *boost != 0 ? "on" : "off",
                          "clock rates depend on temperature and on other cores, so host steps may take longer than "
                          "they were measured; write 0 to /sys/devices/system/cpu/cpufreq/boost, or 1 to "
                          "intel_pstate/no_turbo, before you measure");
}

Finding check_idle_states(const HostQuestion& question) {
  const auto asked = asked_latency_us(question.files);
  const auto deepest = deepest_state(question, asked.value_or(INT32_MAX));
  if (!deepest) return Finding::unread("no cpuidle", "the hypervisor or the firmware lets cores sleep; see there");
  std::string value = fmt::format("{} wakes in {} us, cpu_dma_latency {}", deepest->name, deepest->wakes_us,
                                  asked ? fmt::format("{} us", *asked) : "not readable");
  if (question.priority > 0 && asked) return Finding::ok(value + "; a run with --priority keeps cores awake");
  return Finding::risk_if(deepest->wakes_us > kWakeLimitUs, std::move(value),
                          "a core that sleeps deeply wakes late; run with --priority and the right to write "
                          "/dev/cpu_dma_latency, or boot with processor.max_cstate=1 intel_idle.max_cstate=1, on arm64 "
                          "cpuidle.off=1");
}

Finding check_core_throttling(const HostQuestion& question) {
  std::optional<std::int64_t> most;
  for (const int core : question.cores)
    for (const char* const counter : {"core_throttle_count", "package_throttle_count"})
      if (const auto count = question.files.number(fmt::format("{}/thermal_throttle/{}", folder_of(core), counter)))
        most = std::max(most.value_or(0), *count);
  if (!most) return Finding::unread("no counters", "watch the temperature of the cores in another way");
  return Finding::risk_if(*most > 0, fmt::format("{} time{} since the start", *most, *most == 1 ? "" : "s"),
                          "cores were slowed down because they were hot; see to the cooling");
}

Finding check_isolation(const HostQuestion& question) {
  const auto isolated = question.files.cores(kCores + "/isolated");
  if (question.own.empty()) return no_cores();
  if (!isolated) return Finding::unread("no list of isolated cores", "mount /sys");
  const std::vector<int> shared = missing_in(question.own, *isolated);
  if (shared.empty()) return Finding::ok(core_words(question.own) + " isolated");
  return Finding::risk(core_words(shared) + " not isolated",
                       fmt::format("the scheduler may put other programs there; boot with isolcpus={}, and name them "
                                   "(--cores)",
                                   list_of_cores(question.own)));
}

Finding check_ticks(const HostQuestion& question) {
  const auto without = question.files.cores(kCores + "/nohz_full");
  if (question.own.empty()) return no_cores();
  if (!without)
    return Finding::unread("no nohz_full",
                           "the kernel cannot stop the timer tick of a core; one built with "
                           "CONFIG_NO_HZ_FULL can");
  const std::vector<int> ticking = missing_in(question.own, *without);
  if (ticking.empty()) return Finding::ok(core_words(question.own) + " without ticks");
  return Finding::risk(core_words(ticking) + " with ticks",
                       fmt::format("the timer interrupts them up to 1000 times a second; boot with nohz_full={}",
                                   list_of_cores(question.own)));
}

Finding check_interrupts(const HostQuestion& question) {
  std::size_t known = 0, there = 0;
  for (const std::string& number : question.files.entries("proc/irq")) {
    const auto cores = cores_of_interrupt(question.files, number);
    if (!cores) continue;
    ++known;
    if (missing_in(question.own, *cores).size() < question.own.size()) ++there;
  }
  if (question.own.empty()) return no_cores();
  if (known == 0) return Finding::unread("no interrupts in /proc/irq", "mount /proc of the host");
  return Finding::risk_if(there > 0, fmt::format("{} of {} on {}", there, known, core_words(question.own)),
                          "devices interrupt the threads that keep the time; write other cores to "
                          "/proc/irq/N/smp_affinity_list, and keep irqbalance off these");
}

Finding check_siblings(const HostQuestion& question) {
  const auto isolated = question.files.cores(kCores + "/isolated").value_or(std::vector<int>{});
  std::set<int> busy;  // siblings that may run something
  bool known = false;
  for (const int core : question.own) {
    const auto siblings = question.files.cores(folder_of(core) + "/topology/thread_siblings_list");
    if (!siblings) continue;
    known = true;
    for (const int sibling : *siblings) {
      const bool is_idle =
          std::ranges::binary_search(isolated, sibling) && !std::ranges::binary_search(question.own, sibling);
      if (sibling != core && !is_idle) busy.insert(sibling);
    }
  }
  if (question.own.empty()) return no_cores();
  if (!known) return Finding::unread("no topology of the cores", "mount /sys");
  if (busy.empty()) return Finding::ok("none that runs other work");
  return Finding::risk(fmt::format("{} beside {}", core_words({busy.begin(), busy.end()}), core_words(question.own)),
                       "they share the execution units of the threads that keep the time; name one core of a pair and "
                       "isolate the other one, or switch SMT off");
}

Finding check_load(const HostQuestion& question) {
  const std::string text = question.files.text("proc/loadavg").value_or("");
  double load = -1;  // it is followed by a space
  const auto [stop, fault] = std::from_chars(text.data(), text.data() + text.size(), load);
  if (fault != std::errc{} || stop == text.data() + text.size() || *stop != ' ' || !(load >= 0 && load < 1e6) ||
      question.cores.empty())
    return Finding::unread("no load average", "mount /proc");
  const std::size_t left = question.cores.size() - std::min(question.cores.size(), question.own.size());
  return Finding::risk_if(
      load > static_cast<double>(left),
      fmt::format("{:.2f} in the last minute, {} core{}", load, question.cores.size(), plural(question.cores.size())),
      "other programs need more cores than the threads that keep the time leave; stop some");
}

Finding check_busy_cores(const HostQuestion& question) {
  if (question.own.empty()) return no_cores();
  double busiest = -1;
  for (const int core : question.own)
    if (const auto share = busy_share(question.processor_times, fmt::format("cpu{} ", core)))
      busiest = std::max(busiest, *share);
  if (busiest < 0) return Finding::unread("no times in /proc/stat", "look at top while nothing of yours runs");
  return Finding::risk_if(busiest > kBusyLimit,
                          fmt::format("{} busy up to {:.0f} %", core_words(question.own), 100 * busiest),
                          "other programs run there now; stop them, or name other cores (--cores)");
}

}  // namespace tutti::internal
