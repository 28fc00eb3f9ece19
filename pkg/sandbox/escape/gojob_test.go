package escape

import (
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"correx/internal/testenv"
)

// goFiles are a module that needs another, which is beside it: nothing is fetched.
var goFiles = map[string]string{
	"go.mod":      "module example.org/job\n\ngo 1.26\n\nrequire example.org/sum v0.0.0\n\nreplace example.org/sum => ./sum\n",
	"main.go":     "package main\n\nimport (\n\t\"fmt\"\n\n\t\"example.org/sum\"\n)\n\nfunc main() { fmt.Println(sum.Of(1, 2, 3)) }\n",
	"sum/go.mod":  "module example.org/sum\n\ngo 1.26\n",
	"sum/sum.go":  "// Package sum adds.\npackage sum\n\n// Of is the sum of n.\nfunc Of(n ...int) (s int) {\n\tfor _, v := range n {\n\t\ts += v\n\t}\n\treturn s\n}\n",
	"job_test.go": "package main\n\nimport (\n\t\"testing\"\n\n\t\"example.org/sum\"\n)\n\nfunc TestSum(t *testing.T) {\n\tif sum.Of(1, 2) != 3 {\n\t\tt.Fatal(\"wrong\")\n\t}\n}\n",
}

// goEnv is what the go command needs where there is no network and no home.
func goEnv(cache string) []string {
	return []string{"GOCACHE=" + cache, "GOPATH=" + filepath.Join(filepath.Dir(cache), "go"), "GOFLAGS=-mod=mod -p=2 -buildvcs=false", "GOTOOLCHAIN=local", "GOPROXY=off", "GOTELEMETRY=off", "CGO_ENABLED=0"}
}

// goModule puts the module into the workspace, and a cache that has the standard
// library already into the invocation's directory: compiling that takes a minute.
func goModule(t testing.TB, s *site) {
	for name, text := range goFiles {
		s.write(t, name, text)
	}
	warm, err := goCache()
	if err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(s.Own, "cache")
	if text, err := exec.Command("cp", "-r", warm, to).CombinedOutput(); err != nil {
		t.Fatalf("copy the cache: %v: %s", err, text)
	}
	if s.role.credential() == nil {
		return
	}
	if text, err := exec.Command("chown", "-R", s.role.owner(), to).CombinedOutput(); err != nil {
		t.Fatalf("give away the cache: %v: %s", err, text)
	}
}

// goCache fills a cache under .cache by doing the same job outside, once.
var goCache = sync.OnceValues(func() (string, error) {
	cache := filepath.Join(testenv.Root(), ".cache", "programs-go")
	dir, err := os.MkdirTemp("", "correx-escape-go-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	for name, text := range goFiles {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			return "", err
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return "", err
		}
	}
	for _, args := range [][]string{{"build", "-o", filepath.Join(dir, "job"), "."}, {"test", "./..."}} {
		cmd := exec.Command("go", args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), goEnv(cache)...)
		if text, err := cmd.CombinedOutput(); err != nil {
			return "", &exec.Error{Name: "go: " + string(text), Err: err}
		}
	}
	return cache, nil
})
