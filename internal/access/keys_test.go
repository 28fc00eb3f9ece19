package access_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/nats-io/nkeys"

	"correx/internal/access"
)

func TestEnsureKeysMakesEachKeyOnce(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	var wg sync.WaitGroup
	for range 8 { // processes that start at the same time
		wg.Go(func() {
			if err := access.EnsureKeys(dir); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	first := publicKeys(t, dir)
	if err := access.EnsureKeys(dir); err != nil {
		t.Fatal(err)
	}
	seen := map[string]access.Role{}
	for r, pub := range publicKeys(t, dir) {
		if first[r] != pub {
			t.Errorf("key of %s was made anew", r)
		}
		if other, ok := seen[pub]; ok {
			t.Errorf("%s and %s have the same key", r, other)
		}
		seen[pub] = r
	}
	assertPrivate(t, dir)
}

func publicKeys(t *testing.T, dir string) map[access.Role]string {
	t.Helper()
	keys := map[access.Role]string{}
	for _, r := range access.Roles() {
		pub, err := access.PublicKey(dir, r)
		if err != nil {
			t.Fatal(err)
		}
		keys[r] = pub
	}
	return keys
}

func assertPrivate(t *testing.T, dir string) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join(dir, "keys"), func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		if info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %s", path, info.Mode())
		}
		if !e.IsDir() && !strings.HasSuffix(path, ".nk") {
			t.Errorf("%s was left behind", path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestKernelKeyIsTheSignersOther(t *testing.T) {
	dir := t.TempDir()
	if err := access.EnsureKeys(dir); err != nil {
		t.Fatal(err)
	}
	signer, err := access.Signer(dir)
	if err != nil {
		t.Fatal(err)
	}
	sig, err := signer.Sign([]byte("approved"))
	if err != nil {
		t.Fatal(err)
	}
	pub, err := access.KernelKey(dir)
	if err != nil {
		t.Fatal(err)
	}
	key, err := nkeys.FromPublicKey(pub)
	if err != nil {
		t.Fatal(err)
	}
	if err := key.Verify([]byte("approved"), sig); err != nil {
		t.Error(err)
	}
}

func TestMissingAndBrokenKeysSayWhatToDo(t *testing.T) {
	dir := t.TempDir()
	if _, err := access.PublicKey(dir, access.Viewer); err == nil || !strings.Contains(err.Error(), "viewer.nk is not there; `bus serve` makes it") {
		t.Errorf("missing key: %v", err)
	}
	if _, err := access.KernelKey(dir); err == nil || !strings.Contains(err.Error(), "copy it from the machine") {
		t.Errorf("missing kernel.pub: %v", err)
	}
	if err := access.EnsureKeys(dir); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{access.KeyFile(dir, access.Viewer), access.KernelKeyFile(dir)} {
		if err := os.WriteFile(path, []byte("rubbish\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := access.PublicKey(dir, access.Viewer); err == nil || !strings.Contains(err.Error(), "holds no seed") {
		t.Errorf("broken key: %v", err)
	}
	if _, err := access.KernelKey(dir); err == nil || !strings.Contains(err.Error(), "holds no public NKey") {
		t.Errorf("broken kernel.pub: %v", err)
	}
}
