package access

import (
	"fmt"
	"strconv"
	"strings"
)

// ServerConfig returns the account and the users to put into the configuration
// of a NATS server of one's own: the same table as the embedded server has. It
// names the durable consumers of the tools and models given; when there are
// others, it has to be printed and loaded again.
func ServerConfig(stateDir string, tools, models []string) (string, error) {
	var b strings.Builder
	b.WriteString(`# Correx's account and users. Include this file in nats-server.conf, beside:
#
#   max_payload: 1MB
#   jetstream { store_dir: "...", sync_interval: always }
#
# Whoever knows no key gets in nowhere: have no other user in this account.
accounts {
  CORREX {
    jetstream: enabled
    users: [
`)
	for _, r := range Roles() {
		pub, err := PublicKey(stateDir, r)
		if err != nil {
			return "", fmt.Errorf("print server configuration: %w", err)
		}
		g := Permissions(r, tools, models)
		fmt.Fprintf(&b, "      # %s\n      { nkey: %s, permissions: {\n", r, pub)
		fmt.Fprintf(&b, "        publish: { allow: [%s], deny: [%s] }\n", list(g.Publish), list(g.Deny))
		fmt.Fprintf(&b, "        subscribe: { allow: [%s] }\n      } }\n", list(g.Subscribe))
	}
	b.WriteString("    ]\n  }\n}\n")
	return b.String(), nil
}

func list(subjects []string) string {
	q := make([]string, len(subjects))
	for i, s := range subjects {
		q[i] = strconv.Quote(s)
	}
	return strings.Join(q, ", ")
}
