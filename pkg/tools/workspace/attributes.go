package workspace

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// copyAttributes gives to the access list and the user attributes of name in
// dir. Others, such as capabilities, are not for a changed file to inherit.
func copyAttributes(dir *os.File, name string, to *os.File) error {
	fd, err := unix.Openat(int(dir.Fd()), name, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ELOOP) {
		return nil // a restore of a file that is gone, or has become a link
	}
	if err != nil {
		return fmt.Errorf("keep attributes: %w", err)
	}
	defer unix.Close(fd)
	size, err := unix.Flistxattr(fd, nil)
	if errors.Is(err, unix.ENOTSUP) || size == 0 {
		return nil
	}
	names := make([]byte, size+1024)
	if size, err = unix.Flistxattr(fd, names); err != nil {
		return fmt.Errorf("list attributes: %w", err)
	}
	for _, attr := range strings.Split(strings.TrimRight(string(names[:size]), "\x00"), "\x00") {
		if attr != "system.posix_acl_access" && !strings.HasPrefix(attr, "user.") {
			continue
		}
		value := make([]byte, 64<<10) // the kernel's limit
		n, err := unix.Fgetxattr(fd, attr, value)
		if err == nil {
			err = unix.Fsetxattr(int(to.Fd()), attr, value[:n], 0)
		}
		if err != nil {
			return fmt.Errorf("keep attribute %s: %w", attr, err)
		}
	}
	return nil
}
