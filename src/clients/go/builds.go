package berth

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"net/url"

	"github.com/owner/berth-go/api"
)

// Build is a goal that becomes an app with a URL. One that failed is completed, without a URL.
type Build struct {
	api.Build
	transport *transport
}

// CreateBuild begins a build, or queues it behind others of the server, and returns at once.
func (s *Server) CreateBuild(ctx context.Context, goal string) (*Build, error) {
	var created api.CreatedBuild
	if err := s.transport.json(ctx, http.MethodPost, s.path()+"/builds", api.BuildCreate{Goal: goal}, &created); err != nil {
		return nil, err
	}
	return s.GetBuild(ctx, created.BuildID)
}

// RunBuild builds, and waits for the end. The function, which may be nil, gets the lines of the log as they arrive. The URL of
// the build is nil if it failed: its log says why.
func (s *Server) RunBuild(ctx context.Context, goal string, log func(LogLine)) (*Build, error) {
	build, err := s.CreateBuild(ctx, goal)
	if err != nil {
		return nil, err
	}
	if log != nil {
		for line, err := range build.Logs(ctx) {
			if err != nil {
				return build, err
			}
			log(line)
		}
	}
	return build, build.Wait(ctx)
}

// GetBuild returns a build of the server.
func (s *Server) GetBuild(ctx context.Context, id string) (*Build, error) {
	build := &Build{Build: api.Build{ID: id, ServerID: s.ID}, transport: s.transport}
	if err := build.Refresh(ctx); err != nil {
		return nil, err
	}
	return build, nil
}

// ListBuilds lists the builds of the server, the newest first.
func (s *Server) ListBuilds(ctx context.Context) ([]*Build, error) {
	return listBuilds(ctx, s.transport, s.path()+"/builds")
}

func listBuilds(ctx context.Context, t *transport, path string) ([]*Build, error) {
	var list api.BuildList
	if err := t.json(ctx, http.MethodGet, path, nil, &list); err != nil {
		return nil, err
	}
	return handles(list.Builds, func(data api.Build) *Build { return &Build{Build: data, transport: t} }), nil
}

func (b *Build) path() string {
	return "/servers/" + url.PathEscape(b.ServerID) + "/builds/" + url.PathEscape(b.ID)
}

// Refresh reads the build anew.
func (b *Build) Refresh(ctx context.Context) error {
	return b.take(ctx, call{method: http.MethodGet, path: b.path()})
}

// Wait waits until it is completed.
func (b *Build) Wait(ctx context.Context) error {
	return b.transport.settle(ctx, b.ID, func() (bool, error) {
		err := b.Refresh(ctx)
		return b.Status == BuildStatusCompleted, err
	})
}

// Logs reads its log, to its end. A connection that breaks off goes on where it was.
func (b *Build) Logs(ctx context.Context) iter.Seq2[LogLine, error] {
	return logs(ctx, b.transport, b.path()+"/logs", nil)
}

func (b *Build) take(ctx context.Context, c call) error {
	var envelope api.BuildEnvelope
	if err := b.transport.decode(ctx, c, &envelope); err != nil {
		return err
	}
	b.Build = envelope.Build
	return nil
}

// logs reads the lines of a log.
func logs(ctx context.Context, t *transport, path string, query url.Values) iter.Seq2[LogLine, error] {
	return func(yield func(LogLine, error) bool) {
		for event, err := range t.events(ctx, path, query, true) {
			if err == nil && event.name != "line" {
				continue
			}
			var line LogLine
			if err == nil {
				err = json.Unmarshal(event.data, &line)
			}
			if !yield(line, err) || err != nil {
				return
			}
		}
	}
}
