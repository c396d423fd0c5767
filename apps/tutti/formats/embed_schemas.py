#!/usr/bin/env python3
"""Writes a source with the texts of schemas. Arguments: the schemas, then the source."""
import pathlib
import sys

*schemas, source = map(pathlib.Path, sys.argv[1:])
rows = [f'    OutputSchema{{"{path.stem}", R"json({path.read_text(encoding="utf-8")})json"}},\n' for path in schemas]
source.write_text('#include "apps/tutti/formats/output_schemas.hpp"\n\n#include <array>\n\nnamespace tutti::internal {\nnamespace {\n\n'
                  f"constexpr std::array kOutputSchemas{{\n{''.join(rows)}}};\n\n}}  // namespace\n\n"
                  "std::span<const OutputSchema> output_schemas() { return kOutputSchemas; }\n\n}  // namespace tutti::internal\n", encoding="utf-8")
