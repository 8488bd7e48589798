#!/bin/sh
# @TITLE@
#
# load.sh [CGROUP]: compiles sockops.c, loads the program and attaches it to a cgroup. The default
# is the root of cgroup2: all programs of the machine. unload.sh reverses this. Needs root.
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
    modprobe -q "tcp_$1" 2>/dev/null ||
        fail "this kernel has no congestion control $1, and there is no module tcp_$1"
    printf 'module tcp_%s\n' "$1" >>"$STATE/loaded"
}

# need_most SYSCTL BYTES: raises the limit of a socket option, if it is lower.
need_most() {
    [ "$(value "$1")" -lt "$2" ] || return 0
    printf 'sysctl %s %s\n' "$1" "$(value "$1")" >>"$STATE/loaded"
    say "$1 = $2"
    sysctl -q -w "$1=$2" >/dev/null
    [ "$(value "$1")" = "$2" ] || fail "the kernel does not take $1 = $2"
}

need_root
need_tools clang bpftool sysctl
if [ -e "$STATE/loaded" ]; then
    [ ! -e "$PIN" ] || fail "already loaded: run unload.sh first"
    # The program is gone since a reboot.
    rm -f "$STATE/loaded"
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

mkdir -p "$STATE"
: >"$STATE/loaded"
trap 'say "a step failed: undoing all changes" >&2; STATE=$STATE sh "$here/unload.sh" >&2' EXIT
trap 'exit 130' INT TERM HUP
# Debian and Ubuntu have the headers of one architecture in a folder of their own.
clang -O2 -Wall -Werror -target bpf -I"/usr/include/$(uname -m)-linux-gnu" \
    -c "$here/sockops.c" -o "$STATE/sockops.o"
@NEEDS@
bpf=$(while read -r _ place type _; do
    [ "$place:$type" = /sys/fs/bpf:bpf ] && say yes
done </proc/mounts) || :
if [ -z "$bpf" ]; then
    mount -t bpf bpf /sys/fs/bpf
    say "mount /sys/fs/bpf" >>"$STATE/loaded"
fi
bpftool prog load "$STATE/sockops.o" "$PIN" type sockops
say "pin $PIN" >>"$STATE/loaded"
# "multi" keeps programs that are already attached.
bpftool cgroup attach "$cgroup" sock_ops pinned "$PIN" multi
say "cgroup $cgroup" >>"$STATE/loaded"
trap - EXIT
say "$PIN is attached to $cgroup; unload.sh detaches it"
