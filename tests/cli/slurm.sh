# A study as a job array of a real Slurm on this machine: the shards, merged, are the bytes of the study done at once.
# munged, slurmctld and slurmd run from a scratch folder, on loopback, as long as the test does.
set -eu
PATH=$PATH:/usr/sbin:/sbin
for p in munged slurmctld slurmd sbatch squeue; do
  command -v $p >/dev/null || { echo "skipped: $p is not installed (apt-get install slurm-wlm munge)"; exit 0; }
done
[ "$(id -u)" = 0 ] || { echo "skipped: slurmd runs jobs as root only"; exit 0; }

t=$(mktemp -d)
# What runs is ended by its own number.
finish() {
  for d in slurmd slurmctld munged; do
    [ ! -s "$t/$d.pid" ] || kill "$(cat "$t/$d.pid")" 2>/dev/null || true
  done
  for d in slurmd slurmctld munged; do
    n=0
    while [ -s "$t/$d.pid" ] && kill -0 "$(cat "$t/$d.pid")" 2>/dev/null && [ $n -lt 50 ]; do sleep 0.1; n=$((n + 1)); done
  done
  rm -rf "$t"
}
trap finish EXIT
complain() { echo "$1"; for f in "$t"/*.log; do [ ! -f "$f" ] || { echo "-- $f"; tail -n 15 "$f"; }; done; exit 1; }
until_true() { # SECONDS COMMAND...
  n=$(($1 * 10))
  shift
  while ! "$@" >/dev/null 2>&1; do
    [ $n -gt 0 ] || return 1
    n=$((n - 1))
    sleep 0.1
  done
}

# munge: a key and a socket of our own (munged wants folders that others can't write)
chmod 755 "$t"
mkdir -m 755 "$t/munge" "$t/spool" "$t/state"
head -c 1024 /dev/urandom >"$t/munge/key"
chmod 400 "$t/munge/key"
munged --force --socket="$t/munge/socket" --key-file="$t/munge/key" --pid-file="$t/munged.pid" \
  --log-file="$t/munged.log" --seed-file="$t/munge/seed" 2>"$t/start.log" || complain "munged does not start"
until_true 10 test -S "$t/munge/socket" || complain "munged has no socket"

ports=$(python3 -c 'import socket
s = [socket.socket() for _ in range(2)]
for x in s: x.bind(("127.0.0.1", 0))
print(*(x.getsockname()[1] for x in s))')
host=$(hostname -s)
cat >"$t/slurm.conf" <<END
ClusterName=scratch
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=${ports% *}
SlurmdPort=${ports#* }
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$t/munge/socket
CredType=cred/munge
StateSaveLocation=$t/state
SlurmdSpoolDir=$t/spool
SlurmctldPidFile=$t/slurmctld.pid
SlurmdPidFile=$t/slurmd.pid
SlurmctldLogFile=$t/slurmctld.log
SlurmdLogFile=$t/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
ReturnToService=2
SchedulerParameters=sched_interval=2,batch_sched_delay=0
NodeName=$host NodeAddr=127.0.0.1 CPUs=2 RealMemory=8000 State=UNKNOWN
PartitionName=all Nodes=$host Default=YES State=UP
END
export SLURM_CONF="$t/slurm.conf"
slurmctld >>"$t/start.log" 2>&1 || complain "slurmctld does not start"
slurmd >>"$t/start.log" 2>&1 || complain "slurmd does not start"
node_is_idle() { sinfo -h -o %T | grep -qx idle; }
until_true 60 node_is_idle || complain "the node does not come up: $(sinfo -h -o '%T %E' 2>&1)"

mkdir "$t/graphs"
for m in softmax_block attention_math add_transpose; do cp "$SW_SOURCE/data/models/$m.pt2" "$t/graphs/"; done
cat >"$t/spec.json" <<'END'
{"format": "stickwright.study/1", "name": "array", "graphs": ["graphs/*.pt2"], "profiles": ["best", "torch-spyre"],
 "solvers": ["ilp", "greedy"]}
END
cd "$t"
"$SW" study spec.json -o whole --memory 1000 >/dev/null
"$SW" study spec.json -o array --jobs 1 --memory 1000 --shards 5 --slurm >said || complain "the array is not submitted"
cat said
number=$(sed -n 's/.*: job \([0-9]*\), 5 tasks for 12 runs.*/\1/p' said)
[ -n "$number" ] || complain "the job's number is not said"
ended() { [ -z "$(squeue -h -j "$number")" ]; }
until_true 120 ended || complain "the job does not end: $(squeue 2>&1)"
tasks=$(find array -name 'slurm-*.log' | wc -l)
[ "$tasks" = 5 ] || complain "$tasks tasks have written a log"
until_true 10 sh -c '[ "$(ls array/runs | wc -l)" = 12 ]' || complain "rows are missing: $(cat array/slurm-*.log)"

# the command that was said makes the tables
sh -c "$(sed -n "2s#^stickwright #'$SW' #p" said)" >/dev/null || complain "merging fails"
for f in study.csv study.json study.md; do cmp "whole/$f" "array/$f" || complain "$f differs"; done
echo "a job array of 5 tasks on slurm $(slurmd -V | sed 's/.* //'): the bytes of the study done at once"
