package berth

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"iter"
	"math"
	"net/http"
	"net/url"
)

// streamEvent is an event of a stream of server-sent events.
type streamEvent struct {
	// id is what Last-Event-ID says to go on after the event; empty if the stream cannot go on.
	id string
	// name is the event's name; message if it has none.
	name string
	data []byte
}

// readEvents reads the server-sent events of a response to their end, and closes it. Comments, which keep the connection
// alive, and unknown fields are skipped. An event error ends the stream with its error.
func readEvents(ctx context.Context, response *http.Response) iter.Seq2[streamEvent, error] {
	return func(yield func(streamEvent, error) bool) {
		defer response.Body.Close()
		lines := bufio.NewScanner(response.Body)
		lines.Buffer(nil, math.MaxInt)
		lines.Split(splitLine)
		event := streamEvent{}
		for lines.Scan() {
			field, value, _ := bytes.Cut(lines.Bytes(), []byte(":"))
			value = bytes.TrimPrefix(value, []byte(" "))
			switch string(field) {
			case "event":
				event.name = string(value)
			case "data":
				if event.data != nil {
					event.data = append(event.data, '\n')
				}
				event.data = append(event.data, value...)
				if event.data == nil {
					event.data = []byte{}
				}
			case "id":
				if bytes.IndexByte(value, 0) < 0 {
					event.id = string(value)
				}
			case "":
				if len(lines.Bytes()) > 0 {
					continue // A comment.
				}
				complete := event
				event = streamEvent{}
				if complete.data == nil {
					continue
				}
				if complete.name == "error" {
					yield(streamEvent{}, errorOfEvent(response, complete.data))
					return
				}
				if complete.name == "" {
					complete.name = "message"
				}
				if !yield(complete, nil) {
					return
				}
			}
		}
		if err := lines.Err(); err != nil {
			yield(streamEvent{}, brokenOff(ctx, response, err))
		}
	}
}

// events reads a stream of events. If the connection breaks off and resumes is set, it goes on after the last event.
func (t *transport) events(ctx context.Context, path string, query url.Values, resumes bool) iter.Seq2[streamEvent, error] {
	return func(yield func(streamEvent, error) bool) {
		header := http.Header{"Accept": {"text/event-stream"}}
		for failures := 0; ; failures++ {
			response, err := t.send(ctx, call{method: http.MethodGet, path: path, query: query, header: header, streams: true})
			if err == nil {
				for event, broken := range readEvents(ctx, response) {
					if broken != nil {
						err = broken
						break
					}
					failures = 0
					if event.id != "" {
						header.Set("Last-Event-Id", event.id)
					}
					if !yield(event, nil) {
						return
					}
				}
				if err == nil {
					return
				}
			}
			if !resumes || !errors.Is(err, ErrConnection) || failures >= t.retries {
				yield(streamEvent{}, err)
				return
			}
			if err := pause(ctx, delay(failures)); err != nil {
				yield(streamEvent{}, err)
				return
			}
		}
	}
}

// brokenOff makes the error of a body that cannot be read to its end.
func brokenOff(ctx context.Context, response *http.Response, cause error) error {
	if ctx.Err() != nil {
		return ended(ctx, response.Request)
	}
	return &Error{
		RequestID: response.Header.Get("x-request-id"),
		Message:   response.Request.Method + " " + response.Request.URL.Path + ": the connection broke off before the response was whole",
		cause:     cause,
		kind:      ErrConnection,
	}
}

// splitLine is a bufio.SplitFunc for lines that end with \n, \r\n or \r.
func splitLine(data []byte, atEOF bool) (int, []byte, error) {
	end := bytes.IndexAny(data, "\r\n")
	switch {
	case end < 0 && atEOF:
		return len(data), nil, nil // A line that does not end counts for nothing.
	case end < 0, data[end] == '\r' && end+1 == len(data) && !atEOF:
		return 0, nil, nil
	case data[end] == '\r' && end+1 < len(data) && data[end+1] == '\n':
		return end + 2, data[:end:end], nil
	}
	return end + 1, data[:end:end], nil
}
