package access

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Env returns what to put into a shell's environment, a line each, so that the
// nats command line is the operator on this server:
//
//	export NATS_URL='nats://127.0.0.1:4222'
//	export NATS_NKEY='…/keys/operator.nk'
//	export NATS_CONTEXT='…/keys/operator.json'
//
// The context is a file that Env writes; it holds the inbox prefix, for which
// there is no variable.
func Env(stateDir string) ([]string, error) {
	url, err := URL(stateDir)
	if err != nil {
		return nil, err
	}
	key, err := filepath.Abs(KeyFile(stateDir, Operator))
	if err != nil {
		return nil, err
	}
	if _, err := PublicKey(stateDir, Operator); err != nil {
		return nil, err
	}
	context := strings.TrimSuffix(key, ".nk") + ".json"
	if err := writeContext(context, key); err != nil {
		return nil, fmt.Errorf("write context for the nats command line: %w", err)
	}
	return []string{
		"export NATS_URL=" + quote(url),
		"export NATS_NKEY=" + quote(key),
		"export NATS_CONTEXT=" + quote(context),
	}, nil
}

func writeContext(path, key string) error {
	data, err := json.MarshalIndent(map[string]string{
		"description": "Correx: the operator", "nkey": key, "inbox_prefix": Operator.InboxPrefix(),
	}, "", "  ")
	if err != nil {
		return err
	}
	return publish(path, append(data, '\n'), os.Rename)
}

// quote makes s one word of a POSIX shell.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
