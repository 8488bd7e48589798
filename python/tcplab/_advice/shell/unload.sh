#!/bin/sh
# @TITLE@
#
# Reverses load.sh. Needs root. Open connections keep their settings.
#
# STATE   folder with the state of load.sh (default: @STATE@)
set -uf
STATE=${STATE:-@STATE@}
PIN=/sys/fs/bpf/@NAME@

@COMMON@

need_root
[ -e "$STATE/loaded" ] || fail "nothing to unload: there is no $STATE/loaded"
failed=0
kept() {
    while read -r what rest; do
        [ "$what" != "$1" ] || printf '%s\n' "$rest"
    done <"$STATE/loaded"
}
cgroup=$(kept cgroup)
# After a reboot, and without its cgroup, the program is detached already.
if [ -n "$cgroup" ] && [ -d "$cgroup" ] && [ -e "$PIN" ]; then
    bpftool cgroup detach "$cgroup" sock_ops pinned "$PIN" || failed=1
fi
if [ -n "$(kept pin)" ]; then
    rm -f "$PIN" || failed=1
fi
if [ -n "$(kept mount)" ]; then
    umount /sys/fs/bpf 2>/dev/null || say "/sys/fs/bpf stays mounted: it is in use"
fi
while read -r name present; do
    [ -n "$name" ] || continue
    say "$name = $present"
    sysctl -q -w "$name=$present" >/dev/null
    [ "$(value "$name")" = "$present" ] || failed=1
done <<EOF
$(kept sysctl)
EOF
while read -r module; do
    [ -n "$module" ] || continue
    modprobe -r "$module" 2>/dev/null || say "the module $module stays: connections still use it"
done <<EOF
$(kept module)
EOF
[ "$failed" = 0 ] || fail "some steps failed; $STATE/loaded lists what load.sh did"
rm -f "$STATE/loaded" "$STATE/sockops.o"
rmdir "$STATE" 2>/dev/null || :
rmdir /var/lib/tcplab 2>/dev/null || :
say "everything is restored"
