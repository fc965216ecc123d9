package berth

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	mathrand "math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	// longestWait is the longest Retry-After that a client waits by itself.
	longestWait = 30 * time.Second
	// firstDelay bounds the random delay before the second try. The bound doubles with each try.
	firstDelay = 200 * time.Millisecond
	// mostRedirects is how many redirects within the origin are followed.
	mostRedirects = 5
)

// creating matches the paths whose POST only creates something: an Idempotency-Key makes it safe to repeat.
var creating = regexp.MustCompile(`^/(?:servers|keys|webhooks|servers/[^/]+/(?:projects|tasks|builds))$`)

// repeatable has the methods that may be sent twice.
var repeatable = map[string]bool{
	http.MethodGet: true, http.MethodHead: true, http.MethodPut: true, http.MethodDelete: true,
}

// comparedVersions has the versions of berth that were compared with this module's.
var comparedVersions sync.Map

// transport sends requests: it adds the credential, tries again where that cannot do anything twice, and refuses redirects to
// other origins.
type transport struct {
	base       *url.URL
	credential string
	retries    int
	client     *http.Client
	logger     *slog.Logger
	// err is what is missing to send a request.
	err error
}

// call is a request, below the base URL.
type call struct {
	method string
	path   string
	query  url.Values
	header http.Header
	// body is what is sent; replay makes it anew for another try.
	body   io.Reader
	replay func() (io.ReadCloser, error)
	// streams is whether the body of the response is read while it arrives. Otherwise a try includes all of it.
	streams bool
}

// openReader is a body that is not closed after a try. A try whose connection was refused has not read it.
type openReader struct{ io.Reader }

func (openReader) Close() error { return nil }

// send sends a call and returns its response, whose status is 2xx.
func (t *transport) send(ctx context.Context, c call) (*http.Response, error) {
	if t.err != nil {
		return nil, t.err
	}
	target := t.base.String() + c.path
	if len(c.query) > 0 {
		target += "?" + c.query.Encode()
	}
	request, err := http.NewRequestWithContext(ctx, c.method, target, c.body)
	if err != nil {
		return nil, err
	}
	for name, values := range c.header {
		request.Header[name] = values
	}
	if c.replay != nil {
		request.GetBody = c.replay
	}
	response, err := t.do(request, !c.streams)
	if err != nil {
		return nil, err
	}
	if response.StatusCode >= 200 && response.StatusCode < 300 {
		return response, nil
	}
	defer response.Body.Close()
	return nil, errorOf(request, response)
}

// json sends a request with a JSON body, unless in is nil, and decodes the JSON of its response, unless out is nil.
func (t *transport) json(ctx context.Context, method, path string, in, out any) error {
	return t.jsonQuery(ctx, method, path, nil, in, out)
}

func (t *transport) jsonQuery(ctx context.Context, method, path string, query url.Values, in, out any) error {
	c := call{method: method, path: path, query: query}
	if in != nil {
		encoded, err := json.Marshal(in)
		if err != nil {
			return err
		}
		c.body = bytes.NewReader(encoded)
		c.header = http.Header{"Content-Type": {"application/json"}}
	}
	return t.decode(ctx, c, out)
}

// decode sends a call and decodes the JSON of its response, unless out is nil.
func (t *transport) decode(ctx context.Context, c call, out any) error {
	response, err := t.send(ctx, c)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if out == nil {
		return nil
	}
	if err := json.NewDecoder(response.Body).Decode(out); err != nil {
		return &Error{
			Status:    response.StatusCode,
			RequestID: response.Header.Get("x-request-id"),
			Message:   fmt.Sprintf("%s %s got %d with a body that is not berth's", c.method, c.path, response.StatusCode),
			cause:     err,
		}
	}
	return nil
}

// Do sends a request of the generated layer, as an http.Client does: a failure that has a response is no error.
func (t *transport) Do(request *http.Request) (*http.Response, error) {
	if t.err != nil {
		return nil, t.err
	}
	return t.do(request, false)
}

// do sends a request as often as it may and has to be sent.
func (t *transport) do(request *http.Request, whole bool) (*http.Response, error) {
	ctx := request.Context()
	below := strings.TrimPrefix(request.URL.Path, t.base.Path)
	creates := request.Method == http.MethodPost && creating.MatchString(below)
	replayable := request.Body == nil || request.Body == http.NoBody || request.GetBody != nil
	repeats := replayable && (creates || repeatable[request.Method])
	_, open := request.Body.(openReader)

	request = request.Clone(ctx)
	request.Header.Set("Authorization", "Bearer "+t.credential)
	if request.Header.Get("User-Agent") == "" {
		request.Header.Set("User-Agent", "berth-client/"+Version+" (go)")
	}
	if creates && request.Header.Get("Idempotency-Key") == "" {
		request.Header.Set("Idempotency-Key", rand.Text())
	}

	uncertain := false
	for failures := 0; ; failures++ {
		last := failures >= t.retries
		response, err := t.follow(request)
		if err == nil && whole {
			err = buffer(response)
		}
		if err != nil {
			if ctx.Err() != nil {
				return nil, ended(ctx, request)
			}
			var known *Error
			if errors.As(err, &known) {
				return nil, err
			}
			refused := isRefused(err)
			if last || !repeats && !(refused && (replayable || open)) {
				return nil, t.lost(request, err, refused)
			}
			uncertain = uncertain || !refused
			if err := pause(ctx, delay(failures)); err != nil {
				return nil, ended(ctx, request)
			}
			continue
		}
		t.compareVersion(response)
		if request.Method == http.MethodDelete && response.StatusCode == http.StatusNotFound && uncertain {
			response.Body.Close()
			return deleted(request, response), nil
		}
		wait, asked := retryAfter(response)
		limited := response.StatusCode == http.StatusTooManyRequests && asked && replayable
		failed := repeats && response.StatusCode >= 502 && response.StatusCode <= 504
		if last || !limited && !failed {
			return response, nil
		}
		uncertain = uncertain || failed
		response.Body.Close()
		if !asked {
			wait = delay(failures)
		}
		if err := pause(ctx, wait); err != nil {
			return nil, ended(ctx, request)
		}
	}
}

