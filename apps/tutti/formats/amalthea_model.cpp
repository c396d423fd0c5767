#include "apps/tutti/formats/amalthea_model.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <set>
#include <span>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "apps/tutti/formats/xml_element.hpp"
#include "model/base/document.hpp"
#include "model/base/input_file.hpp"
#include "model/base/joined.hpp"

namespace tutti::internal {
namespace {

constexpr std::size_t kLargestModel = 64U << 20;
constexpr std::int64_t kMostTicks = 1'000'000'000'000'000;  // 11 days at 1 GHz
constexpr std::int64_t kMostBytes = 1'000'000'000'000;      // 1 TB
constexpr std::int64_t kLongestTime = 86'400'000'000'000;   // a day, in ns
constexpr double kLeastHz = 1e3, kMostHz = 1e12;
constexpr std::string_view kNamespace = "http://app4mc.eclipse.org/amalthea/";

/// "Ticks" of xsi:type="am:Ticks".
std::string type_of(const XmlElement& element) {
  const std::string type = element.attribute("type");
  return type.substr(type.find(':') + 1);
}

std::string name_of(const XmlElement& element) {
  const std::string name = element.attribute("name");
  if (name.empty())
    fail(element.place(),
         fmt::format("this <{}> has no name, by which others refer to it; give it one", element.name()));
  return name;
}

/// A name in a reference, where "GPU%20island" is "GPU island".
std::string without_escapes(std::string_view reference) {
  std::string text;
  for (std::size_t i = 0; i < reference.size(); ++i) {
    unsigned code = 0;
    const bool escaped =
        reference[i] == '%' && i + 2 < reference.size() &&
        std::from_chars(reference.data() + i + 1, reference.data() + i + 3, code, 16).ptr == reference.data() + i + 3;
    text += escaped ? static_cast<char>(code) : reference[i];
    i += escaped ? 2 : 0;
  }
  return text;
}

/// The names in an attribute like "Core0?type=ProcessingUnit Core1?type=ProcessingUnit".
std::vector<std::string> references_in(const XmlElement& element, const char* key) {
  std::vector<std::string> names;
  const std::string text = element.attribute(key);
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(' ', begin), text.size());
    const std::string_view word = std::string_view(text).substr(begin, end - begin);
    if (!word.empty()) names.push_back(without_escapes(word.substr(0, word.find('?'))));
    begin = end + 1;
  }
  return names;
}

std::string reference_in(const XmlElement& element, const char* key) {
  const std::vector<std::string> names = references_in(element, key);
  if (names.size() != 1)
    fail(element.place(), fmt::format("<{}> names {} parts by '{}'; it names one", element.name(), names.size(), key));
  return names.front();
}

std::optional<XmlElement> child_of(const XmlElement& element, std::string_view name) {
  for (const XmlElement& child : element.children())
    if (child.name() == name) return child;
  return std::nullopt;
}

XmlElement needed_child(const XmlElement& element, std::string_view name, std::string_view of) {
  const auto child = child_of(element, name);
  if (!child) fail(element.place(), fmt::format("{} has no <{}>; add it", of, name));
  return *child;
}

// ---- quantities

struct Unit {
  std::string_view name;
  double factor;
};
constexpr std::array kTimes{Unit{"s", 1e9}, Unit{"ms", 1e6}, Unit{"us", 1e3}, Unit{"ns", 1}, Unit{"ps", 1e-3}};
constexpr std::array kFrequencies{Unit{"Hz", 1}, Unit{"kHz", 1e3}, Unit{"MHz", 1e6}, Unit{"GHz", 1e9}};
constexpr double kKi = 1024;
constexpr std::array kSizes{Unit{"bit", 1. / 8},
                            Unit{"kbit", 1e3 / 8},
                            Unit{"Mbit", 1e6 / 8},
                            Unit{"Gbit", 1e9 / 8},
                            Unit{"kibit", kKi / 8},
                            Unit{"Mibit", kKi* kKi / 8},
                            Unit{"Gibit", kKi* kKi* kKi / 8},
                            Unit{"B", 1},
                            Unit{"kB", 1e3},
                            Unit{"MB", 1e6},
                            Unit{"GB", 1e9},
                            Unit{"kiB", kKi},
                            Unit{"MiB", kKi* kKi},
                            Unit{"GiB", kKi* kKi* kKi}};

