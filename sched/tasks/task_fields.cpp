#include "sched/tasks/task_fields.hpp"

namespace tutti::internal {

std::optional<HostStepSpec> Form<std::optional<HostStepSpec>>::read(Reader& reader, const Node& node,
                                                                    const FieldRules& rules) {
  if (node.kind == Node::Kind::Map) return Form<HostStepSpec>::read(reader, node, rules);
  return HostStepSpec(read_duration(node, rules.rounding));
}

Node Form<std::optional<HostStepSpec>>::write(const std::optional<HostStepSpec>& step) {
  if (*step == HostStepSpec(step->time)) return scalar_node(to_string(step->time));
  return Form<HostStepSpec>::write(*step);
}

std::string Form<std::optional<HostStepSpec>>::schema(const FieldRules& rules) {
  return schema_of_any(std::array{Form<Duration>::schema(rules), Form<HostStepSpec>::schema(rules)});
}

void Form<std::optional<HostStepSpec>>::check(const std::optional<HostStepSpec>& step, const FieldRules& rules,
                                              Faults& faults, const std::string& path) {
  if (step) Form<HostStepSpec>::check(*step, rules, faults, path);
}

}  // namespace tutti::internal
