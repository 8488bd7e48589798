#!/bin/sh
# @TITLE@
#
# load.sh [--dry-run] [CGROUP]: compiles sockops.c, loads the program and attaches it to a cgroup.
# The default is the root of cgroup2: all programs of the machine. unload.sh reverses this. Needs
# root. With --dry-run it prints the steps, changes nothing, and needs no root.
#
# STATE   folder for the state that unload.sh needs (default: @STATE@)
set -euf
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
STATE=${STATE:-@STATE@}
PIN=/sys/fs/bpf/@NAME@

@COMMON@

has_algorithm() {
    case " $(value net.ipv4.tcp_available_congestion_control) " in
    *" $1 "*) return 0 ;;
    esac
    return 1
}

# A BPF program cannot load the module of a congestion control.
need_algorithm() {
    if has_algorithm "$1"; then
        return
    fi
    modprobe -n -q "tcp_$1" 2>/dev/null ||
        lack "this kernel has no congestion control $1, and there is no module tcp_$1"
    say "modprobe tcp_$1"
    step modprobe -q "tcp_$1"
    record module "tcp_$1"
}

# record LINE: what unload.sh reverses.
record() {
    [ "$DRY" = yes ] || printf '%s\n' "$*" >>"$STATE/loaded"
}

# need_most SYSCTL BYTES: raises the limit of a socket option, if it is lower.
need_most() {
    [ "$(value "$1")" -lt "$2" ] || return 0
    record sysctl "$1" "$(value "$1")"
    say "$1 = $2"
    step sysctl -q -w "$1=$2" >/dev/null
    [ "$DRY" = yes ] || [ "$(value "$1")" = "$2" ] || fail "the kernel does not take $1 = $2"
}

if [ "${1:-}" = --dry-run ]; then
    mode --dry-run
    shift
else
    mode
    need_root
fi
need_tools clang bpftool sysctl
if [ -e "$STATE/loaded" ]; then
    [ ! -e "$PIN" ] || fail "already loaded: run unload.sh first"
    # The program is gone since a reboot.
    step rm -f "$STATE/loaded"
fi
[ ! -e "$PIN" ] || fail "there is a program at $PIN already"
cgroup=${1:-$(while read -r _ place type _; do
    if [ "$type" = cgroup2 ]; then
        printf '%s\n' "$place"
        break
    fi
done </proc/mounts)}
[ -n "$cgroup" ] || fail "no cgroup2 is mounted"
[ -e "$cgroup/cgroup.procs" ] || fail "$cgroup is not a cgroup"
cgroup=$(CDPATH='' cd -- "$cgroup" && pwd)

if [ "$DRY" = no ]; then
    mkdir -p "$STATE"
    : >"$STATE/loaded"
    trap 'say "a step failed: undoing all changes" >&2; STATE=$STATE sh "$here/unload.sh" >&2' EXIT
    trap 'exit 130' INT TERM HUP
fi
say "clang $here/sockops.c"
# Debian and Ubuntu have the headers of one architecture in a folder of their own.
step clang -O2 -Wall -Werror -target bpf -I"/usr/include/$(uname -m)-linux-gnu" \
    -c "$here/sockops.c" -o "$STATE/sockops.o"
@NEEDS@
bpf=$(while read -r _ place type _; do
    [ "$place:$type" = /sys/fs/bpf:bpf ] && say yes
done </proc/mounts) || :
if [ -z "$bpf" ]; then
    say "mount -t bpf bpf /sys/fs/bpf"
    step mount -t bpf bpf /sys/fs/bpf
    record mount /sys/fs/bpf
fi
say "bpftool prog load $STATE/sockops.o $PIN type sockops"
step bpftool prog load "$STATE/sockops.o" "$PIN" type sockops
record pin "$PIN"
# "multi" keeps programs that are already attached.
say "bpftool cgroup attach $cgroup sock_ops pinned $PIN multi"
step bpftool cgroup attach "$cgroup" sock_ops pinned "$PIN" multi
record cgroup "$cgroup"
[ "$DRY" = no ] || over
trap - EXIT
say "$PIN is attached to $cgroup; unload.sh detaches it"
