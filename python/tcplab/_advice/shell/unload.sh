#!/bin/sh
# @TITLE@
#
# Reverses load.sh. Needs root. Open connections keep their settings. With --dry-run it prints the
# steps, changes nothing, and needs no root.
#
# STATE   folder with the state of load.sh (default: @STATE@)
set -uf
STATE=${STATE:-@STATE@}
PIN=/sys/fs/bpf/@NAME@

@COMMON@

mode "$@"
[ "$DRY" = yes ] || need_root
if [ ! -e "$STATE/loaded" ]; then
    [ "$DRY" = yes ] || fail "nothing to unload: there is no $STATE/loaded"
    say "load.sh was not run: it records in $STATE/loaded what this reverses"
    over
fi
failed=0
kept() {
    while read -r what rest; do
        [ "$what" != "$1" ] || printf '%s\n' "$rest"
    done <"$STATE/loaded"
}
cgroup=$(kept cgroup)
# After a reboot, and without its cgroup, the program is detached already.
if [ -n "$cgroup" ] && [ -d "$cgroup" ] && [ -e "$PIN" ]; then
    say "bpftool cgroup detach $cgroup sock_ops pinned $PIN"
    step bpftool cgroup detach "$cgroup" sock_ops pinned "$PIN" || failed=1
fi
if [ -n "$(kept pin)" ]; then
    say "rm $PIN"
    step rm -f "$PIN" || failed=1
fi
if [ -n "$(kept mount)" ]; then
    step umount /sys/fs/bpf 2>/dev/null || say "/sys/fs/bpf stays mounted: it is in use"
fi
while read -r name present; do
    [ -n "$name" ] || continue
    say "$name = $present"
    step sysctl -q -w "$name=$present" >/dev/null
    [ "$DRY" = yes ] || [ "$(value "$name")" = "$present" ] || failed=1
done <<EOF
$(kept sysctl)
EOF
while read -r module; do
    [ -n "$module" ] || continue
    step modprobe -r "$module" 2>/dev/null ||
        say "the module $module stays: connections still use it"
done <<EOF
$(kept module)
EOF
[ "$failed" = 0 ] || fail "some steps failed; $STATE/loaded lists what load.sh did"
[ "$DRY" = no ] || over
rm -f "$STATE/loaded" "$STATE/sockops.o"
rmdir "$STATE" 2>/dev/null || :
rmdir /var/lib/tcplab 2>/dev/null || :
say "everything is restored"
