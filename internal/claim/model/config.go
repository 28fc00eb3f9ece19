package model

import (
	"fmt"
	"reflect"
	"strings"
)

// A Config says what may go wrong, and which clauses the protocol has.
type Config struct {
	Crashes  uint8 // kills in all; each worker may come back after each
	Attempts int   // of an idempotent tool; 0: three

	// What is run.
	Files bool // it changes a file, and keeps a journal
	Idem  bool // it is idempotent

	// Environment: what may go wrong.
	Freeze bool // SIGSTOP, for any time
	Noise  bool // a stranger's record that does not hold
	Ext    bool // somebody edits the file
	Aba    bool // somebody writes the same bytes into it
	Delay  bool // a publish that was given up arrives later
	Orphan bool // a dead worker's tool lives on

	// Readings of the protocol that do not work.
	Naive5  bool // a refused end is always somebody else's doing
	LateReg bool // held only when the answer to started has come

	// Changes: clauses that close a trace.
	Late        bool // started past the approval's end does nothing
	Base        bool // the file is compared with the approved one before it is changed
	CancelFence bool // a lost owner is fenced off after a cancel too
	NoiseOK     bool // the expected sequence is the last record's, whatever it is
	Step5       bool // recovered only after an end, and what is fenced off is not held
	CancelRes   bool // a journalled result stands against a cancel
	Apply       bool // the file is compared again just before it is changed
	Ident       bool // a restore compares identity, not bytes alone
	Orph        bool // tools die with their worker
	NoIdemFiles bool // what changes files is never repeated
	SelfAgain   bool // a worker repeats its own lost attempt of what is idempotent, without asking itself
}

// Design is the protocol as internal/claim carries it out, in the worst weather.
var Design = Config{
	Freeze: true, Noise: true, Delay: true,
	Late: true, Base: true, CancelFence: true, NoiseOK: true, Step5: true, CancelRes: true, Apply: true,
	Ident: true, Orph: true, NoIdemFiles: true, SelfAgain: true,
}

// WithFiles is c for a tool that changes files, with all that can happen to them.
func (c Config) WithFiles() Config {
	c.Files, c.Ext, c.Aba, c.Orphan = true, true, true, true
	return c
}

// Without switches off one thing, by its name.
func (c Config) Without(name string) Config {
	v := reflect.ValueOf(&c).Elem().FieldByName(name)
	if !v.IsValid() {
		panic("model: no switch is called " + name)
	}
	v.SetBool(false)
	return c
}

// Changes names the switches that are clauses.
func Changes() []string {
	return strings.Fields("Late Base CancelFence NoiseOK Step5 CancelRes Apply Ident Orph NoIdemFiles")
}

func (c Config) String() string {
	var on []string
	v := reflect.ValueOf(c)
	for i := range v.NumField() {
		if f := v.Field(i); f.Kind() == reflect.Bool && f.Bool() {
			on = append(on, v.Type().Field(i).Name)
		}
	}
	return fmt.Sprintf("%s, %d kills", strings.Join(on, ","), c.Crashes)
}
