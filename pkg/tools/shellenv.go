package tools

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// writableDirs are all directories in which some tool may write, both as they
// are written and as they really are.
func writableDirs(c Config, workingDir string) []string {
	dirs := slices.Concat(c.FileWrite.AllowedPaths, c.FileEdit.AllowedPaths, c.Writable)
	if workingDir != "" {
		dirs = append(dirs, workingDir)
	}
	var out []string
	for _, d := range dirs {
		if abs, err := filepath.Abs(d); err == nil {
			out = append(out, abs)
		}
		if real, err := filepath.EvalSymlinks(d); err == nil {
			out = append(out, real)
		}
	}
	return out
}

// changeableDirs are the real paths of the directories that a program may change:
// those of the tools that write, and the one that it works in. The worker's own
// are not among them.
func changeableDirs(c Config, workingDir string) []string {
	var out []string
	for _, d := range slices.Concat(c.FileWrite.AllowedPaths, c.FileEdit.AllowedPaths, []string{workingDir}) {
		if d == "" {
			continue
		}
		if abs, err := filepath.Abs(d); err == nil {
			d = abs
		}
		if real, err := filepath.EvalSymlinks(d); err == nil && !slices.Contains(out, real) {
			out = append(out, real)
		}
	}
	return out
}

// checkVariable refuses variables that make programs run other code, or that the
// tool sets itself.
func checkVariable(name string) error {
	for _, prefix := range []string{
		"LD_", "GIT_", "PYTHON", "NODE_", "PERL", "RUBY", "BASH_", "DYLD_", "JAVA_", "_JAVA_", "JDK_JAVA_", "GCONV_", "RUSTC_", "RUSTFLAGS",
		"MAKEFLAGS", "GNUMAKEFLAGS", "GOFLAGS", "GOROOT", "SHELLOPTS", "BASHOPTS", "PAGER", "EDITOR", "VISUAL", "BROWSER", "LESS", "NPM_CONFIG", "npm_config",
	} {
		if strings.HasPrefix(name, prefix) {
			return fmt.Errorf("environment: %s can make programs run other code and is never handed on", name)
		}
	}
	if name == "" || strings.ContainsAny(name, "=\x00") || slices.Contains([]string{"PATH", "HOME", "LANG", "TMPDIR", "ENV", "IFS"}, name) {
		return fmt.Errorf("environment: %q cannot be handed on", name)
	}
	return nil
}

// env is the whole environment of a program.
func (t *ShellTool) env(home string) []string {
	env := []string{
		"PATH=" + SearchPath, "HOME=" + home, "TMPDIR=" + home, "LANG=C.UTF-8",
		"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null",
	}
	for _, name := range t.environment {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	return env
}
