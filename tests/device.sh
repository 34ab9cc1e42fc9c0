#!/usr/bin/env bash
# What can be checked on a machine with a GPU only, in at most 6 minutes, without Rust and without a network.
#
#   make device-bundle                      here: builds what the machine needs into target/device-bundle
#   bash target/device-bundle/device.sh     there: python3 with a torch of the same version, and a glibc as new as the
#                                           binaries want it (2.35 for now; `make device-bundle` looks, and says)
#
# PYTHON names another interpreter; an argument names another folder of the binaries. Ends with a table
# `check | expected | got | pass`. Exit code 0: all passed; 1: something failed; 77: nothing failed, but something did not run;
# 130 or 143: interrupted, after the table as far as it goes. A machine without a GPU fails nothing; a GPU or a driver that is
# there and does not work does: so does a card without a driver. "No GPU" is what `doctor` has found; where it did not get as
# far, nobody knows.
#
# `--rehearse` before the folder runs everything that a CPU can run, on a CPU, as a test of the script itself: nothing that
# rests on a time passes or fails then, and nothing of it says anything of a card.
set -u

BUDGET_S=345
rehearse=
if [ "${1:-}" = --rehearse ]; then rehearse=yes; shift; fi
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
default="$here/../target/device-bundle"
if [ -x "$here/device_checks" ]; then default=$here; fi
bundle=${1:-$default}
# What the binaries want, as `make device-bundle` writes it.
glibc=$(cat "$bundle/glibc" 2> /dev/null)
python=${PYTHON:-python3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
rows=$work/rows
: > "$rows"
export STEPLEDGER_HOME=$work/home

row() { printf '%s\t%s\t%s\t%s\n' "$1" "$2" "$(shortened "$3")" "$4" >> "$rows"; }

# A line of at most 160 characters. Bytes that go on within a character of UTF-8 do not count, which not every awk, and no
# `cut -c`, knows by itself.
shortened() {
  tr '\n\t' '  ' <<< "$1" | LC_ALL=C awk '{
    sub(/ *$/, "")
    for (i = 1; i <= length($0); i++) {
      if (substr($0, i, 1) !~ /[\200-\277]/ && ++n > 160) { $0 = substr($0, 1, i - 1); break }
    }
    print
  }'
}

# A row whose verdict rests on times: $4 is True if they are as expected, False if not, anything else if nobody knows.
timed_row() {
  case $rehearse$4 in
    True) row "$1" "$2" "$3" pass ;;
    yesTrue | yesFalse) row "$1" "$2" "not run: in a rehearsal, $3" "not run" ;;
    *) row "$1" "$2" "$3" FAIL ;;
  esac
}

# Seconds that a check which wants $1 of them may take; 0 when there is no time left. A rehearsal may run where others
# compute, and takes the time that it takes.
allowed() {
  if [ -n "$rehearse" ]; then echo $((10 * $1)); return; fi
  local left=$((BUDGET_S - SECONDS))
  if [ "$left" -lt 5 ]; then echo 0; elif [ "$left" -lt "$1" ]; then echo "$left"; else echo "$1"; fi
}

# try NAME SECONDS COMMAND…: runs it with a limit, what it says in $work/out and $work/err; returns its exit code, 124 for
# one that took too long, 125 for one there was no time for.
try() {
  local name=$1 limit begin code
  limit=$(allowed "$2")
  shift 2
  if [ "$limit" = 0 ]; then return 125; fi
  begin=$SECONDS
  # Waited for, so that a signal is heard at once: bash hears none while a program runs in the foreground.
  timeout -k 5 "$limit" "$@" > "$work/out" 2> "$work/err" < /dev/null &
  running=$! running_name=$name
  wait "$running"
  code=$?
  running=
  echo "$name: exit code $code, $((SECONDS - begin)) s" >&2
  return "$code"
}

# A row for a check that did not get as far as a result of its own.
no_result() {
  case $2 in
    124 | 137) row "$1" "a result" "took longer than allowed" FAIL ;;
    125) row "$1" — "not run: the time is up" "not run" ;;
    *) row "$1" "a result" "exit code $2: $(tail -n 2 "$work/err")" FAIL ;;
  esac
}

# device_check NAME SECONDS: the rows are the check's own.
device_check() {
  local code
  try "$1" "$2" "$bundle/device_checks" "$1" --device "$device"
  code=$?
  if [ -s "$work/out" ] && [ "$code" -ne 124 ] && [ "$code" -ne 125 ]; then
    cat "$work/out" >> "$rows"
    case $code in 0 | 1 | 77) return ;; esac
  fi
  no_result "$1" "$code"
}

