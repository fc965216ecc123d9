package berth

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"

	"github.com/owner/berth-go/api"
)

// DirectoryOption says what of a local directory is sent.
type DirectoryOption interface {
	sendOption
	isDirectoryOption()
}

// WithFilter sends only the files and directories whose relative path, with slashes, a function accepts. .git and node_modules
// are never sent.
func WithFilter(filter func(path string) bool) DirectoryOption { return filterOption(filter) }

type filterOption func(path string) bool

func (f filterOption) apply(o *sending)   { o.filter = f }
func (f filterOption) isDirectoryOption() {}

// ListFiles lists the paths of all files, without those in .git and node_modules.
func (s *Server) ListFiles(ctx context.Context) ([]string, error) {
	var list api.FileList
	err := s.transport.json(ctx, http.MethodGet, s.path()+"/files", nil, &list)
	return list.Files, err
}

// ReadFile reads a file. The path is relative to the workspace. It fails with [ErrNotFound] if the file does not exist.
func (s *Server) ReadFile(ctx context.Context, path string) ([]byte, error) {
	c := call{method: http.MethodGet, path: s.path() + "/files/content", query: url.Values{"path": {path}}}
	response, err := s.transport.send(ctx, c)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	return io.ReadAll(response.Body)
}

// WriteFile writes a file, with the directories that it needs. It is replaced as a whole.
func (s *Server) WriteFile(ctx context.Context, path string, content []byte) error {
	return s.transport.decode(ctx, call{
		method: http.MethodPut,
		path:   s.path() + "/files/content",
		query:  url.Values{"path": {path}},
		header: http.Header{"Content-Type": {"application/octet-stream"}},
		body:   bytes.NewReader(content),
	}, nil)
}

// DeleteFile deletes a file, or a directory with all that is in it.
func (s *Server) DeleteFile(ctx context.Context, path string) error {
	query := url.Values{"path": {path}}
	return s.transport.decode(ctx, call{method: http.MethodDelete, path: s.path() + "/files", query: query}, nil)
}

// UploadDirectory sends a local directory into one of the server, which is made. Files of it replace those on the server; others
// stay. .git and node_modules are not sent.
func (s *Server) UploadDirectory(ctx context.Context, local, remote string, options ...DirectoryOption) error {
	var o sending
	for _, option := range options {
		option.apply(&o)
	}
	entries, err := entriesOf(local, o.filter)
	if err != nil {
		return err
	}
	// Each try has a pipe and a goroutine of its own. The goroutine ends when the transport closes the body.
	var unreadable atomic.Pointer[error]
	packed := func() (io.ReadCloser, error) {
		reader, writer := io.Pipe()
		go func() {
			err := pack(writer, local, entries, nil)
			if err != nil && !errors.Is(err, io.ErrClosedPipe) {
				unreadable.Store(&err)
			}
			writer.CloseWithError(err)
		}()
		return reader, nil
	}
	directory := quoted(remote)
	response, err := s.transport.send(ctx, call{
		method: http.MethodPost,
		path:   s.path() + "/exec/stream",
		query:  url.Values{"command": {"mkdir -p -- " + directory + " && exec tar -xzf - -C " + directory}},
		header: http.Header{"Content-Type": {"application/octet-stream"}, "Accept": {"text/event-stream"}},
		body:   http.NoBody, replay: packed, streams: true,
	})
	if cause := unreadable.Load(); err != nil && cause != nil {
		return *cause
	}
	if err != nil {
		return err
	}
	var collected collector
	for event, err := range readEvents(ctx, response) {
		if err != nil {
			return err
		}
		result, err := collected.take(event)
		if err != nil {
			return err
		}
		if result != nil && result.ExitCode != 0 {
			return fmt.Errorf("berth: tar on the server ended with %d: %s", result.ExitCode, strings.TrimSpace(result.Stderr))
		}
		if result != nil {
			return nil
		}
	}
	return brokenOff(ctx, response, io.ErrUnexpectedEOF)
}

// DownloadDirectory fetches a directory of the server into a local one, which is made, without .git and node_modules. It fails
// where a local file exists, and where a link leads out of the directory.
func (s *Server) DownloadDirectory(ctx context.Context, remote, local string) error {
	command := "cd -- " + quoted(remote) + " && exec tar -czf - --exclude=node_modules --exclude=.git ."
	response, err := s.transport.send(ctx, call{
		method: http.MethodPost,
		path:   s.path() + "/exec/stream",
		query:  url.Values{"command": {command}},
		header: http.Header{"Content-Type": {"application/octet-stream"}, "Accept": {"application/octet-stream"}},
		body:   http.NoBody, streams: true,
	})
	if err != nil {
		return err
	}
	defer response.Body.Close()
	err = unpack(response.Body, local)
	var unwritable *fs.PathError
	if err == nil || errors.As(err, &unwritable) || strings.HasPrefix(err.Error(), "berth: ") {
		return err
	}
	return brokenOff(ctx, response, err)
}

// quoted quotes a path for the shell of a server.
func quoted(path string) string {
	if strings.HasPrefix(path, "-") {
		path = "./" + path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}
