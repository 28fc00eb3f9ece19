package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// An httpLink is what goes out to one server, until life ends.
type httpLink struct {
	life   context.Context
	header http.Header
	base   http.RoundTripper
}

func httpTransport(life context.Context, url string, header http.Header) *sdk.StreamableClientTransport {
	return &sdk.StreamableClientTransport{
		Endpoint: url, MaxRetries: 2, MaxEventSize: maxMessage,
		HTTPClient: &http.Client{
			Transport: httpLink{life, header, http.DefaultTransport.(*http.Transport).Clone()},
			// A redirect could carry the headers' secrets elsewhere.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

// RoundTrip implements http.RoundTripper.
func (l httpLink) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(r.Context())
	stop := context.AfterFunc(l.life, cancel)
	end := func() { stop(); cancel() }
	r = r.Clone(ctx)
	for k, v := range l.header {
		r.Header[k] = v
	}
	res, err := l.base.RoundTrip(r)
	if err != nil {
		end()
		return nil, err
	}
	left := int64(-1) // a stream of events is bounded event by event
	if !strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		left = maxMessage
	}
	res.Body = &body{ReadCloser: res.Body, left: left, end: end}
	return res, nil
}

// A body is bounded, and lets go of its request when it is closed.
type body struct {
	io.ReadCloser
	left int64 // negative: no bound
	end  func()
}

var errTooLarge = errors.New("the answer is too large")

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.left < 0 {
		return n, err
	}
	if b.left -= int64(n); b.left < 0 {
		b.left = 0
		return 0, fmt.Errorf("%w: more than %d MiB", errTooLarge, maxMessage>>20)
	}
	return n, err
}

func (b *body) Close() error {
	defer b.end()
	return b.ReadCloser.Close()
}
