#!/bin/sh
# @TITLE@
#
# Restores the values that apply.sh saved, and removes the saved values. Needs root. With --dry-run
# it prints the steps, changes nothing, and needs no root.
#
# STATE   folder of the saved values (default: @STATE@)
set -uf
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
STATE=${STATE:-@STATE@}

@COMMON@

restore_sysctl() {
    [ "$(value "$1")" = "$2" ] && return
    say "$1 = $2"
    step sysctl -q -w "$1=$2" >/dev/null
    [ "$DRY" = yes ] || [ "$(value "$1")" = "$2" ]
}

restore_file() {
    [ "$(cat "$1")" = "$2" ] && return
    say "$1 = $2"
    [ "$DRY" = yes ] || printf '%s\n' "$2" >"$1"
}

# restore_route FAMILY ROUTE...: changes the route that differs from ROUTE only in KEYS to ROUTE.
restore_route() {
    family=$1 to=$2
    shift
    wanted=$*
    bare=$(edited "$KEYS" "" "$@")
    while read -r line; do
        [ -n "$line" ] || continue
        # shellcheck disable=SC2086 # split into words
        [ "$(edited "$KEYS" "" $line)" = "$bare" ] || continue
        # shellcheck disable=SC2086
        [ "$(edited "" "" $line)" != "$wanted" ] || return 0
        say "ip -$family route change $wanted"
        # shellcheck disable=SC2086
        step ip -"$family" route change $wanted
        return
    done <<EOF
$(ip -"$family" -o route show exact "$to")
EOF
    say "skipped, because it was replaced since: the route to $to"
    skipped=1
}

# remove_route FAMILY ROUTE...: removes a route that was added. `ip` shows the words of a route in
# another order.
remove_route() {
    family=$1
    shift
    wanted=$(edited "$KEYS" "" "$@" | tr ' ' '\n' | sort)
    while read -r line; do
        [ -n "$line" ] || continue
        # shellcheck disable=SC2086 # split into words
        [ "$(edited "$KEYS" "" $line | tr ' ' '\n' | sort)" = "$wanted" ] || continue
        say "ip -$family route del $*"
        # shellcheck disable=SC2046,SC2086
        step ip -"$family" route del $(edited "" "" $line)
        return
    done <<EOF
$(ip -"$family" -o route show exact "$1")
EOF
}

# restore_queue DEVICE KIND HANDLE SETTINGS...; of a default queue, DEVICE default KIND.
restore_queue() {
    device=$1 kind=$2 handle=$3
    shift 3
    if [ "$kind" != default ]; then
        case $(tc qdisc show dev "$device" root) in
        "qdisc $kind $handle root"*) return 0 ;;
        esac
        say "tc qdisc replace dev $device root handle $handle $kind $*"
        step tc qdisc replace dev "$device" root handle "$handle" "$kind" "$@"
        return
    fi
    case $(tc qdisc show dev "$device" root) in
    "qdisc "*" 0: "*) return 0 ;;
    esac
    say "tc qdisc del dev $device root"
    [ "$DRY" = no ] || return 0
    # The kernel then makes a queue of the default kind. That default may have changed since the
    # device came up, so that the kind of the saved queue is the default for a moment.
    default=$(sysctl -n net.core.default_qdisc 2>/dev/null) || default=
    if [ -n "$default" ] && [ "$handle" != noqueue ] && [ "$handle" != "$default" ]; then
        sysctl -q -w "net.core.default_qdisc=$handle"
    else
        default=
    fi
    tc qdisc del dev "$device" root
    result=$?
    [ -z "$default" ] || sysctl -q -w "net.core.default_qdisc=$default"
    return $result
}

unload() {
    if [ "$DRY" = yes ]; then
        say "modprobe -r $1"
        return
    fi
    modprobe -r "$1" 2>/dev/null || say "the module $1 stays: connections still use it"
}

mode "$@"
[ "$DRY" = yes ] || need_root
if [ ! -e "$STATE/before" ]; then
    [ "$DRY" = yes ] || fail "nothing to undo: there is no $STATE/before"
    say "apply.sh was not run; it would save these values in $STATE/before, and this restores them:"
    LIST=yes sh "$here/apply.sh" --dry-run
    over
fi
failed=0 skipped=0
KEYS=
while read -r what rest; do
    # shellcheck disable=SC2086 # split into words
    case $what in
    boot)
        if [ "$rest" != "$(boot)" ]; then
            say "the machine has restarted since: the changes are gone"
            break
        fi
        ;;
    keys) KEYS=$rest ;;
    sysctl) restore_sysctl "${rest%% *}" "${rest#* }" || failed=1 ;;
    file) restore_file "${rest%% *}" "${rest#* }" || failed=1 ;;
    route) restore_route $rest || failed=1 ;;
    added) remove_route $rest || failed=1 ;;
    queue) restore_queue $rest || failed=1 ;;
    module) unload "$rest" ;;
    esac
done <"$STATE/before"
[ "$failed" = 0 ] || fail "some values could not be restored; $STATE/before lists all of them"
[ "$DRY" = no ] || over
rm -f "$STATE/before"
rmdir "$STATE" 2>/dev/null || :
rmdir /var/lib/tcplab 2>/dev/null || :
if [ "$skipped" = 0 ]; then
    say "all saved values are restored"
else
    say "all saved values are restored, but for what was skipped"
fi
