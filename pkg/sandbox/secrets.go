package sandbox

import (
	"os"
	"path/filepath"
	"slices"
)

// secretsOfHome are where programs keep what opens doors, below a home directory.
var secretsOfHome = []string{
	".ssh", ".aws", ".gnupg", ".azure", ".kube", ".docker", ".password-store", ".terraform.d", ".vault-token",
	".config/gcloud", ".config/gh", ".config/hub", ".config/op", ".config/sops", ".config/rclone", ".config/git/credentials",
	".config/google-chrome", ".config/chromium", ".mozilla", ".local/share/keyrings", ".local/share/kwalletd",
	".netrc", ".git-credentials", ".npmrc", ".pypirc", ".pgpass", ".my.cnf", ".cargo/credentials", ".cargo/credentials.toml",
	".gem/credentials", ".m2/settings.xml", ".gradle/gradle.properties", ".huggingface", ".cache/huggingface/token",
	".bash_history", ".zsh_history", ".python_history", ".psql_history", ".mysql_history", ".node_repl_history",
}

// secretsOfMachine matter when the worker is root.
var secretsOfMachine = []string{
	"/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/sudoers", "/etc/sudoers.d", "/etc/ssl/private",
	"/etc/NetworkManager/system-connections", "/etc/wireguard", "/etc/krb5.keytab", "/var/lib/docker", "/var/lib/containerd",
	"/var/spool/cron", "/var/log/journal", "/lost+found",
}

// findSecrets is what is hidden from every process besides what is configured.
func findSecrets() []string {
	out := slices.Clone(secretsOfMachine)
	keys, _ := filepath.Glob("/etc/ssh/ssh_host_*_key") // the pattern is right
	out = append(out, keys...)
	homes := []string{"/root"}
	if home, err := os.UserHomeDir(); err == nil && filepath.IsAbs(home) {
		homes = append(homes, filepath.Clean(home))
	}
	slices.Sort(homes)
	for _, home := range slices.Compact(homes) {
		for _, s := range secretsOfHome {
			out = append(out, filepath.Join(home, s))
		}
	}
	return out
}

// hidden is what the runner was told to hide.
func (r *Runner) hidden() []string { return r.o.Hidden }

// secrets is all that is hidden.
func (r *Runner) secrets() []string { return slices.Concat(r.found, r.o.Hidden) }
