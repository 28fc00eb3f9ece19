package escape

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"correx/pkg/tools"
)

// An attempt is one way to get out of the sandbox.
type attempt struct {
	name    string // what it tries, as the documentation says it
	prepare func(t testing.TB, s *site)
	// What runs inside: Go in a process of its own, else a shell script, else the
	// program at a path of the site.
	inside  func(s *site) error
	script  string
	program func(s *site) string
	command func(c *tools.Command, s *site) // changes what is run, if there is something to change
	// escaped looks from outside; without it the attempt's own word is taken.
	escaped func(t testing.TB, s *site, o outcome) bool

	by        who
	from      level  // where it must succeed; plain unless it is aimed at the Runner itself
	mayRefuse string // why a machine may refuse it even without a sandbox
	times     int    // how often it is made; if that is said, it may be refused its start
	open      string // why it is not held: part of the documentation
	openTo    who    // who is not held, if not everybody
}

// base is the level at which the attempt must succeed.
func (a attempt) base() level {
	if a.from == "" {
		return plain
	}
	return a.from
}

// mayEscape tells whether it is known that a role is not held.
func (a attempt) mayEscape(r *role) bool {
	return a.open != "" && (a.openTo == anybody || (a.openTo == rootOnly) == (r.uid == 0))
}

// A who says as whom an attempt makes sense.
type who int

const (
	anybody  who = iota
	rootOnly     // a user tries it too, but is refused without a sandbox as well
	userOnly     // root has it already
)

// attackerName is what this program is called when it makes an attempt.
const attackerName = "correx-escape-attempt"

// What an attempt says of itself.
const (
	didIt   = "did it"
	lacking = "lacking: "
	refused = "refused: "
)

// attack makes an attempt. Its arguments are the name and the site.
func attack(args []string) int {
	var s site
	if len(args) != 2 || json.Unmarshal([]byte(args[1]), &s) != nil {
		fmt.Println("wants an attempt and a site")
		return 2
	}
	for _, a := range append(attempts(), attempt{name: flipper, inside: flip}) {
		if a.name != args[0] {
			continue
		}
		err := a.inside(&s)
		switch {
		case err == nil:
			fmt.Println(didIt)
			return 0
		case lacks(err):
			fmt.Println(lacking + err.Error())
			return 3
		}
		fmt.Println(refused + err.Error())
		return 4
	}
	fmt.Println("no such attempt")
	return 2
}

// errLacking marks what this machine does not have.
var errLacking = errors.New("not on this machine")

// lacks tells whether a machine has no such thing, from whether it refused.
func lacks(err error) bool {
	return errors.Is(err, errLacking) || slices.ContainsFunc([]error{
		unix.ENOSYS, unix.EAFNOSUPPORT, unix.EPROTONOSUPPORT, unix.ESOCKTNOSUPPORT, unix.ENODEV, unix.ENXIO, unix.EOPNOTSUPP,
	}, func(e error) bool { return errors.Is(err, e) })
}

// passed is nil when a call got past the check of permissions: it succeeded, or it
// failed as the nonsense that it was given must fail.
func passed(err error, nonsense ...error) error {
	for _, e := range nonsense {
		if errors.Is(err, e) {
			return nil
		}
	}
	return err
}

func call(number uintptr, args ...uintptr) (uintptr, error) {
	var a [6]uintptr
	copy(a[:], args)
	r, _, errno := unix.Syscall6(number, a[0], a[1], a[2], a[3], a[4], a[5])
	if errno != 0 {
		return r, errno
	}
	return r, nil
}

// readsSecret is for attempts that print what they read.
func readsSecret(_ testing.TB, s *site, o outcome) bool {
	return o.printed(s.secret)
}

// show prints a file.
func show(path string) error {
	b, err := os.ReadFile(path)
	fmt.Printf("%s\n", b)
	return err
}

// attempts are all of them, by theme.
func attempts() []attempt {
	var all []attempt
	for _, g := range groups() {
		all = append(all, g.attempts...)
	}
	return all
}

// A group is attempts of one theme.
type group struct {
	name     string
	attempts []attempt
}
