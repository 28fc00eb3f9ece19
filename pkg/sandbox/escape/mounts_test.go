package escape

import (
	"fmt"
	"os"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// mountAttempts change what is mounted where. Without a sandbox they happen in a
// mount namespace of their own, where the machine is not to be harmed.
func mountAttempts() []attempt {
	return []attempt{
		{name: "mount a file system outside", by: rootOnly, inside: func(s *site) error { return unix.Mount("none", s.Outside, "tmpfs", 0, "") },
			escaped: func(t testing.TB, s *site, _ outcome) bool {
				if content(s.victim()) == untouched {
					return false
				}
				if err := unix.Unmount(s.Outside, unix.MNT_DETACH); err != nil {
					t.Fatal(err)
				}
				return true
			}},
		{name: "mount a file system in the workspace", by: rootOnly, inside: apart(func(*site) error { return unix.Mount("none", ".", "tmpfs", 0, "") })},
		{name: "bind the outside into the workspace and write it", by: rootOnly, escaped: changedVictim, inside: apart(func(s *site) error {
			if err := os.Mkdir("bound", 0o755); err != nil {
				return err
			}
			if err := unix.Mount(s.Outside, "bound", "", unix.MS_BIND, ""); err != nil {
				return err
			}
			return scribble("bound/victim.txt")
		})},
		{name: "remount the root writable and write outside", by: rootOnly, escaped: changedVictim, inside: apart(func(s *site) error {
			if err := unix.Mount("none", "/", "", unix.MS_REMOUNT|unix.MS_BIND, ""); err != nil {
				return err
			}
			return scribble(s.victim())
		})},
		{name: "make the root writable by mount_setattr", by: rootOnly, inside: apart(func(*site) error {
			return unix.MountSetattr(unix.AT_FDCWD, "/", 0, &unix.MountAttr{Attr_clr: unix.MOUNT_ATTR_RDONLY})
		})},
		{name: "clone a mount by open_tree and attach it by move_mount", by: rootOnly, inside: apart(func(s *site) error {
			fd, err := unix.OpenTree(unix.AT_FDCWD, s.Outside, unix.OPEN_TREE_CLONE)
			if err != nil {
				return err
			}
			return unix.MoveMount(fd, "", unix.AT_FDCWD, s.Work, unix.MOVE_MOUNT_F_EMPTY_PATH)
		})},
		{name: "open a file system by fsopen", by: rootOnly, inside: func(*site) error {
			_, err := unix.Fsopen("tmpfs", 0)
			return err
		}},
		{name: "exchange the root by pivot_root", by: rootOnly, inside: apart(func(s *site) error {
			if err := unix.Mount("none", s.Work, "tmpfs", 0, ""); err != nil {
				return err
			}
			if err := os.Mkdir(s.Work+"/old", 0o755); err != nil {
				return err
			}
			return unix.PivotRoot(s.Work, s.Work+"/old")
		})},
		{name: "unmount /proc", by: rootOnly, inside: apart(func(*site) error { return unix.Unmount("/proc", unix.MNT_DETACH) })},
		{name: "make a device node of the machine's disk and read it", by: rootOnly, inside: readDisk},
		{name: "make a device node and read it", by: rootOnly, inside: func(*site) error {
			if err := unix.Mknod("zero", unix.S_IFCHR|0o600, int(unix.Mkdev(1, 5))); err != nil {
				return err
			}
			return readable("zero")
		}},
		{name: "open a file by its handle (open_by_handle_at)", by: rootOnly, inside: func(s *site) error {
			handle, _, err := unix.NameToHandleAt(unix.AT_FDCWD, s.victim(), 0)
			if err != nil {
				return err
			}
			root, err := unix.Open("/", unix.O_RDONLY, 0)
			if err != nil {
				return err
			}
			_, err = unix.OpenByHandleAt(root, handle, unix.O_RDONLY)
			return passed(err, unix.ESTALE)
		}},
		{name: "watch all of a mount (fanotify)", by: rootOnly, inside: func(*site) error {
			_, err := unix.FanotifyInit(unix.FAN_CLASS_NOTIF, unix.O_RDONLY)
			return err
		}},
	}
}

// apart does something in a mount namespace of its own, if that can be had.
func apart(do func(*site) error) func(*site) error {
	return inThread(func(s *site) error {
		if unix.Unshare(unix.CLONE_NEWNS) == nil {
			if err := unix.Mount("none", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
				return err
			}
			if err := unix.Chdir(s.Work); err != nil {
				return err
			}
		}
		return do(s)
	})
}

// readDisk makes a node for the device that the root lies on.
func readDisk(s *site) error {
	var st unix.Stat_t
	if err := unix.Stat(s.Work, &st); err != nil {
		return err
	}
	if unix.Major(st.Dev) == 0 {
		return fmt.Errorf("%w: the workspace is on no disk", errLacking)
	}
	if err := unix.Mknod("disk", unix.S_IFBLK|0o600, int(st.Dev)); err != nil {
		return err
	}
	return readable("disk")
}

// structure is the address of what a call is given.
func structure[T any](v *T) uintptr { return uintptr(unsafe.Pointer(v)) }
