"""Makes a C++ source that holds page.html: embed.py page.html FILE.cpp."""
import pathlib
import sys

page, made = map(pathlib.Path, sys.argv[1:3])
LITERAL = 60  # bytes a line
ESCAPES = {ord('"'): '\\"', ord("\\"): "\\\\", ord("\n"): "\\n", ord("?"): "\\?"}


def escaped(data):
    return "".join(ESCAPES.get(byte) or (chr(byte) if 32 <= byte < 127 else f"\\{byte:03o}") for byte in data)


data = page.read_bytes()
lines = "\n".join(f'    "{escaped(data[at:at + LITERAL])}"' for at in range(0, len(data), LITERAL))
made.write_text(
    '#include "apps/tutti/formats/viewer_page.hpp"\n\n'
    f"namespace tutti::internal {{\n\nconst std::string_view kViewerPage(\n{lines},\n    {len(data)});\n\n}}  // namespace tutti::internal\n",
    encoding="ascii",
)
