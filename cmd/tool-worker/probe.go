package main

import (
	"encoding/json"
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"correx/pkg/sandbox"
)

func newProbeCommand(p *program) *cobra.Command {
	return &cobra.Command{
		Use:   "probe",
		Short: "try to get out of the sandbox, and say what it holds on this machine",
		Long: `Probe starts confined processes that try the known ways out, and prints which
level of isolation this machine reaches, what came of each attempt, what is
missing and how to mend it. It needs no configuration and no server. Run it as
the user that the worker runs as.`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return p.probe() },
	}
}

func (p *program) probe() error {
	found := sandbox.Look()
	if p.flags.JSON {
		return json.NewEncoder(p.env.Stdout).Encode(found)
	}
	out := p.env.Stdout
	fmt.Fprintf(out, "isolation: %s\n", found.Level)
	fmt.Fprintf(out, "overlays (changes of a program held back for review): %s\n", yes(found.Overlays))
	if found.Cgroups != "" {
		fmt.Fprintf(out, "memory and processes of an invocation limited by: cgroup %s\n\n", found.Cgroups)
	} else {
		fmt.Fprint(out, "memory of an invocation limited by: nothing; no cgroup can be made here\n\n")
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ATTEMPT\tFULL\tFS-ONLY")
	for _, t := range found.Tried {
		fmt.Fprintf(w, "%s\t%s\t%s\n", t.Name, t.Full, t.FSOnly)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, m := range found.Missing {
		fmt.Fprintf(out, "\n%s is not reached: %s\n", m.Level, m.What)
		if m.Mend != "" {
			fmt.Fprintf(out, "  %s\n", m.Mend)
		}
	}
	return nil
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}
