#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Prints the name of a clang that can link a libFuzzer program; fails when there is none.
try=$(mktemp -d) || exit 1
trap 'rm -rf "$try"' EXIT
echo 'int LLVMFuzzerTestOneInput(const char *p, unsigned long n) { return p && n > 9; }' >"$try/t.c"
for clang in ${CLANG:-} clang clang-21 clang-20 clang-19 clang-18 clang-17 clang-16 clang-15 clang-14; do
  if command -v "$clang" >/dev/null 2>&1 &&
    "$clang" -w -fsanitize=fuzzer,address "$try/t.c" -o "$try/t" 2>/dev/null; then
    echo "$clang"
    exit 0
  fi
done
exit 1
