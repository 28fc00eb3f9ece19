package access

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/nats-io/nkeys"
)

// KeyFile is where the seed of r's key lies.
func KeyFile(stateDir string, r Role) string {
	return filepath.Join(stateDir, "keys", string(r)+".nk")
}

// KernelKeyFile is where the public key stands that signs approvals. A tool-worker
// on another machine needs this file and its own key, and no other.
func KernelKeyFile(stateDir string) string { return filepath.Join(stateDir, "kernel.pub") }

// ProjectorKeyFile is where the public key stands that signs checkpoints. Whoever
// verifies them elsewhere needs this file, and no key.
func ProjectorKeyFile(stateDir string) string { return filepath.Join(stateDir, "projector.pub") }

// EnsureKeys makes the keys that are missing, kernel.pub and projector.pub. Keys that are
// there are kept. It is safe to call from several processes at once.
func EnsureKeys(stateDir string) error {
	if err := os.MkdirAll(filepath.Join(stateDir, "keys"), 0o700); err != nil {
		return fmt.Errorf("make key directory: %w", err)
	}
	for _, r := range Roles() {
		if err := ensureKey(KeyFile(stateDir, r)); err != nil {
			return fmt.Errorf("make key of %s: %w", r, err)
		}
	}
	return errors.Join(
		ensurePublic(stateDir, Kernel, KernelKeyFile(stateDir)),
		ensurePublic(stateDir, Projector, ProjectorKeyFile(stateDir)))
}

// ensurePublic writes the public half of r's key, unless it stands there.
func ensurePublic(stateDir string, r Role, path string) error {
	pub, err := PublicKey(stateDir, r)
	if err != nil {
		return err
	}
	if have, err := readPublic(r, path); err == nil && have == pub {
		return nil
	}
	return publish(path, []byte(pub+"\n"), os.Rename)
}

func ensureKey(path string) error {
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	kp, err := nkeys.CreateUser()
	if err != nil {
		return err
	}
	defer kp.Wipe()
	seed, err := kp.Seed()
	if err != nil {
		return err
	}
	// A link fails where a key is already: of two processes, one makes it.
	err = publish(path, append(seed, '\n'), os.Link)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

// publish writes a file under another name, flushed, and puts it in place whole.
func publish(path string, data []byte, put func(from, to string) error) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*") // 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(data)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return put(f.Name(), path)
}

// load reads the key of r.
func load(stateDir string, r Role) (nkeys.KeyPair, error) {
	path := KeyFile(stateDir, r)
	seed, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("key of %s: %s is not there; `bus serve` makes it, or copy it from the machine that did", r, path)
	}
	if err != nil {
		return nil, fmt.Errorf("key of %s: %w", r, err)
	}
	defer clear(seed)
	kp, err := nkeys.FromSeed([]byte(strings.TrimSpace(string(seed))))
	if err != nil {
		return nil, fmt.Errorf("key of %s: %s holds no seed: %w", r, path, err)
	}
	return kp, nil
}

// PublicKey returns the public half of r's key.
func PublicKey(stateDir string, r Role) (string, error) {
	kp, err := load(stateDir, r)
	if err != nil {
		return "", err
	}
	defer kp.Wipe()
	return kp.PublicKey()
}

// Signer returns the key that signs approvals: the kernel's.
func Signer(stateDir string) (nkeys.KeyPair, error) { return load(stateDir, Kernel) }

// KernelKey returns the public key that approvals must be signed with.
func KernelKey(stateDir string) (string, error) { return readPublic(Kernel, KernelKeyFile(stateDir)) }

// CheckpointSigner returns the key that signs checkpoints: the projector's.
func CheckpointSigner(stateDir string) (nkeys.KeyPair, error) { return load(stateDir, Projector) }

// ProjectorKey returns the public key that checkpoints must be signed with.
func ProjectorKey(stateDir string) (string, error) {
	return readPublic(Projector, ProjectorKeyFile(stateDir))
}

func readPublic(r Role, path string) (string, error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("%s's public key: %s is not there; `bus serve` writes it, or copy it from the machine that did", r, path)
	}
	if err != nil {
		return "", fmt.Errorf("%s's public key: %w", r, err)
	}
	pub := strings.TrimSpace(string(b))
	if !nkeys.IsValidPublicUserKey(pub) {
		return "", fmt.Errorf("%s's public key: %s holds no public NKey of a user", r, path)
	}
	return pub, nil
}

// ParsePublic reads a user's public NKey: itself, or the name of a file with it.
func ParsePublic(s string) (string, error) {
	if nkeys.IsValidPublicUserKey(s) {
		return s, nil
	}
	b, err := os.ReadFile(s)
	if err != nil {
		return "", fmt.Errorf("%q is neither a public NKey of a user (U…) nor a file with one", s)
	}
	if pub := strings.TrimSpace(string(b)); nkeys.IsValidPublicUserKey(pub) {
		return pub, nil
	}
	return "", fmt.Errorf("%s holds no public NKey of a user", s)
}
