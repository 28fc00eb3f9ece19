# What the fetching scripts share. Sourced, with $0 the script in scripts/.
#
# Each script prints one path on stdout and nothing else; everything for people
# goes to stderr. What is fetched lies under .cache/ of the checkout, appears
# there complete or not at all, and is fetched once.

set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
cache=$root/.cache
name=${0##*/}
. "$root/scripts/versions"

say() { printf '%s: %s\n' "$name" "$*" >&2; }

die() {
	say "$*"
	exit 1
}

has() { command -v "$1" >/dev/null 2>&1; }

# lock waits until no other run of the same script is at work, so that tests in
# parallel fetch a thing once. Held until the script ends.
lock() {
	mkdir -p "$cache"
	has flock || return 0
	exec 9>"$cache/.$name.lock"
	flock -n 9 && return 0
	say "waits for another run of itself"
	flock 9
}

# scratch makes $work, a directory beside its final place, removed at the end; a
# process whose id is in $child ends with the script too.
scratch() {
	work=$(mktemp -d "$cache/.$name.XXXXXX")
	child=
	trap 'kill $child 2>/dev/null || :; rm -rf "$work"' EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM
}

# step TEXT COMMAND... runs the command and says every few seconds that it is
# still at work. Its output goes to $work/log, and is shown only if it fails;
# step then returns the command's status.
step() {
	text=$1
	shift
	say "$text ..."
	begun=$(date +%s)
	(
		while sleep 5 >/dev/null 2>&1 9>&- && kill -0 $$ 2>/dev/null; do
			say "$text ... $(($(date +%s) - begun)) s"
		done
	) >/dev/null &
	ticker=$!
	status=0
	"$@" >"$work/log" 2>&1 || status=$?
	kill "$ticker" 2>/dev/null || :
	wait "$ticker" 2>/dev/null || :
	[ "$status" -eq 0 ] || tail -n 20 "$work/log" | sed 's/^/    /' >&2
	return "$status"
}

# digest FILE prints its SHA-256.
digest() {
	if has sha256sum; then
		sha256sum "$1"
	else
		shasum -a 256 "$1"
	fi | cut -d' ' -f1
}

# same FILE SHA256 ends the script if the file is not the expected one.
same() {
	got=$(digest "$1")
	[ "$got" = "$2" ] ||
		die "${1##*/} has SHA-256 $got instead of $2, so it is not used; remove .cache and try again, or report it."
}

# install_go MODULE VERSION SUM PACKAGE PROGRAM builds a program of another
# module into .cache/bin, unless this version is there already, and prints its
# path. The module's digest must be SUM.
install_go() {
	bin=$cache/bin/$5
	has go || die "go is missing; install Go 1.26 or later and put it on PATH."
	built() { # by this version of the module, and this Go
		go version -m "$bin" 2>/dev/null | grep -q "^	mod	$1	$2" &&
			[ "$(go version "$bin" | sed 's/.*: //')" = "$(go env GOVERSION)" ]
	}
	if ! built "$1" "$2"; then
		lock
		scratch
	fi
	if ! built "$1" "$2"; then
		cd "$work" # outside the module, whose flags and versions are its own
		export GOFLAGS=-mod=mod
		step "fetching $1 $2" go mod download -json "$1@$2" ||
			die "$1 $2 could not be fetched; make a Go module proxy reachable (go env GOPROXY) and try again."
		sum=$(sed -n 's/.*"Sum": "\(.*\)".*/\1/p' "$work/log")
		[ "$sum" = "$3" ] ||
			die "$1 $2 has digest $sum instead of $3, so it is not used; report it."
		step "building $5 $2" env GOBIN="$work" go install "$4@$2" ||
			die "$5 could not be built; see above, and check that the Go toolchain is 1.26 or later."
		mkdir -p "$cache/bin"
		mv "$work/$5" "$bin"
		say "built .cache/bin/$5"
	fi
	printf '%s\n' "$bin"
}
