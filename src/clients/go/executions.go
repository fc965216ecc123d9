package berth

import (
	"context"
	"io"
	"iter"
	"net/http"
	"net/url"
	"time"

	"github.com/owner/berth-go/api"
)

// ExecuteOptions says how an execution begins.
type ExecuteOptions struct {
	// Dir is a directory inside the workspace, which is the default.
	Dir string
	// Env has variables on top of the base environment.
	Env map[string]string
	// Stdin is the beginning of standard input. It is all of it unless OpenStdin is set.
	Stdin string
	// OpenStdin keeps standard input open for [Execution.Write].
	OpenStdin bool
	// Timeout ends the command; there is none by default.
	Timeout time.Duration
}

// Execution is a command that goes on by itself, until it ends or is deleted.
type Execution struct {
	api.Execution
	transport *transport
}

// Output is a piece of the output of an execution.
type Output struct {
	// Stream is stdout or stderr.
	Stream string
	Data   []byte
}

// Execute starts a shell command that goes on by itself; nil options are the defaults.
func (s *Server) Execute(ctx context.Context, command string, options *ExecuteOptions) (*Execution, error) {
	if options == nil {
		options = &ExecuteOptions{}
	}
	body := api.ExecRequest{Command: command, Detach: Ptr(true)}
	if options.Dir != "" {
		body.Cwd = &options.Dir
	}
	if len(options.Env) > 0 {
		body.Env = &options.Env
	}
	if options.Stdin != "" {
		body.Stdin = &options.Stdin
	}
	if options.OpenStdin {
		body.OpenStdin = &options.OpenStdin
	}
	if options.Timeout > 0 {
		body.TimeoutMs = Ptr(int(max(1, options.Timeout.Milliseconds())))
	}
	execution := &Execution{transport: s.transport}
	if err := execution.take(ctx, http.MethodPost, s.path()+"/exec", body); err != nil {
		return nil, err
	}
	return execution, nil
}

// ListExecutions lists the executions of the server, the newest first.
func (s *Server) ListExecutions(ctx context.Context) ([]*Execution, error) {
	var list api.ExecutionList
	if err := s.transport.json(ctx, http.MethodGet, s.path()+"/executions", nil, &list); err != nil {
		return nil, err
	}
	return handles(list.Executions, func(data api.Execution) *Execution {
		return &Execution{Execution: data, transport: s.transport}
	}), nil
}

func (e *Execution) path() string {
	return "/servers/" + url.PathEscape(e.ServerID) + "/executions/" + url.PathEscape(e.ID)
}

// Refresh reads the execution anew.
func (e *Execution) Refresh(ctx context.Context) error {
	return e.take(ctx, http.MethodGet, e.path(), nil)
}

// Output reads what it has printed and prints, to its end. A connection that breaks off goes on where it was.
func (e *Execution) Output(ctx context.Context) iter.Seq2[Output, error] {
	return func(yield func(Output, error) bool) {
		for event, err := range e.events(ctx) {
			var piece []byte
			if err == nil && event.name != "stdout" && event.name != "stderr" {
				continue
			}
			if err == nil {
				piece, err = outputOf(event.data)
			}
			if !yield(Output{Stream: event.name, Data: piece}, err) || err != nil {
				return
			}
		}
	}
}

// Wait waits for its end and returns the output that berth keeps.
func (e *Execution) Wait(ctx context.Context) (*ExecResult, error) {
	var collected collector
	for event, err := range e.events(ctx) {
		if err != nil {
			return nil, err
		}
		result, err := collected.take(event)
		if err != nil {
			return nil, err
		}
		if result != nil {
			return result, e.Refresh(ctx)
		}
	}
	return nil, &Error{Message: "the output of " + e.ID + " ended before the command", cause: io.ErrUnexpectedEOF, kind: ErrConnection}
}

// Write writes to its standard input, which OpenStdin keeps open.
func (e *Execution) Write(ctx context.Context, input []byte) error {
	return e.input(ctx, map[string]any{"base64": input})
}

// CloseStdin ends its standard input.
func (e *Execution) CloseStdin(ctx context.Context) error {
	return e.input(ctx, map[string]any{"end": true})
}

// Delete ends the command if it runs, and removes its record otherwise.
func (e *Execution) Delete(ctx context.Context) error {
	return e.transport.json(ctx, http.MethodDelete, e.path(), nil, nil)
}

func (e *Execution) input(ctx context.Context, body map[string]any) error {
	return e.transport.json(ctx, http.MethodPost, e.path()+"/input", body, nil)
}

func (e *Execution) events(ctx context.Context) iter.Seq2[streamEvent, error] {
	return e.transport.events(ctx, e.path()+"/output", nil, true)
}

func (e *Execution) take(ctx context.Context, method, path string, body any) error {
	var envelope api.ExecutionEnvelope
	if err := e.transport.json(ctx, method, path, body, &envelope); err != nil {
		return err
	}
	e.Execution = envelope.Execution
	return nil
}
