#!/bin/sh
# @TITLE@
#
# Applies the settings of README.md to the running system; undo.sh restores it. Needs root. The
# current values are saved before the first change, and restored if a step fails. With --dry-run it
# prints the steps, changes nothing, and needs no root.
@VARIABLES@
# STATE     folder of the saved values (default: @STATE@)
set -euf
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
STATE=${STATE:-@STATE@}
@DEFAULTS@

@COMMON@

# ---- Requirements ----

need_sysctl() {
    [ -e "/proc/sys/$(printf '%s' "$1" | tr . /)" ] || fail "this kernel has no sysctl $1"
}

has_algorithm() {
    case " $(value net.ipv4.tcp_available_congestion_control) " in
    *" $1 "*) return 0 ;;
    esac
    return 1
}

need_algorithm() {
    if ! has_algorithm "$1" && ! modprobe -n -q "tcp_$1" 2>/dev/null; then
        lack "this kernel has no congestion control $1, and there is no module tcp_$1"
    fi
}

need_device() {
    if [ -z "$DEV" ]; then
        # shellcheck disable=SC2046 # split into words
        set -- $(ip -4 -o route show exact default) $(ip -6 -o route show exact default)
        while [ $# -gt 1 ] && [ "$1" != dev ]; do
            shift
        done
        DEV=${2:-}
        [ -n "$DEV" ] || fail "there is no default route; name the device: DEV=eth0 $0"
    fi
    ip link show dev "$DEV" >/dev/null 2>&1 || fail "there is no device $DEV"
}

# goes_there ROUTE...: whether the route uses DEV; any device will do if DEV is empty.
goes_there() {
    case $DEV:" $* " in
    :*" dev "*) return 0 ;;
    :*) return 1 ;;
    *" dev $DEV "*) return 0 ;;
    esac
    return 1
}

# routes PREFIX: the routes to PREFIX that can be changed, one a line, after their family.
routes() {
    case $1 in
    *:*) families=6 ;;
    *.*) families=4 ;;
    *) families="4 6" ;;
    esac
    for family in $families; do
        ip -"$family" -o route show exact "$1" 2>/dev/null | while read -r line; do
            case " $line " in
            " unreachable "* | " blackhole "* | " prohibit "* | " throw "*) ;;
            *" expires "* | *" proto ra "*)
                say "skipped, because router advertisements renew it: $line" >&2 ;;
            *" nhid "*)
                say "skipped, because it refers to a nexthop object: $line" >&2 ;;
            *)
                # shellcheck disable=SC2086 # split into words
                if goes_there $line; then
                    say "$family $line"
                fi
                ;;
            esac
        done
    done
}

need_routes() {
    [ -n "$(routes "$1" 2>/dev/null)" ] || {
        routes "$1" >/dev/null
        fail "no route to $1${DEV:+ through $DEV} can be changed"
    }
}

# ---- Saved values ----

keep() {
    printf '%s\n' "$*" >>"$STATE/new"
}

keep_sysctl() {
    keep sysctl "$1" "$(value "$1")"
}

keep_file() {
    keep file "$1" "$(cat "$1")"
}

keep_algorithm() {
    # The kernel adds a default congestion control to this list.
    allowed=net.ipv4.tcp_allowed_congestion_control
    case " $(value "$allowed") " in
    *" $1 "*) ;;
    *) keep_sysctl "$allowed" ;;
    esac
    has_algorithm "$1" || keep module "tcp_$1"
}

keep_routes() {
    keep keys "$2"
    routes "$1" | while read -r family line; do
        # shellcheck disable=SC2086 # split into words
        keep route "$family" "$(edited "" "" $line)"
    done
}

keep_queue() {
    root='' own='' first=''
    while read -r _ kind handle parent more; do
        case $parent in
        root) root="$kind $handle $more" ;;
        parent)
            first=${first:-$kind}
            case $more in
            ffff:*) ;; # ingress and clsact are not queues
            *) [ "$handle" = 0: ] || own="$own $kind" ;;
            esac
            ;;
        esac
    done <<EOF
$(tc qdisc show dev "$DEV")
EOF
    [ -z "$own" ] || fail "$DEV has queues below its root ($own), which undo.sh could not rebuild"
    # shellcheck disable=SC2086 # split into words
    set -- $root
    [ $# -gt 1 ] || fail "tc shows no queue of $DEV"
    kind=$1 handle=$2
    shift 2
    [ "${1:-}" != refcnt ] || shift 2
    case $kind:$handle in
    mq:0:) keep queue "$DEV" default "$first" ;;
    *:0:) keep queue "$DEV" default "$kind" ;;
    mq:* | noqueue:*) keep queue "$DEV" "$kind" "$handle" ;;
    pfifo_fast:*) keep queue "$DEV" "$kind" "$handle" ;;
    pfifo:* | bfifo:* | pfifo_head_drop:* | fq:* | fq_codel:* | codel:* | pie:* | sfq:* | cake:*)
        keep queue "$DEV" "$kind" "$handle" "$(readable "$@")" ;;
    *) fail "$DEV has the queue $kind, set by hand, which undo.sh could not rebuild" ;;
    esac
}

