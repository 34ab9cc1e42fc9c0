#!/usr/bin/env bash
# Names every missing prerequisite and how to get it, before anything is downloaded or built.
set -u
missing=0
need() {
    echo "missing: $1" >&2
    echo "    get it: $2" >&2
    missing=1
}

rust=$(cargo --version 2>/dev/null | cut -d' ' -f2)
minor=${rust#1.}
minor=${minor%%.*}
if [ -z "$rust" ]; then
    need "Rust 1.90 or newer (cargo)" "https://rustup.rs"
elif [ "${rust%%.*}" = 1 ] && [ "$minor" -lt 90 ]; then
    need "Rust 1.90 or newer (cargo is $rust)" "rustup update"
fi

python=${PYTHON:-python3}
if ! command -v "$python" >/dev/null 2>&1; then
    need "Python 3.10 or newer ($python)" "apt install python3 python3-venv   (or: make PYTHON=/path/to/python3)"
elif ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))'; then
    need "Python 3.10 or newer ($python is $("$python" -V 2>&1))" "make PYTHON=/path/to/python3.11"
elif ! "$python" -c 'import venv, ensurepip' 2>/dev/null; then
    need "Python's venv module" "apt install python3-venv"
fi

cxx=${CXX:-c++}
if ! command -v "$cxx" >/dev/null 2>&1; then
    need "a C++17 compiler ($cxx)" "apt install g++   (or: make CXX=/path/to/g++)"
elif ! echo 'int main() { if constexpr (true) return 0; }' | "$cxx" -std=c++17 -x c++ -fsyntax-only - 2>/dev/null; then
    need "a compiler that knows C++17 ($cxx does not)" "apt install g++   (version 9 or newer)"
fi

command -v cc >/dev/null 2>&1 ||
    need "a C compiler and linker (cc)" "apt install gcc"

exit $missing
