#!/usr/bin/env bash
# Measures this machine with octavo_bench: the whole suite in under 10 minutes on two cores, or a selection in under one.
#
#     bench/run.sh [--quick] [--force] [OUT.json]
#
# Writes OUT.json (default: octavo_bench.json here), which bench/report turns into a page, alone or beside other machines' files. A file that is
# there is overwritten with --force only. Builds the preset release first, so that what is measured is what the tree holds.
set -euo pipefail

quick=0 force=0 out=
for argument; do
  case $argument in
    --quick) quick=1 ;;
    --force) force=1 ;;
    -*) printf 'run.sh: unknown option %s; there are --quick and --force\n' "$argument" >&2 && exit 2 ;;
    *)
      [[ -z $out ]] || { printf 'run.sh: two files, %s and %s; expected one\n' "$out" "$argument" >&2 && exit 2; }
      out=$argument
      ;;
  esac
done
out=$(realpath -- "${out:-octavo_bench.json}")
if [[ -f $out ]] && ((!force)); then
  printf 'run.sh: %s exists; use --force to overwrite it, or another name\n' "$out" >&2
  exit 1
fi
cd -- "$(dirname -- "$(realpath -- "${BASH_SOURCE[0]}")")/.."

bench=build/release/octavo_bench
# Quiet where there is nothing to do.
log=$(mktemp)
trap 'rm -f -- "$log"' EXIT
if ! { cmake --preset release && cmake --build --preset release --target octavo_bench; } >"$log" 2>&1; then
  cat "$log" >&2
  printf 'run.sh: the build failed; tools/quickstart.sh installs what it needs\n' >&2
  exit 1
fi

# Under a name that nobody has, and at the end in one step.
partial=$(mktemp -- "$out.XXXXXX")
trap 'rm -f -- "$log" "$partial"' EXIT
chmod -- "$(printf '%o' $((0666 & ~$(umask))))" "$partial"
arguments=(--benchmark_out="$partial" --benchmark_out_format=json --benchmark_display_aggregates_only=true)
if ((quick)); then
  # Of every family what models do most, on all targets; whole models on many texts and on one.
  selection='^probe/|^(matmul/all|qkv/decode|causal_attention/panels|decode_attention/context|layer_norm/rows|embed/rows)/(tiny|small)'
  selection+='|^activation/[a-z_]*/2048|^softmax/softmax/65|^sample/(plain|top_k)/65|^generate/(text/tiny|batch1/baby)/'
  arguments+=(--benchmark_filter="$selection" --benchmark_min_time=0.002)
else
  arguments+=(--benchmark_min_time=0.01 --benchmark_repetitions=3)
fi

# So that OpenBLAS chooses the kernels that suit this CPU.
unset OPENBLAS_CORETYPE
"$bench" "${arguments[@]}"
mv -- "$partial" "$out"
cat >&2 <<END
$out: now bench/report --format html --output page.html $out
If bench/example/ has no run of your kind of CPU: copy $out there under the CPU's name
and open a pull request, or attach it to an issue. It holds what bench/README.md lists: CPU, caches, compiler, kernel, no names or paths.
END