# readable WORDS...: settings of a queue as `tc` shows them, converted to what `tc` reads.
readable() {
    words=''
    while [ $# -gt 0 ]; do
        case $1 in
        # The default of cake; kernels without conntrack refuse the word.
        nonat)
            shift
            continue
            ;;
        bands)
            shift 2
            continue
            ;;
        *[!0-9]p | *[!0-9]b) word=$1 ;;
        [0-9]*p) word=${1%p} ;;
        [0-9]*sec) word=${1%sec} ;;
        [0-9]*b) word=${1%b} ;;
        *) word=$1 ;;
        esac
        words="$words $word"
        shift
    done
    printf '%s\n' "${words# }"
}

# list: prints the saved values as undo.sh restores them, and ends.
list() {
    while read -r what rest; do
        case $what in
        sysctl | file) say "${rest%% *} = ${rest#* }" ;;
        route) say "ip -${rest%% *} route change ${rest#* }" ;;
        added) say "ip -${rest%% *} route del ${rest#* }" ;;
        queue) say "the queue of ${rest%% *}: ${rest#* }" ;;
        module) say "modprobe -r $rest" ;;
        esac
    done <"$STATE/before"
    exit 0
}

# ---- Changes ----

set_sysctl() {
    say "$1 = $2"
    step sysctl -q -w "$1=$2" >/dev/null
    # Some versions of sysctl exit with 0 although the kernel refused the value.
    [ "$DRY" = yes ] || [ "$(value "$1")" = "$2" ] || fail "the kernel refuses $1 = $2"
}

# set_last SYSCTL NUMBER: sets the third of three numbers, and limits the other two to it.
set_last() {
    name=$1 most=$2
    # shellcheck disable=SC2046 # split into words
    set -- $(value "$name")
    [ "$1" -le "$most" ] || set -- "$most" "$2"
    [ "$2" -le "$most" ] || set -- "$1" "$most"
    set_sysctl "$name" "$1 $2 $most"
}

# set_bit SYSCTL BIT: sets the lowest bit.
set_bit() {
    set_sysctl "$1" "$(($(value "$1") & ~1 | $2))"
}

set_file() {
    say "$1 = $2"
    [ "$DRY" = yes ] || printf '%s\n' "$2" >"$1"
}

load_algorithm() {
    has_algorithm "$1" && return
    say "modprobe tcp_$1"
    step modprobe "tcp_$1"
}

# set_routes PREFIX KEYS ADDED
set_routes() {
    changed=$(routes "$1" 2>/dev/null)
    while read -r family line; do
        # shellcheck disable=SC2086 # split into words
        line=$(edited "$2" "$3" $line)
        say "ip -$family route change $line"
        # shellcheck disable=SC2086
        step ip -"$family" route change $line
    done <<EOF
$changed
EOF
}

# set_queue KIND SETTINGS...: replaces the queue of DEV. A device with several hardware queues (mq)
# gets one such queue for each of them, unless ONE_QUEUE is yes.
set_queue() {
    present=$(tc qdisc show dev "$DEV" root)
    # A new handle makes the kernel create a new queue. Without one, it would keep the settings that
    # are not named, if the current queue is of the same kind.
    handle=7c9a:
    case $present in
    "qdisc "*" $handle "*) handle=7c9b: ;;
    esac
    case $ONE_QUEUE:$present in
    no:"qdisc mq "*)
        say "tc qdisc replace dev $DEV root mq, with $* for each hardware queue"
        [ "$DRY" = no ] || return 0
        tc qdisc replace dev "$DEV" root handle "$handle" mq
        tc qdisc show dev "$DEV" | while read -r _ _ _ parent place _; do
            case $parent:$place in
            parent:"$handle"*) tc qdisc replace dev "$DEV" parent "$place" "$@" ;;
            esac
        done
        ;;
    *)
        say "tc qdisc replace dev $DEV root $*"
        step tc qdisc replace dev "$DEV" root handle "$handle" "$@"
        ;;
    esac
}

# ---- Settings ----

@STEPS@

# ---- Main ----

mode "$@"
[ "$DRY" = yes ] || need_root
need_tools @TOOLS@
if [ -e "$STATE/before" ]; then
    read -r _ saved <"$STATE/before"
    if [ "$saved" = "$(boot)" ]; then
        fail "already applied: run undo.sh first ($STATE/before has the values from before)"
    fi
    # The changes are gone since the reboot.
    step rm -f "$STATE/before"
fi
check
if [ "$DRY" = yes ]; then
    # The values are saved for the time of the dry run, since some steps depend on them.
    STATE=$(mktemp -d)
    trap 'rm -f "$STATE/new" "$STATE/before"; rmdir "$STATE"' EXIT
else
    mkdir -p "$STATE"
    trap 'rm -f "$STATE/new"; rmdir "$STATE" 2>/dev/null || :' EXIT
fi
trap 'exit 130' INT TERM HUP
: >"$STATE/new"
keep boot "$(boot)"
save
mv "$STATE/new" "$STATE/before"
if [ "$DRY" = yes ]; then
    [ "${LIST:-no}" = no ] || list
    change
    over
fi
trap 'say "a step failed: undoing all changes" >&2; STATE=$STATE sh "$here/undo.sh" >&2' EXIT
change
trap - EXIT
say "done; undo.sh restores the saved values"
