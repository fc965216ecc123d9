package berth

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"
	"unicode/utf8"
)

// mostKept is how many bytes of each stream a result keeps, as the API does: 10 MiB.
const mostKept = 10 << 20

// ExecOptions says how a command runs.
type ExecOptions struct {
	// Dir is a directory inside the workspace, which is the default.
	Dir string
	// Env has variables on top of the base environment.
	Env map[string]string
	// Stdin is standard input, which is empty by default. Text that is in memory (a strings.Reader, bytes.Reader or bytes.Buffer)
	// is sent with the command. Anything else is sent while the command runs, with the command in the URL of the request: that
	// limits the command to about 15 KiB, and does not go with Env. A reader that blocks keeps a goroutine until it returns.
	Stdin io.Reader
	// Stdout and Stderr get the output as the command prints it. An error of a writer ends the command.
	Stdout, Stderr io.Writer
	// Timeout ends the command; 10 minutes by default, and none for input that is sent while it runs.
	Timeout time.Duration
}

// ExecResult is what came of a command. One that fails is no error: see ExitCode.
type ExecResult struct {
	// Stdout and Stderr have the exact bytes that were printed, up to 10 MiB of each.
	Stdout, Stderr string
	// ExitCode is 128+n if signal n ended the command.
	ExitCode int
	// TimedOut is whether the command was ended by its timeout.
	TimedOut bool
	// Truncated is whether a stream had more than is kept.
	Truncated bool
	// Refused has connections of the server that berth refused meanwhile, each with a remedy.
	Refused []RefusedConnection
}

// Exec runs a shell command to its end; nil options are the defaults. Its output arrives while it runs. If the connection breaks
// off, the command is ended and the error is [ErrConnection]. A request that may have reached berth is never sent twice. The
// end of the context ends the command.
func (s *Server) Exec(ctx context.Context, command string, options *ExecOptions) (*ExecResult, error) {
	if options == nil {
		options = &ExecOptions{}
	}
	c, err := s.execCall(command, options)
	if err != nil {
		return nil, err
	}
	c.method, c.streams = http.MethodPost, true
	c.header.Set("Accept", "text/event-stream")
	response, err := s.transport.send(ctx, c)
	if err != nil {
		return nil, err
	}
	collected := collector{writers: map[string]io.Writer{"stdout": options.Stdout, "stderr": options.Stderr}}
	for event, err := range readEvents(ctx, response) {
		if err != nil {
			return nil, err
		}
		result, err := collected.take(event)
		if result != nil || err != nil {
			return result, err
		}
	}
	return nil, brokenOff(ctx, response, io.ErrUnexpectedEOF)
}

// execCall makes the request of a command.
func (s *Server) execCall(command string, options *ExecOptions) (call, error) {
	body := map[string]any{"command": command}
	query := url.Values{"command": {command}}
	if options.Dir != "" {
		body["cwd"] = options.Dir
		query.Set("cwd", options.Dir)
	}
	if options.Timeout > 0 {
		milliseconds := max(1, options.Timeout.Milliseconds())
		body["timeoutMs"] = milliseconds
		query.Set("timeoutMs", strconv.FormatInt(milliseconds, 10))
	}
	if len(options.Env) > 0 {
		body["env"] = options.Env
	}
	if options.Stdin != nil {
		input, isText, err := textInMemory(options.Stdin)
		if err != nil {
			return call{}, err
		}
		if !isText {
			if len(options.Env) > 0 {
				return call{}, errors.New("berth: Env does not go with a Stdin that is not text in memory: " +
					"set the variables in the command, or read the input into a strings.Reader")
			}
			header := http.Header{"Content-Type": {"application/octet-stream"}}
			return call{path: s.path() + "/exec/stream", query: query, header: header, body: openReader{input}}, nil
		}
		text, err := io.ReadAll(input)
		if err != nil {
			return call{}, err
		}
		body["stdin"] = string(text)
	}
	encoded, err := json.Marshal(body)
	header := http.Header{"Content-Type": {"application/json"}}
	return call{path: s.path() + "/exec", header: header, body: bytes.NewReader(encoded)}, err
}

// textInMemory reports whether a reader is one of memory with UTF-8, and returns a reader of the same bytes.
func textInMemory(input io.Reader) (io.Reader, bool, error) {
	if _, inMemory := input.(interface{ Len() int }); !inMemory {
		return input, false, nil
	}
	content, err := io.ReadAll(input)
	return bytes.NewReader(content), utf8.Valid(content), err
}

// collector collects the output of a command, and passes it on as it arrives.
type collector struct {
	// writers get the streams stdout and stderr; they may be nil.
	writers map[string]io.Writer
	kept    map[string]*bytes.Buffer
	full    bool
}

// take takes an event of a command or an execution, and returns the result if it is the last one.
func (c *collector) take(event streamEvent) (*ExecResult, error) {
	switch event.name {
	case "stdout", "stderr":
		piece, err := outputOf(event.data)
		if err != nil {
			return nil, err
		}
		if c.kept == nil {
			c.kept = map[string]*bytes.Buffer{"stdout": {}, "stderr": {}}
		}
		kept := c.kept[event.name]
		room := mostKept - kept.Len()
		c.full = c.full || len(piece) > room
		kept.Write(piece[:min(len(piece), room)])
		if writer := c.writers[event.name]; writer != nil {
			if _, err := writer.Write(piece); err != nil {
				return nil, err
			}
		}
	case "exit":
		var exit struct {
			ExitCode            int
			TimedOut, Truncated bool
			Refused             []RefusedConnection
		}
		if err := json.Unmarshal(event.data, &exit); err != nil {
			return nil, err
		}
		result := &ExecResult{
			ExitCode: exit.ExitCode, TimedOut: exit.TimedOut, Truncated: exit.Truncated || c.full, Refused: exit.Refused,
		}
		if c.kept != nil {
			result.Stdout, result.Stderr = c.kept["stdout"].String(), c.kept["stderr"].String()
		}
		return result, nil
	}
	return nil, nil
}

// outputOf decodes the data of an event stdout or stderr.
func outputOf(data []byte) ([]byte, error) {
	var chunk struct{ Data, Encoding string }
	if err := json.Unmarshal(data, &chunk); err != nil {
		return nil, err
	}
	if chunk.Encoding == "base64" {
		return base64.StdEncoding.DecodeString(chunk.Data)
	}
	return []byte(chunk.Data), nil
}