# Those that the program lists. One that cannot start, or lists none, is a failure: without a row it would be no check at all.
device_checks() {
  local code checks check
  try device_checks 45 "$bundle/device_checks" list
  code=$?
  checks=$(cat "$work/out")
  if [ "$code" -ne 0 ]; then no_result device_checks "$code"; return; fi
  if [ -z "$checks" ]; then row device_checks "the names of the checks" "none" FAIL; return; fi
  for check in $checks; do
    case $check in overhead | checkpoint) device_check "$check" 90 ;; *) device_check "$check" 45 ;; esac
  done
}

# py PROGRAM ARGUMENT…: without the working directory on Python's path, where a folder of any name may lie.
py() {
  local program="import sys; sys.path[:] = [p for p in sys.path if p]; $1"
  shift
  "$python" -c "$program" "$@"
}

# json EXPRESSION: of the object `o` in $work/out. What Python says of one that is none is not what the program said.
json() { py "import json; o=json.load(open(sys.argv[1])); print($1)" "$work/out" 2> "$work/json"; }

# What `doctor` knows of GPUs: `works` if one does, `none` if it has looked and there is none, else `unknown`.
GPU="(lambda s: 'works' if any(n.startswith('GPU ') and v == 'works' for n, v in s.items()) else
  'none' if s.get('GPU') == 'absent' or s.get('GPU') == 'not_run' and s.get('CUDA driver') == 'absent' else
  'unknown')({c['name']: c['standing'] for c in o['checks']})"

doctor() {
  local code works
  try doctor 200 "$bundle/stepledger" doctor --json --out "$work/runs"
  code=$?
  if [ "$code" -gt 1 ]; then no_result doctor "$code"; return; fi
  works=$(json "o['run_works']")
  # One that cannot start ends with 1, too.
  if [ -z "$works" ]; then no_result doctor "$code"; return; fi
  if [ "$works" = True ]; then row doctor "run works" "run works" pass; else
    row doctor "run works" "$(json "[c['name'] + ': ' + c['found'] for c in o['checks'] if c['standing'] == 'fails']")" FAIL
  fi
  json "'\n'.join('%-8s %-18s %s' % (c['standing'], c['name'], c['found']) for c in o['checks'])" >&2
  gpu=$(json "$GPU")
  broken=$(json "'; '.join(c['name'] + ': ' + c['found'] for c in o['checks'] if c['standing'] == 'fails' and c['name'] in ('libtorch for CUDA', 'CUDA driver', 'GPU', 'libtorch on a GPU', 'NVML', 'NVRTC'))")
  if [ -n "$broken" ]; then row "doctor: GPU and driver" "nothing that is there fails" "$broken" FAIL
  elif [ "$gpu" = works ]; then row "doctor: GPU and driver" "nothing that is there fails" "nothing fails" pass
  else row "doctor: GPU and driver" "nothing that is there fails" "not run: $(no_gpu)" "not run"; fi
}

# Why nothing is run on a GPU.
no_gpu() {
  if [ -n "$rehearse" ]; then echo "a rehearsal"
  elif [ -n "$broken" ]; then echo "the GPU or its driver does not work"
  elif [ "$gpu" = none ]; then echo "no GPU"
  else echo "doctor did not get as far as to know of a GPU"; fi
}

# calibrate DEVICE: every rate is a number above 0, and the middle half is narrow enough to mean something. On a GPU
# libtorch's f32 products come near the rate of multiply-adds alone, unless their size was chosen badly.
calibrate() {
  local name="calibrate --device $1" code got good
  try "$name" 60 "$bundle/stepledger" calibrate --device "$1" --json
  code=$?
  if [ "$code" -ne 0 ]; then no_result "$name" "$code"; return; fi
  got=$(json "', '.join('%s %.4g' % (k, v['median']) for k, v in o.items() if isinstance(v, dict))")
  good=$(json "all(0 < v['q1'] <= v['median'] <= v['q3'] < 2 * v['q1'] for v in o.values() if isinstance(v, dict))")
  timed_row "$name" "rates above 0, spread below 2" "$got" "$good"
  if [ "$1" = cpu ]; then return; fi
  got=$(json "'%.0f %% with %d rows' % (100 * o['matmul_f32_tflop_s']['median'] / o['fma_f32_tflop_s']['median'], o['matmul_f32_rows'])")
  good=$(json "0.5 <= o['matmul_f32_tflop_s']['median'] / o['fma_f32_tflop_s']['median'] <= 1.05")
  timed_row "$name: f32 product / multiply-adds" "50 to 105 %" "$got" "$good"
}

