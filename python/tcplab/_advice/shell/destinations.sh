# Attributes that a new route does not copy from the route that it is derived from.
ALL="initcwnd initrwnd rto_min quickack window advmss congctl features"

# covering FAMILY PREFIX: the route with the longest prefix that covers PREFIX.
covering() {
    best='' length=-1
    while read -r line; do
        found=${line%% *}
        case $found in
        default) found=0 ;;
        */*) found=${found#*/} ;;
        *) continue ;;
        esac
        # shellcheck disable=SC2086 # split into words
        if [ "$found" -gt "$length" ] && goes_there $line; then
            best=$line length=$found
        fi
    done <<EOF
$(ip -"$1" -o route show match "$2")
EOF
    printf '%s\n' "$best"
}

# derived PREFIX ADDED ROUTE...: a route to PREFIX with the next hop of ROUTE.
derived() {
    to=$1 added=$2
    shift 2
    # shellcheck disable=SC2046 # split into words
    set -- $(edited "$ALL" "" "$@")
    made="$to $added proto static"
    shift
    while [ $# -gt 0 ]; do
        case $1 in
        proto | expires) shift 2 ;;
        *)
            made="$made $1"
            shift
            ;;
        esac
    done
    printf '%s\n' "$made"
}

family_of() {
    case $1 in
    *:*) say 6 ;;
    *) say 4 ;;
    esac
}

need_destination() {
    [ -z "$(routes "$1" 2>/dev/null)" ] || return 0
    [ -n "$(covering "$(family_of "$1")" "$1")" ] ||
        fail "no route covers $1${DEV:+ through $DEV}"
}

# keep_destination PREFIX KEYS ADDED: saves the current route, or the one that will be added.
keep_destination() {
    if [ -n "$(routes "$1" 2>/dev/null)" ]; then
        keep_routes "$1" "$2"
        return
    fi
    keep keys "$2"
    family=$(family_of "$1")
    # shellcheck disable=SC2046 # split into words
    keep added "$family" "$(derived "$1" "$3" $(covering "$family" "$1"))"
}

# set_destination PREFIX KEYS ADDED
set_destination() {
    while read -r what family to line; do
        if [ "$what" = added ] && [ "$to" = "$1" ]; then
            say "ip -$family route add $to $line"
            # shellcheck disable=SC2086 # split into words
            step ip -"$family" route add "$to" $line
            return
        fi
    done <"$STATE/before"
    set_routes "$1" "$2" "$3"
}
