# The arrows of docs/architecture.md: who may include whom. GLPK only in solver/, libmicrohttpd only in server/, and
# project includes point down only.
set -eu
cd "$SW_SOURCE"
bad=0
complain() { echo "$1"; bad=1; }

for f in $(grep -rlE '#include <glpk\.h>' --include='*.[ch]' base solver compiler server 2>/dev/null || true); do
  case $f in solver/*) ;; *) complain "$f includes GLPK" ;; esac
done
for f in $(grep -rlE '#include <microhttpd\.h>' --include='*.[ch]' base solver compiler server 2>/dev/null || true); do
  case $f in server/*) ;; *) complain "$f includes libmicrohttpd" ;; esac
done

# folder: what it may include besides itself
allowed() {
  case $1 in
  base) echo base ;;
  solver/assign | solver/place) echo base solver ;;
  compiler/graph) echo base ;;
  compiler/eval) echo base compiler/graph ;;
  compiler/lower) echo base compiler/graph compiler/eval ;;
  compiler/layout) echo base compiler/graph compiler/lower solver/assign ;;
  compiler/plan) echo base compiler/graph compiler/lower compiler/layout solver/place solver/assign ;;
  compiler/emit) echo base compiler/graph compiler/eval compiler/lower compiler/layout compiler/plan ;;
  compiler/verify) echo base compiler/graph compiler/eval compiler/lower compiler/layout compiler/plan compiler/emit ;;
  compiler/report) echo base compiler/graph compiler/lower compiler/layout compiler/plan compiler/emit compiler/verify solver/assign solver/place ;;
  compiler) echo base compiler/graph compiler/lower compiler/layout compiler/plan compiler/emit compiler/verify compiler/report ;;
  compiler/study) echo base compiler ;;
  compiler/cli | server) echo base compiler solver ;;
  esac
}
for dir in base solver/assign solver/place compiler/graph compiler/eval compiler/lower compiler/layout compiler/plan \
  compiler/emit compiler/verify compiler/report compiler compiler/study compiler/cli server; do
  for f in "$dir"/*.[ch]; do
    [ -e "$f" ] || continue
    for inc in $(sed -n 's/^#include "\(.*\)".*/\1/p' "$f"); do
      ok=0
      for to in $dir $(allowed "$dir"); do
        case $inc in "$to"/*) ok=1 ;; esac
      done
      [ "$ok" = 1 ] || complain "$f includes $inc"
    done
  done
done
exit $bad
