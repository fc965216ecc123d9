package berth

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
)

// Change is a change of an object that the key reaches.
type Change struct {
	// Type is ready at the beginning, gap if changes were missed, else the kind of object, such as server.
	Type string `json:"type"`
	// ID is that of the object, and ServerID that of the server it is on.
	ID       string `json:"id,omitempty"`
	ServerID string `json:"server_id,omitempty"`
	// Value is the object as its GET returns it; null if it is gone.
	Value json.RawMessage `json:"value,omitempty"`
}

// Changes reads the changes of everything that the key reaches, until the context ends. The first is ready: load what you need
// after it. After a lost connection one with the type gap says that changes were missed.
func (c *Client) Changes(ctx context.Context) iter.Seq2[Change, error] {
	return c.transport.changes(ctx)
}

func (t *transport) changes(ctx context.Context) iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) {
		first := true
		for failures := 0; ; failures++ {
			err := error(nil)
			for event, broken := range t.events(ctx, "/changes", nil, false) {
				var change Change
				if err = broken; err == nil {
					err = json.Unmarshal(event.data, &change)
				}
				if err != nil {
					break
				}
				if change.Type == "ready" && !first {
					change = Change{Type: "gap"}
				}
				first, failures = false, 0
				if !yield(change, nil) {
					return
				}
			}
			if err != nil && (!errors.Is(err, ErrConnection) || failures >= t.retries) {
				yield(Change{}, err)
				return
			}
			if err := pause(ctx, delay(failures)); err != nil {
				yield(Change{}, err)
				return
			}
		}
	}
}

// settle reads an object whenever it has changed, until it has settled.
func (t *transport) settle(ctx context.Context, id string, read func() (settled bool, err error)) error {
	for change, err := range t.changes(ctx) {
		if err != nil {
			return err
		}
		if change.ID != id && change.Type != "ready" && change.Type != "gap" {
			continue
		}
		if settled, err := read(); settled || err != nil {
			return err
		}
	}
	return ctx.Err()
}
