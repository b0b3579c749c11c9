"""Writes a wheel of agentd-lsp that needs nothing: WHEEL VERSION."""

import sys
import zipfile

path, version = sys.argv[1:]
info = f"agentd_lsp-{version}.dist-info/"
files = {
    "agentd_stand_in.py": f"def main():\n    print('agentd {version}')\n",
    info + "METADATA": f"Metadata-Version: 2.1\nName: agentd-lsp\nVersion: {version}\n",
    info + "WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    info + "entry_points.txt": "[console_scripts]\nagentd = agentd_stand_in:main\n",
}
with zipfile.ZipFile(path, "w") as wheel:
    for name, text in files.items():
        wheel.writestr(name, text)
    wheel.writestr(info + "RECORD", "".join(f"{name},,\n" for name in [*files, info + "RECORD"]))