/// The number that a text is as a whole.
std::optional<double> real_in(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

/// The attributes `value` and `unit`, in the base unit.
double quantity(const XmlElement& element, std::span<const Unit> units, double least, double most,
                std::string_view range) {
  const std::string text = element.attribute("value"), unit = element.attribute("unit");
  const auto known = std::ranges::find(units, unit, &Unit::name);
  if (known == units.end())
    fail(element.place(),
         fmt::format("'{:.80}' is no unit of <{}>; write one such as {}", unit, element.name(), units.front().name));
  const auto value = real_in(text);
  const double scaled = value.value_or(0) * known->factor;
  if (!value || !(scaled >= least && scaled <= most))
    fail(element.place(), fmt::format("'{:.80} {}' is no {}; write {}", text, unit, element.name(), range));
  return scaled;
}

/// @param rounding  to the safe side: a period down, a jitter up
Duration time_in(const XmlElement& element, Rounding rounding, double least) {
  const double ns = quantity(element, kTimes, least, static_cast<double>(kLongestTime),
                             least > 0 ? "a time from 1 ns to a day" : "a time from 0 to a day");
  return Duration(static_cast<std::int64_t>(rounding == Rounding::Up ? std::ceil(ns) : std::floor(ns)));
}

Bytes size_in(const XmlElement& element) {
  return Bytes{static_cast<std::int64_t>(
      std::ceil(quantity(element, kSizes, 0, static_cast<double>(kMostBytes), "a size from 0 to 1 TB")))};
}

// ---- steps

/// A value of ticks, of any of the format's distributions that has an upper bound.
AmaltheaTicks ticks_in(const XmlElement& value) {
  const std::string type = type_of(value);
  if (type == "DiscreteValueConstant") {
    const auto ticks = value.whole<std::int64_t>("value", 0, kMostTicks);
    return {ticks, ticks};
  }
  if (value.attribute("upperBound").empty())
    fail(value.place(),
         fmt::format("these ticks ('{:.80}') have no upperBound, which a longest time needs; add one", type));
  AmaltheaTicks ticks;
  ticks.most = value.whole<std::int64_t>("upperBound", 0, kMostTicks);
  if (!value.attribute("lowerBound").empty()) (void)value.whole<std::int64_t>("lowerBound", 0, ticks.most);
  ticks.usual = ticks.most;
  const std::string average = value.attribute("average");
  if (average.empty()) return ticks;
  const auto usual = real_in(average);
  if (!usual || !(*usual >= 0 && *usual <= static_cast<double>(ticks.most)))
    fail(value.place(), fmt::format("'{:.80}' is no average of ticks; it is a number from 0 to upperBound", average));
  ticks.usual = static_cast<std::int64_t>(std::ceil(*usual));
  return ticks;
}

AmaltheaStep ticks_step(const XmlElement& item) {
  AmaltheaStep step{.place = item.place()};
  for (const XmlElement& child : item.children()) {
    if (child.name() == "default") step.ticks_elsewhere = ticks_in(child);
    if (child.name() == "extended")
      step.ticks[reference_in(child, "key")] = ticks_in(needed_child(child, "value", "these ticks of a processor"));
  }
  if (step.ticks.empty() && !step.ticks_elsewhere)
    fail(item.place(), "these ticks have no value; add <extended> for a processor, or <default>");
  return step;
}

AmaltheaStep access_step(const XmlElement& item) {
  const std::string access = item.attribute("access");
  if (access != "read" && access != "write")
    fail(item.place(), fmt::format("'{:.80}' is no access to a label; it is 'read' or 'write'", access));
  return {.kind = access == "read" ? AmaltheaStep::Kind::Read : AmaltheaStep::Kind::Write,
          .target = reference_in(item, "data"),
          .place = item.place()};
}

/// Kinds of steps whose course or length depends on more than the file says.
constexpr std::array<std::string_view, 7> kConditional{"Switch",           "ModeSwitch",    "RunnableModeSwitch",
                                                       "WhileLoop",        "ExecutionNeed", "RunnableProbabilitySwitch",
                                                       "ProbabilitySwitch"};

class ModelReader {
 public:
  AmaltheaModel read(const XmlElement& root) {
    model_.file = root.place().file;
    for (const XmlElement& part : root.children()) {
      const std::string name(part.name());
      for (const XmlElement& child : part.children())
        if (!read_child(name, child)) ++model_.left_out[fmt::format("{}: {}", name, child.name())];
    }
    if (model_.processes.empty())
      fail(root.place(), "there is no task in this model; give one with <tasks> in its <swModel>");
    return std::move(model_);
  }

 private:
  /// @return whether a part of a task set is made of it
  bool read_child(const std::string& part, const XmlElement& child) {
    if (part == "swModel") return read_software(child);
    if (part == "hwModel") return read_hardware(child, 0);
    if (part == "stimuliModel" && child.name() == "stimuli") return add_stimulus(child), true;
    if (part == "constraintsModel" && child.name() == "requirements") return add_deadline(child);
    if (part == "mappingModel") return read_mapping(child);
    return false;
  }

  bool read_mapping(const XmlElement& child) {
    if (child.name() == "schedulerAllocation")
      model_.schedulers[reference_in(child, "scheduler")] = {references_in(child, "responsibility"), child.place()};
    else if (child.name() == "taskAllocation")
      model_.allocations[reference_in(child, "task")] = {{reference_in(child, "scheduler")}, child.place()};
    else if (child.name() == "isrAllocation")
      model_.allocations[reference_in(child, "isr")] = {{reference_in(child, "controller")}, child.place()};
    else
      return false;
    return true;
  }

  bool read_software(const XmlElement& child) {
    if (child.name() == "tasks" || child.name() == "isrs") {
      AmaltheaProcess process = process_in(child);
      process.stimuli = references_in(child, "stimuli");
      if (!names_.insert(process.name).second) fail_twice(child);
      model_.processes.push_back(std::move(process));
      return true;
    }
    if (child.name() == "runnables") return add(model_.runnables, child, process_in(child));
    if (child.name() == "labels")
      return add(model_.labels, child,
                 {size_in(needed_child(child, "size", fmt::format("label '{:.80}'", name_of(child)))), child.place()});
    return false;
  }

  bool read_hardware(const XmlElement& element, int level) {
    check_level(element, level, "any hardware");
    const std::string type = type_of(element);
    if (type == "ProcessingUnitDefinition")
      return add(model_.definitions, element, element.attribute("puType") == "GPU");
    if (type == "ProcessingUnit") {
      model_.units.push_back({name_of(element), reference_in(element, "definition"),
                              reference_in(element, "frequencyDomain"), element.place()});
      return true;
    }
    if (type == "FrequencyDomain") {
      const auto value = needed_child(element, "defaultValue", fmt::format("frequency domain '{}'", name_of(element)));
      const double hz = quantity(value, kFrequencies, kLeastHz, kMostHz, "a frequency from 1 kHz to 1000 GHz");
      return add(model_.frequencies, element, static_cast<std::int64_t>(std::floor(hz)));
    }
    if (element.name() != "structures") return false;
    for (const XmlElement& child : element.children())
      if (!read_hardware(child, level + 1)) ++model_.left_out[fmt::format("hwModel: {}", kind_of(child))];
    return true;
  }

  static std::string kind_of(const XmlElement& element) {
    const std::string type = type_of(element);
    return type.empty() ? std::string(element.name()) : type;
  }

  void add_stimulus(const XmlElement& element) {
    const std::string type = type_of(element), name = name_of(element);
    AmaltheaStimulus stimulus{.place = element.place()};
    stimulus.periodic = type == "PeriodicStimulus";
    if (!stimulus.periodic && type != "InterProcessStimulus")
      fail(element.place(), fmt::format("stimulus '{:.80}' is a '{:.80}'; tasks are made of PeriodicStimulus and "
                                        "InterProcessStimulus alone",
                                        name, type));
    if (stimulus.periodic)
      stimulus.period =
          time_in(needed_child(element, "recurrence", fmt::format("stimulus '{:.80}'", name)), Rounding::Down, 1);
    for (const XmlElement& child : element.children()) {
      if (child.name() == "offset")
        stimulus.offset = time_in(child, Rounding::Down, 0);
      else if (child.name() == "jitter")
        stimulus.jitter = time_in(needed_child(child, "upperBound", "this jitter"), Rounding::Up, 0);
      else if (child.name() != "recurrence")
        ++model_.left_out[fmt::format("stimuli: {}", child.name())];
    }
    (void)add(model_.stimuli, element, std::move(stimulus));
  }

  bool add_deadline(const XmlElement& element) {
    const auto limit = child_of(element, "limit");
    if (type_of(element) != "ProcessRequirement" || !limit || type_of(*limit) != "TimeRequirementLimit" ||
        limit->attribute("limitType") != "UpperLimit" || limit->attribute("metric") != "ResponseTime")
      return false;
    model_.deadlines.push_back({reference_in(element, "process"),
                                time_in(needed_child(*limit, "limitValue", "this limit"), Rounding::Down, 1),
                                element.place()});
    return true;
  }

  AmaltheaProcess process_in(const XmlElement& element) {
    AmaltheaProcess process{.name = name_of(element), .place = element.place()};
    if (const auto older = child_of(element, "callGraph"))
      fail(older->place(), "steps stand in a <callGraph>, as before AMALTHEA 1.0; migrate the model with APP4MC");
    if (const auto graph = child_of(element, "activityGraph")) add_steps(*graph, process.steps, 0);
    return process;
  }

  void add_steps(const XmlElement& parent, std::vector<AmaltheaStep>& steps, int level) {
    check_level(parent, level, "any task");
    for (const XmlElement& item : parent.children()) {
      const std::string type = type_of(item);
      if (std::ranges::count(kConditional, type) > 0)
        fail(item.place(), fmt::format("a '{}' stands here; tutti needs one course of steps, each with its longest "
                                       "time in ticks",
                                       type));
      if (type == "Group")
        add_steps(item, steps, level + 1);
      else if (auto step = step_in(item, type))
        steps.push_back(*std::move(step));
      else
        ++model_.left_out[fmt::format("steps: {}", type.empty() ? std::string(item.name()) : type)];
    }
  }

  static std::optional<AmaltheaStep> step_in(const XmlElement& item, const std::string& type) {
    using Kind = AmaltheaStep::Kind;
    if (type == "Ticks") return ticks_step(item);
    if (type == "LabelAccess") return access_step(item);
    if (type == "RunnableCall")
      return AmaltheaStep{.kind = Kind::Call, .target = reference_in(item, "runnable"), .place = item.place()};
    if (type == "InterProcessTrigger")
      return AmaltheaStep{.kind = Kind::Trigger, .target = reference_in(item, "stimulus"), .place = item.place()};
    if (type == "WaitEvent") {
      const auto mask = child_of(item, "eventMask");
      const std::vector<std::string> events = mask ? references_in(*mask, "events") : std::vector<std::string>{};
      return AmaltheaStep{.kind = Kind::Wait,
                          .target = joined(events),
                          .active = item.attribute("waitingBehaviour") == "active",
                          .place = item.place()};
    }
    return std::nullopt;
  }

  [[noreturn]] static void fail_twice(const XmlElement& element) {
    fail(element.place(), fmt::format("a second one of <{}> has the name '{:.80}'; give it another name",
                                      element.name(), name_of(element)));
  }
  template <class Value>
  static bool add(std::map<std::string, Value>& values, const XmlElement& element, Value value) {
    if (!values.emplace(name_of(element), std::move(value)).second) fail_twice(element);
    return true;
  }

  AmaltheaModel model_;
  std::set<std::string> names_;  ///< of processes
};

AmaltheaModel read_model(const std::string& text, const std::string& name) {
  if (text.find_first_not_of(" \t\r\n") == std::string::npos)
    fail({name, 1, 1}, "the file is empty; give an AMALTHEA model (.amxmi)");
  const XmlDocument document = parse_xml(text, name, "APP4MC does");
  const XmlElement root(xmlDocGetRootElement(document.get()), name);
  const xmlNs* const space = xmlDocGetRootElement(document.get())->ns;
  const std::string_view uri =
      space != nullptr && space->href != nullptr ? reinterpret_cast<const char*>(space->href) : "";
  if (root.name() != "Amalthea" || !uri.starts_with(kNamespace))
    fail(root.place(), fmt::format("'{:.80}' is the root of no AMALTHEA model; that is 'Amalthea' of {}VERSION",
                                   root.name(), kNamespace));
  return ModelReader().read(root);
}

}  // namespace

Expected<AmaltheaModel> parse_amalthea(const std::string& text, const std::string& name) {
  return reading([&] { return read_model(text, name); });
}

Expected<AmaltheaModel> load_amalthea(const std::string& path) {
  const auto text = read_bytes_of(path, "an AMALTHEA model", kLargestModel);
  if (!text) return tl::unexpected(text.error());
  if (text->size() > kLargestModel) return invalid_input("above 64 MiB; no model is", {path, 0, 0});
  return parse_amalthea(*text, path);
}

}  // namespace tutti::internal
