package escape

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"correx/pkg/tools"
)

// limitAttempts use up what others need. Each stops by itself, well above the
// limit that it is given.
func limitAttempts() []attempt {
	const mib = 1 << 20
	return []attempt{
		{name: "start processes without end (fork bomb)", command: limited(tools.Limits{Processes: 32}), escaped: prints("\n200\n"),
			script: `i=0; while [ $i -lt 200 ]; do sleep 100 & i=$((i+1)); echo $i; done; echo`},
		{name: "start threads without end", command: limited(tools.Limits{Processes: 32}), inside: threads},
		{name: "take all memory in one process", command: limited(tools.Limits{AddressSpace: 1 << 30, Memory: 1 << 30}), inside: func(*site) error { return touch(1536 * mib) }},
		{name: "take all memory in many processes", openTo: userOnly,
			open: "all together are limited where a cgroup can be had. A user has one where the system hands it over; else only each process is limited.", command: limited(tools.Limits{Memory: 128 * mib}), escaped: prints("all has its memory"),
			script: `for i in 1 2 3 4; do (head -c 100M /dev/zero | tail | { [ "$(head -c 1 | wc -c)" = 1 ] && sleep 1 && echo one >>"$WORK/memory"; cat >/dev/null; }) & done; wait
				[ "$(wc -l <"$WORK/memory")" = 4 ] && echo all has its memory`},
		{name: "take all memory by files in /tmp and /dev/shm", command: limited(tools.Limits{Memory: 128 * mib, FileSize: 512 * mib}), escaped: prints("all fits"),
			script: `for dir in /tmp /dev/shm; do head -c 300M /dev/zero >$dir/$MARK && n="$n."; done; rm -f /tmp/$MARK /dev/shm/$MARK; [ "$n" = .. ] && echo all fits`},
		{name: "compute without end", command: limited(tools.Limits{CPU: 1}), inside: func(*site) error {
			for spent() < 1800*time.Millisecond {
				for i := range 1 << 20 {
					_ = math.Sqrt(float64(i))
				}
			}
			return nil
		}},
		{name: "fill the disk with one file", command: limited(tools.Limits{FileSize: mib}), script: `head -c 8M /dev/zero >big`,
			escaped: func(t testing.TB, s *site, _ outcome) bool {
				return stat(t, filepath.Join(s.Work, "big")).Size() == 8*mib
			}},
		{name: "fill the disk with many files", command: limited(tools.Limits{FileSize: mib}), script: `for i in $(seq 64); do head -c 1M /dev/zero >f$i; done`,
			escaped: func(_ testing.TB, s *site, _ outcome) bool { return exists(filepath.Join(s.Work, "f64")) },
			open:    "there is no quota on a directory; the limits are the size of each file and the time-out. A workspace on a file system of its own holds it."},
		{name: "open descriptors without end", command: limited(tools.Limits{OpenFiles: 128}), inside: func(*site) error {
			for i := range 1000 {
				if _, err := unix.Dup(1); err != nil {
					return fmt.Errorf("the %dth: %w", i, err)
				}
			}
			return nil
		}},
		{name: "raise a limit", command: limited(tools.Limits{OpenFiles: 128}), inside: func(*site) error {
			if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 200, Max: 200}); err != nil {
				return err
			}
			for range 180 {
				if _, err := unix.Dup(1); err != nil {
					return err
				}
			}
			return nil
		}},
		{name: "leave a dump of its memory", script: `ulimit -c unlimited; echo "$(ulimit -c)"`, escaped: prints("unlimited")},
		{name: "print without end", escaped: printedAll, script: "head -c 300M /dev/zero"},
		{name: "print errors without end", escaped: printedAll, script: "head -c 300M /dev/zero >&2"},
		{name: "print without end from a process that got away", escaped: printedAll, script: "setsid sh -c 'head -c 300M /dev/zero' & wait"},
	}
}

func limited(l tools.Limits) func(*tools.Command, *site) {
	return func(c *tools.Command, _ *site) { c.Limits = l }
}

func prints(text string) func(testing.TB, *site, outcome) bool {
	return func(_ testing.TB, _ *site, o outcome) bool { return o.printed(text) }
}

func printedAll(_ testing.TB, _ *site, o outcome) bool {
	return o.Exit.Stdout.Total+o.Exit.Stderr.Total >= 300<<20
}

// touch uses memory.
func touch(size int) error {
	b, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return err
	}
	for i := 0; i < len(b); i += os.Getpagesize() {
		b[i] = 1
	}
	return nil
}

// spent is the processor's time that this process used.
func spent() time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return time.Hour
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// threads starts threads until there are many. When one is refused, Go ends the
// process.
func threads(*site) error {
	var all sync.WaitGroup
	all.Add(200)
	for range 200 {
		go func() {
			runtime.LockOSThread()
			all.Done()
			select {} // its thread stays
		}()
	}
	all.Wait()
	n, err := os.ReadDir("/proc/self/task")
	if err == nil && len(n) < 150 {
		err = fmt.Errorf("only %d threads", len(n))
	}
	return err
}
