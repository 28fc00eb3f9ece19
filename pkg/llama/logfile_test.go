package llama

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// What comes too fast is left out and counted.
func TestProcessLogRate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	file, err := openLog(path)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	file.now = func() time.Time { return now }
	line := strings.Repeat("x", 1023)
	for range 2 * logBurst / 1024 {
		file.line(line)
	}
	if info, err := os.Stat(path); err != nil || info.Size() != logBurst {
		t.Errorf("at once came %d, %v", info.Size(), err)
	}
	now = now.Add(2 * time.Second)
	file.line("later")
	file.close()
	text, err := os.ReadFile(path)
	if want := fmt.Sprintf("(%d lines that came too fast were left out)\nlater\n", logBurst/1024); err != nil || !strings.HasSuffix(string(text), want) {
		t.Errorf("it ends with %q, want %q", text[max(0, len(text)-100):], want)
	}
}

// Two workers of one machine write to one file. Neither loses the other's.
func TestProcessLogOfTwo(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	var files []*logFile
	begun := time.Now()
	for range 2 {
		f, err := openLog(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.close()
		f.now = func() time.Time { begun = begun.Add(time.Minute); return begun }
		files = append(files, f)
	}
	line := strings.Repeat("x", 64<<10)
	for range 3*logBytes/len(line)/2 + 4 { // each is full once, and a half
		files[0].line(line)
		files[1].line(line)
	}
	for _, name := range []string{path, path + ".old"} {
		if info, err := os.Stat(name); err != nil || info.Size() > 3*logBytes {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	files[0].line("last of one")
	files[1].line("last of two")
	text, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(text), "last of one") && !strings.Contains(string(text), "last of two") {
		t.Errorf("neither writes to the file that is there: %v", err)
	}
}

func TestProcessSecretsAreHidden(t *testing.T) {
	t.Setenv("HF_TOKEN", "a-token-of-mine")
	path := filepath.Join(t.TempDir(), "log")
	file, err := openLog(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.close()
	r := newLogRing(file, "the-key-of-it")
	for _, line := range []string{
		"started with the-key-of-it", "a-token-of-mine is sent", "Authorization: Bearer abcdef123456", `{"api_key":"sk-1234567890"}`,
		"--api-key=sk-1234567890 --port 1", "got hf_ABCDEFGHIJKLMNOPQRST", "password = hunter2hunter2",
	} {
		fmt.Fprintln(r, line)
	}
	fmt.Fprint(r, "cut in two: the-key-")
	fmt.Fprintln(r, "of-it")
	fmt.Fprintln(r, "the key of a map, 4096 tokens, bearer of news")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{"the-key-of-it", "a-token-of-mine", "abcdef123456", "sk-1234567890", "hf_ABC", "hunter2"} {
		if strings.Contains(string(text), secret) || strings.Contains(strings.Join(r.Tail(100), "\n"), secret) {
			t.Errorf("%s is in\n%s", secret, text)
		}
	}
	if !strings.Contains(string(text), "the key of a map, 4096 tokens, bearer of news") || !strings.Contains(string(text), "--port 1") {
		t.Errorf("too much is hidden:\n%s", text)
	}
}

func TestProcessFlagsOfTheHelp(t *testing.T) {
	set := readFlags("-h,    --help, --usage     print usage\n-np,  --parallel N   number, see --other and -x\n" +
		"                     (env: X) --deep\n-C,    --cpu-mask M   mask\n--host HOST   or UNIX socket paths ending in .sock\n")
	for flag, want := range map[string]bool{
		"-h": true, "--help": true, "--usage": true, "-np": true, "--parallel": true, "-C": true, "--host": true, sockets: true,
		"--other": false, "-x": false, "N": false,
	} {
		if set[flag] != want {
			t.Errorf("%s is known: %v", flag, !want)
		}
	}
	if err := set.check([]string{"--parallel", "-1", "--host=x", "-C", "value"}); err != nil {
		t.Error(err)
	}
	err := set.check([]string{"--paralel", "2", "-xyz"})
	if err == nil || !strings.Contains(err.Error(), "--paralel") || !strings.Contains(err.Error(), "-xyz") {
		t.Errorf("error is %v", err)
	}
}
