package mcp

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"correx/pkg/tools"
)

const (
	maxJunk   = 100  // lines on standard output that are no messages
	maxAsides = 1000 // requests and notifications of a server in a second
)

// A pipe speaks JSON-RPC with a process, a message a line. It is both the
// transport and its only connection.
type pipe struct {
	process tools.Dialogue
	in      *bufio.Reader
	writing sync.Mutex
	closed  sync.Once

	junk   int
	asides int
	second time.Time

	mu    sync.Mutex
	fault error // what the server did wrong
}

func newPipe(d tools.Dialogue) *pipe {
	return &pipe{process: d, in: bufio.NewReaderSize(d, 64<<10)}
}

// Connect implements sdk.Transport.
func (p *pipe) Connect(context.Context) (sdk.Connection, error) { return p, nil }

// SessionID implements sdk.Connection.
func (*pipe) SessionID() string { return "" }

// Read implements sdk.Connection. Lines that are no messages are passed over, for
// many a server greets; one that never stops is given up.
func (p *pipe) Read(ctx context.Context) (jsonrpc.Message, error) {
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		line, err := p.line()
		if err != nil {
			return nil, err
		}
		if len(line) == 0 {
			continue
		}
		m, err := decode(line)
		if err != nil {
			if p.junk++; p.junk > maxJunk {
				return nil, p.blame(fmt.Errorf("it printed more than %d lines that are no messages, such as %q", maxJunk, short(line)))
			}
			continue
		}
		r, asks := m.(*jsonrpc.Request)
		if asks && !p.bearable() {
			return nil, p.blame(fmt.Errorf("it sent more than %d messages in a second that nobody asked for", maxAsides))
		}
		if asks && r.Method == "notifications/progress" {
			continue
		}
		return m, nil
	}
}

func decode(line []byte) (jsonrpc.Message, error) {
	if line[0] != '{' {
		return nil, errors.New("not an object")
	}
	return jsonrpc.DecodeMessage(line)
}

// line reads up to the next end of line, and no more than a message may have.
func (p *pipe) line() ([]byte, error) {
	var whole []byte
	for {
		part, err := p.in.ReadSlice('\n')
		whole = append(whole, part...)
		switch {
		case len(whole) > maxMessage:
			return nil, p.blame(fmt.Errorf("it sent a message of more than %d MiB", maxMessage>>20))
		case err == nil:
			return bytes.TrimSpace(whole), nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, io.EOF // it has ended; how, its exit says
		}
	}
}

// bearable counts what the server says unasked.
func (p *pipe) bearable() bool {
	if now := time.Now(); now.Sub(p.second) > time.Second {
		p.second, p.asides = now, 0
	}
	p.asides++
	return p.asides <= maxAsides
}

// Write implements sdk.Connection.
func (p *pipe) Write(_ context.Context, m jsonrpc.Message) error {
	line, err := jsonrpc.EncodeMessage(m)
	if err != nil {
		return err
	}
	p.writing.Lock()
	defer p.writing.Unlock()
	_, err = p.process.Write(append(line, '\n'))
	return err
}

// Close implements sdk.Connection. It returns when the server is dead: by itself
// at the end of its input, or killed if it takes too long or was at fault.
func (p *pipe) Close() error {
	p.closed.Do(func() {
		if p.blamed() == nil {
			_ = p.process.CloseWrite() // fails only if it is dead
			select {
			case <-p.process.Done():
			case <-time.After(closing):
			}
		}
		_ = p.process.Close() // how it ended stands in Exit
	})
	return nil
}

// kill ends the server at once. Close, which may be waiting, then returns too.
func (p *pipe) kill(why error) {
	_ = p.blame(why)
	_ = p.process.Close()
}

// blame remembers the first thing that the server did wrong.
func (p *pipe) blame(err error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fault == nil {
		p.fault = err
	}
	return p.fault
}

func (p *pipe) blamed() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.fault
}

// ending says how a dead server ended, with the last lines that it printed.
func (p *pipe) ending() string {
	x := p.process.Exit()
	how := fmt.Sprintf("exit code %d", x.Code)
	switch {
	case p.blamed() != nil:
		how = p.blamed().Error()
	case x.OutOfMemory:
		how = "a limit of memory killed it"
	case x.Overflowed:
		how = "it printed too much to standard error"
	case x.Signal != "":
		how = x.Signal
	case x.Lost:
		how = "whoever watched over it was killed"
	}
	if last := lastLines(x.Stderr); last != "" {
		how += "; its last lines on standard error:\n" + last
	}
	return how
}
