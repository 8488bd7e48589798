say() {
    printf '%s\n' "$*"
}

fail() {
    printf 'error: %s\n' "$*" >&2
    exit 1
}

# lack TEXT: a requirement that is missing. A dry run goes on, so that all steps are shown.
lacking=no
lack() {
    [ "$DRY" = yes ] || fail "$*"
    say "missing: $*"
    lacking=yes
}

# over: ends a dry run.
over() {
    [ "$lacking" = no ] || fail "nothing was changed; without --dry-run it stops at what is missing"
    say "dry run: nothing was changed"
    exit 0
}

need_root() {
    [ "$(id -u)" = 0 ] || fail "this needs root"
}

need_tools() {
    for tool in "$@"; do
        command -v "$tool" >/dev/null || lack "$tool is not installed, or not in PATH"
    done
}

# mode ARGUMENTS...: whether this is a dry run, which prints the steps and takes none.
mode() {
    DRY=no
    case $#:${1:-} in
    0:) ;;
    1:--dry-run) DRY=yes ;;
    *) fail "takes no argument but --dry-run: README.md says what it changes, and by which variables" ;;
    esac
}

# step COMMAND...: runs a command that changes the system, unless this is a dry run.
step() {
    [ "$DRY" = yes ] || "$@"
}

boot() {
    cat /proc/sys/kernel/random/boot_id
}

# The value of a sysctl, with single blanks between its numbers.
value() {
    # shellcheck disable=SC2046 # split into words
    set -- $(sysctl -n "$1")
    printf '%s\n' "$*"
}

# edited KEYS ADDED ROUTE...: converts a route as `ip` shows it to what `ip` reads, without the
# attributes KEYS, and with ADDED after the destination.
edited() {
    keys=$1 added=$2 line=$3
    shift 3
    [ -z "$added" ] || line="$line $added"
    while [ $# -gt 0 ]; do
        # shellcheck disable=SC1003 # a backslash
        case $1 in
        dev | via | src | proto | metric | scope | tos | inet6)
            line="$line $1 $2"
            shift 2
            continue
            ;;
        # `ip` shows these words, but does not read them.
        linkdown | dead | offload | offload_failed | trap | rt_offload | rt_trap | unresolved | '\')
            shift
            continue
            ;;
        esac
        # `ip -o` has a backslash for a line break, for IPv6 without a blank before it.
        word=${1%\\}
        shift
        case " $keys " in
        *" $word "*)
            [ "${1:-}" != lock ] || shift
            shift
            continue
            ;;
        esac
        line="$line $word"
        # `ip` sets the lock by itself, and does not read the word.
        if [ "$word" = rto_min ] && [ "${1:-}" = lock ]; then
            shift
        fi
    done
    printf '%s\n' "$line"
}