// follow sends a request once, and again where a redirect leads to the same origin.
func (t *transport) follow(request *http.Request) (*http.Response, error) {
	for redirects := 0; ; redirects++ {
		try := request.Clone(request.Context())
		if request.GetBody != nil {
			body, err := request.GetBody()
			if err != nil {
				return nil, err
			}
			try.Body = body
		}
		response, err := t.client.Do(try)
		if err != nil {
			var wrapped *url.Error
			if errors.As(err, &wrapped) {
				err = wrapped.Err
			}
			return nil, err
		}
		location := response.Header.Get("Location")
		if response.StatusCode < 300 || response.StatusCode >= 400 || location == "" {
			return response, nil
		}
		response.Body.Close()
		refusal := &Error{Status: response.StatusCode, RequestID: response.Header.Get("x-request-id")}
		target, err := request.URL.Parse(location)
		if err != nil {
			refusal.Message = fmt.Sprintf("%s %s was redirected to an address that is not valid", request.Method, request.URL.Path)
			return nil, refusal
		}
		if target.Scheme != t.base.Scheme || target.Host != t.base.Host {
			refusal.Message = fmt.Sprintf(
				"%s %s was redirected to %s://%s, which is not %s://%s: the credential is not sent there. Set the base URL to the right address",
				request.Method, request.URL.Path, target.Scheme, target.Host, t.base.Scheme, t.base.Host)
			return nil, refusal
		}
		keeps := repeatable[request.Method] && request.Method != http.MethodPut && request.Method != http.MethodDelete ||
			response.StatusCode == http.StatusTemporaryRedirect || response.StatusCode == http.StatusPermanentRedirect
		replayable := request.Body == nil || request.Body == http.NoBody || request.GetBody != nil
		if redirects == mostRedirects || !keeps || !replayable {
			refusal.Message = fmt.Sprintf("%s %s was redirected to %s", request.Method, request.URL.Path, target.Redacted())
			return nil, refusal
		}
		next := request.Clone(request.Context())
		next.URL, next.Host = target, ""
		request = next
	}
}

// lost makes the error of a request without a response, or with one that broke off.
func (t *transport) lost(request *http.Request, cause error, refused bool) *Error {
	what := "closed the connection before the response was whole"
	if refused {
		what = "does not accept connections: is berth running?"
	}
	return &Error{
		Message: fmt.Sprintf("%s %s: %s://%s %s", request.Method, request.URL.Path, t.base.Scheme, t.base.Host, what),
		cause:   cause,
		kind:    ErrConnection,
	}
}

// compareVersion warns once for each version of berth that is not this module's.
func (t *transport) compareVersion(response *http.Response) {
	version := response.Header.Get("x-berth-version")
	if version == "" || version == Version {
		return
	}
	if _, known := comparedVersions.LoadOrStore(version, true); known {
		return
	}
	t.logger.Warn("berth and its client have different versions: install the client of the same version",
		"berth", version, "client", Version, "url", t.base.Redacted())
}

// ended makes the error of a request whose context has ended.
func ended(ctx context.Context, request *http.Request) error {
	err := ctx.Err()
	if cause := context.Cause(ctx); !errors.Is(cause, err) {
		err = fmt.Errorf("%w: %w", err, cause)
	}
	return fmt.Errorf("berth: %s %s: %w", request.Method, request.URL.Path, err)
}

// buffer reads the body of a response, which can be read again then.
func buffer(response *http.Response) error {
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	response.Body = io.NopCloser(bytes.NewReader(data))
	return nil
}

// deleted makes the response to a DELETE whose effect an earlier try had.
func deleted(request *http.Request, missing *http.Response) *http.Response {
	body, _ := json.Marshal(map[string]any{"id": path.Base(request.URL.Path), "deleted": true})
	header := missing.Header.Clone()
	header.Set("Content-Type", "application/json")
	header.Del("Content-Length")
	return &http.Response{
		Status: "200 OK", StatusCode: http.StatusOK,
		Proto: missing.Proto, ProtoMajor: missing.ProtoMajor, ProtoMinor: missing.ProtoMinor,
		Header: header, Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)), Request: request,
	}
}

// delay returns a random time up to a bound that doubles with each failure ("full jitter").
func delay(failures int) time.Duration {
	return mathrand.N(firstDelay << min(failures, 10))
}

// retryAfter returns how long a response asks to wait, and whether it does and a client waits so long by itself.
func retryAfter(response *http.Response) (time.Duration, bool) {
	given := response.Header.Get("Retry-After")
	if given == "" {
		return 0, false
	}
	wait := time.Duration(-1)
	if seconds, err := strconv.ParseUint(given, 10, 31); err == nil {
		wait = time.Duration(seconds) * time.Second
	} else if at, err := http.ParseTime(given); err == nil {
		wait = max(0, time.Until(at))
	}
	return wait, wait >= 0 && wait <= longestWait
}

// isRefused reports whether a connection was refused, so that nothing was sent.
func isRefused(err error) bool {
	var failed *net.OpError
	var unresolved *net.DNSError
	return errors.As(err, &failed) && failed.Op == "dial" && !errors.As(err, &unresolved) && !failed.Timeout()
}

// pause waits, or returns the error of the context if that ends first.
func pause(ctx context.Context, wait time.Duration) error {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