# A run after the calibration is held against it.
run_on() {
  local name="run --device $1" code got want
  try "$name" 60 "$bundle/stepledger" run --device "$1" --steps 20 --warmup 3 --quiet --json --out "$work/runs"
  code=$?
  if [ "$code" -ne 0 ]; then no_result "$name" "$code"; return; fi
  got=$(json "'difference %s bytes, reference %s' % (o['instruments']['difference_bytes'], o['products']['reference']['source'])")
  want="difference 0 bytes, reference calibrated"
  if [ "$got" = "$want" ]; then row "$name" "$want" "$got" pass; else row "$name" "$want" "$got" FAIL; fi
  got=$(json "'%.1f %%' % o['products']['reference']['share_pct']")
  timed_row "$name: share of the calibrated rate" "0 to 105 %" "$got" "$(json "0 < o['products']['reference']['share_pct'] <= 105")"
}

# Columns as wide as their characters are many: bytes that go on within a character of UTF-8 do not count, which not
# every awk knows by itself.
table() {
  LC_ALL=C awk -F '\t' '
    BEGIN { $0 = "check\texpected\tgot\tpass"; keep() }
    { keep() }
    function characters(text) { gsub(/[\200-\277]/, "", text); return length(text) }
    function keep(  i) { n++; for (i = 1; i <= 4; i++) { cell[n, i] = $i; if (characters($i) > width[i]) width[i] = characters($i) } }
    function padded(l, i) { return sprintf("%s%*s", cell[l, i], width[i] - characters(cell[l, i]), "") }
    END { for (l = 1; l <= n; l++) print padded(l, 1) " | " padded(l, 2) " | " padded(l, 3) " | " cell[l, 4] }
  ' "$rows"
}

# has VERDICT: whether a row has it.
has() { awk -F '\t' -v verdict="$1" '$4 == verdict { found = 1 } END { exit !found }' "$rows"; }

# finish [CODE]: the table, and the exit code by its rows, unless another is given.
finish() {
  trap '' INT TERM
  echo
  table
  echo "$SECONDS s in all"
  if [ -n "${1:-}" ]; then exit "$1"; fi
  if has FAIL; then exit 1; fi
  if [ ! -s "$rows" ] || has "not run"; then exit 77; fi
  exit 0
}

# What is known by then is told: a check may hang, and whoever ends it has waited for the others.
interrupted() {
  trap '' INT TERM
  if [ -n "$running" ]; then
    kill "$running" 2> /dev/null
    row "$running_name" — "not run: interrupted" "not run"
  fi
  row "what comes behind" — "not run: interrupted" "not run"
  finish "$1"
}
running=
trap 'interrupted 130' INT
trap 'interrupted 143' TERM

for file in stepledger libstepledger.so device_checks; do
  if [ ! -e "$bundle/$file" ]; then
    row binaries "$file" "not run: $bundle has none; build it by make device-bundle" "not run"
    finish
  fi
done
# has_glibc WANTED: whether this machine's is as new; a machine that does not say is taken at its loader's word.
has_glibc() {
  local there
  there=$(getconf GNU_LIBC_VERSION 2> /dev/null) || return 0
  there=${there#glibc }
  [ "${there%%.*}" -gt "${1%%.*}" ] || { [ "${there%%.*}" -eq "${1%%.*}" ] && [ "${there#*.}" -ge "${1#*.}" ]; }
}
if [ -n "$glibc" ] && ! has_glibc "$glibc"; then
  row binaries "glibc $glibc or newer" "not run: this machine has $(getconf GNU_LIBC_VERSION)" "not run"
  finish
fi
if ! py "" 2> "$work/err"; then
  row libtorch "torch of $python" "not run: $python does not start: $(tail -n 1 "$work/err")" "not run"
  finish
fi
torch=$(py 'import importlib.util, os; print(os.path.join(os.path.dirname(importlib.util.find_spec("torch").origin), "lib"))' 2> /dev/null)
if [ ! -d "$torch" ]; then
  row libtorch "torch of $python" "not run: $python has no torch" "not run"
  finish
fi
export LD_LIBRARY_PATH=$torch${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}

gpu=unknown
broken=
device=cuda
if [ -n "$rehearse" ]; then device=cpu; fi
doctor
calibrate cpu
run_on cpu
if [ "$gpu" = works ] && [ -z "$rehearse" ]; then
  calibrate cuda
  run_on cuda
else
  row "calibrate --device cuda" — "not run: $(no_gpu)" "not run"
  row "run --device cuda" — "not run: $(no_gpu)" "not run"
fi
device_checks
finish
