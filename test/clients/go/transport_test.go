package calls_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/owner/berth-go"
)

// serve runs a server of the test's own, and returns a client of it.
func serve(t *testing.T, handler http.HandlerFunc, options ...berth.Option) *berth.Client {
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	own := []berth.Option{berth.WithBaseURL(server.URL + "/"), berth.WithAPIKey("sk_live_own")}
	return berth.New(append(own, options...)...)
}

func TestWarnsOnceOfAnotherVersion(t *testing.T) {
	var log bytes.Buffer
	client := serve(t, func(response http.ResponseWriter, _ *http.Request) {
		response.Header().Set("x-berth-version", "99.1.0")
		response.Write([]byte(`{"servers":[]}`))
	}, berth.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
	for range 3 {
		must(client.ListServers(t.Context()))(t)
	}
	if text := log.String(); strings.Count(text, "99.1.0") != 1 || !strings.Contains(text, "client="+berth.Version) {
		t.Fatal(text)
	}
}

func TestKeepsOneKeyOverAllTries(t *testing.T) {
	var mutex sync.Mutex
	keys := map[string][]string{}
	client := serve(t, func(response http.ResponseWriter, request *http.Request) {
		mutex.Lock()
		defer mutex.Unlock()
		tried := request.Method + " " + request.URL.Path
		keys[tried] = append(keys[tried], request.Header.Get("Idempotency-Key"))
		response.WriteHeader(http.StatusServiceUnavailable)
	}, berth.WithRetries(2))
	client.CreateServer(t.Context(), berth.ServerCreate{})
	client.EnableWebhook(t.Context(), "wh_1")
	created := keys["POST /servers"]
	if len(created) != 3 || created[0] == "" || len(slices.Compact(created)) != 1 {
		t.Fatal(created)
	}
	if tries := keys["POST /webhooks/wh_1/enable"]; len(tries) != 1 || tries[0] != "" {
		t.Fatal(tries)
	}
}

func TestDoesNotWaitLongerThanHalfAMinute(t *testing.T) {
	tries := 0
	client := serve(t, func(response http.ResponseWriter, _ *http.Request) {
		tries++
		response.Header().Set("Retry-After", "31")
		response.WriteHeader(http.StatusTooManyRequests)
		response.Write([]byte(`{"error":"too_many_requests","message":"Later."}`))
	})
	_, err := client.ListServers(t.Context())
	if !errors.Is(err, berth.ErrTooManyRequests) || tries != 1 {
		t.Fatal(err, tries)
	}
}

func TestFollowsRedirectsWithinTheOrigin(t *testing.T) {
	client := serve(t, func(response http.ResponseWriter, request *http.Request) {
		if request.URL.Path == "/servers" {
			http.Redirect(response, request, "/moved", http.StatusTemporaryRedirect)
		} else if request.Header.Get("Authorization") == "Bearer sk_live_own" {
			response.Write([]byte(`{"servers":[{"id":"srv_moved"}]}`))
		}
	})
	if list := must(client.ListServers(t.Context()))(t); list[0].ID != "srv_moved" {
		t.Fatal(list)
	}
}

// refusing refuses the first connections.
type refusing struct{ left int }

func (r *refusing) RoundTrip(request *http.Request) (*http.Response, error) {
	if r.left--; r.left >= 0 {
		return nil, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	}
	return http.DefaultTransport.RoundTrip(request)
}

func TestRepeatsEveryCallAfterARefusedConnection(t *testing.T) {
	for _, options := range []*berth.ExecOptions{nil, {Stdin: readerOnly{strings.NewReader("typed")}}} {
		connections := &refusing{}
		var got bytes.Buffer
		client := serve(t, func(response http.ResponseWriter, request *http.Request) {
			if request.Method == http.MethodGet {
				response.Write([]byte(`{"server":{"id":"srv_1"}}`))
				return
			}
			got.ReadFrom(request.Body)
			response.Write([]byte("event: exit\ndata: {\"exitCode\":4}\n\n"))
		}, berth.WithHTTPClient(&http.Client{Transport: connections}))
		server := must(client.GetServer(t.Context(), "srv_1"))(t)
		connections.left = 2
		result := must(server.Exec(t.Context(), "typed", options))(t)
		if result.ExitCode != 4 || !strings.Contains(got.String(), "typed") {
			t.Fatal(result, got.String())
		}
	}
}

// readerOnly hides what else a reader can do.
type readerOnly struct{ reader *strings.Reader }

func (r readerOnly) Read(into []byte) (int, error) { return r.reader.Read(into) }

func TestTheEndOfAContextEndsAPause(t *testing.T) {
	client := serve(t, func(response http.ResponseWriter, _ *http.Request) {
		response.Header().Set("Retry-After", "30")
		response.WriteHeader(http.StatusServiceUnavailable)
	})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	began := time.Now()
	if _, err := client.ListServers(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) > 20*time.Second {
		t.Fatal(err, time.Since(began))
	}
}
