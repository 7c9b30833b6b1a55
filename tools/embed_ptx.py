# SPDX-License-Identifier: Apache-2.0
"""Compiles the kernels to PTX and writes them as a C array.

    embed_ptx.py OUT.c [NVCC KERNELS.cu]       without nvcc: an empty text, which means that there is no GPU path

PTX states the version of the language that it needs, and nvcc states its own. The kernels use nothing that the first
version with compute capability 7.5 lacks, so they state that one: drivers that are older than nvcc take them, too. The
assembler beside nvcc checks it.
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path
from shutil import which

TARGET, VERSION = "75", "6.3"


def compiled(nvcc: str, source: str, ptx: Path) -> str:
    run = [nvcc, "-ptx", f"-arch=compute_{TARGET}", "-O3", "-allow-unsupported-compiler"]
    run += ["-I", str(Path(source).parents[1]), "-o", str(ptx), source]
    subprocess.run(run, check=True)
    text = re.sub(r"//[^\n]*", "", ptx.read_text())
    text = re.sub(r"^\.version .*$", f".version {VERSION}", text, count=1, flags=re.M)
    return "\n".join(line.strip() for line in text.splitlines() if line.strip()) + "\n"


def check(nvcc: str, ptx: Path) -> None:
    assembler = which("ptxas", path=str(Path(which(nvcc) or nvcc).resolve().parent)) or which("ptxas")
    if assembler:
        subprocess.run([assembler, f"-arch=sm_{TARGET}", "-o", str(ptx) + ".cubin", str(ptx)], check=True)


def main() -> int:
    out, text = Path(sys.argv[1]), ""
    if len(sys.argv) > 3:
        with tempfile.TemporaryDirectory() as folder:
            ptx = Path(folder, "kernels.ptx")
            text = compiled(sys.argv[2], sys.argv[3], ptx)
            ptx.write_text(text)
            check(sys.argv[2], ptx)
    values = [*text.encode(), 0]
    lines = [", ".join(map(str, values[i : i + 24])) for i in range(0, len(values), 24)]
    out.write_text('#include "cuda/cuda_ptx.h"\n\nconst char cuda_ptx[] = {\n' + ",\n".join(lines) + "};\n")
    return 0


sys.exit(main())
