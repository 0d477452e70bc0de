#!/bin/sh
# man.sh PROGRAM PAGE VERSION OUT: writes a man page from what the program says of itself.
set -eu
program=$1 page=$2 version=$3 out=$4
name=${page%.*} section=${page##*.}

# Text for roff: backslashes and hyphens as they are, no line taken for a request.
plain() { sed -e 's/\\/\\e/g' -e 's/-/\\-/g' -e "s/^\([.']\)/\\\\\&\1/"; }

# Lines "  --name VALUE   what it does" as a list.
options() {
  plain | awk '/^  / {
    line = substr($0, 3)
    cut = match(line, /  +/)
    print ".TP"
    print ".B " (cut ? substr(line, 1, cut - 1) : line)
    if (cut) print substr(line, cut + RLENGTH)
  }'
}

header() {
  printf '.TH %s %s "" "stickwright %s"\n.SH NAME\n%s \\- %s\n' "$(echo "$name" | tr a-z A-Z)" "$section" "$version" "$name" "$1"
}

verbs() { "$program" help | sed -n 's/^  \([a-z]*\) .*/\1/p'; }

command_page() {
  header "layout compiler for Spyre"
  printf '.SH SYNOPSIS\n.B stickwright\n.I VERB\n\\&...\n.SH VERBS\n'
  for verb in $(verbs); do
    "$program" help "$verb" | sed -n '1s/^usage: //p' | plain | sed 's/^/.SS /'
    "$program" help "$verb" | sed -n 2p | plain
    "$program" help "$verb" | sed '/^options:/,$d' | options
  done
  printf '.SH OPTIONS\nWhere a verb takes OPTIONS, they are these, by the same names in HTTP queries, in studies and in result.json.\n'
  "$program" help compile | sed -n '/^options:/,$p' | options
  cat <<'END'
.SH EXIT STATUS
0 success; 1 a check found a difference; 3 no plan exists; 4 a limit; 5 time or cancelled; 64 usage; 65 bad or unsupported
input; 66 no input; 70 a fault of the program; 74 reading or writing; 128 + N ended by signal N.
.SH SEE ALSO
.BR stickwrightd (8)
END
}

daemon_page() {
  header "layout compiler for Spyre, over HTTP"
  printf '.SH SYNOPSIS\n.B stickwrightd\n[\\-\\-OPTION VALUE]...\n.SH DESCRIPTION\n'
  printf 'Runs the verbs of stickwright(1) in worker processes. GET /openapi.yaml describes the routes.\n.SH OPTIONS\n'
  "$program" --help | options
  cat <<'END'
.SH SIGNALS
.TP
.B SIGTERM, SIGINT
No more is accepted; work in progress may end for drain\-seconds, or until the second signal; what still waits is answered; exit status 0.
.TP
.B SIGHUP
The config file and the token file are read again and the log file is opened again. If anything is wrong with them, the
old settings hold. New limits count from then on, except workers, connections, address\-connections, idle\-seconds, cache\-mb,
store\-mb and what is no limit.
.SH FILES
A config file has lines NAME = VALUE with the names of the options; lines that begin with # are comments.
.SH ENVIRONMENT
.TP
.B STATE_DIRECTORY
Where the store is when no other is named.
.TP
.B LISTEN_FDS, LISTEN_PID
One listening socket may be passed, as systemd does; then the listen option is not used.
.TP
.B NOTIFY_SOCKET, WATCHDOG_USEC
Where READY=1, RELOADING=1, STOPPING=1 and WATCHDOG=1 are told.
.SH EXIT STATUS
0 stopped by a signal; 64 usage; 66 no token or config file; 74 the address or the store can't be used.
.SH SEE ALSO
.BR stickwright (1)
END
}

case $name in
stickwright) command_page ;;
*) daemon_page ;;
esac >"$out.new"
mv "$out.new" "$out"
