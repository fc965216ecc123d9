package berth

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/owner/berth-go/api"
)

// webhookTolerance is how old a webhook may be, and how far in the future (standardwebhooks.com).
const webhookTolerance = 5 * time.Minute

// WebhookEvent is the event that a webhook reports.
type WebhookEvent struct {
	// Event is its name, such as task.completed.
	Event string `json:"event"`
	// CreatedAt is when it happened.
	CreatedAt time.Time `json:"created_at"`
	// Body is the whole body, which has the fields that belong to the event. The generated package has a type for each event.
	Body json.RawMessage `json:"-"`
}

// VerifyWebhook checks that a webhook was signed with a secret not long ago, and returns its event (standardwebhooks.com). The
// body is that of the request, byte by byte: do not decode it before. A webhook that is not authentic is
// [ErrWebhookVerification].
func VerifyWebhook(headers http.Header, body []byte, secret string) (*WebhookEvent, error) {
	id, timestamp, signatures := headers.Get("webhook-id"), headers.Get("webhook-timestamp"), headers.Get("webhook-signature")
	for name, value := range map[string]string{"webhook-id": id, "webhook-timestamp": timestamp, "webhook-signature": signatures} {
		if value == "" {
			return nil, fmt.Errorf("%w: the header %s is missing", ErrWebhookVerification, name)
		}
	}
	seconds, err := strconv.ParseInt(timestamp, 10, 64)
	if err != nil || time.Since(time.Unix(seconds, 0)).Abs() > webhookTolerance {
		return nil, fmt.Errorf("%w: its time, %s, is more than %s from now", ErrWebhookVerification, timestamp, webhookTolerance)
	}
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil {
		return nil, fmt.Errorf("%w: the secret is not whsec_ with base64", ErrWebhookVerification)
	}
	sum := hmac.New(sha256.New, key)
	fmt.Fprintf(sum, "%s.%s.%s", id, timestamp, body)
	expected := sum.Sum(nil)
	for signature := range strings.FieldsSeq(signatures) {
		version, encoded, _ := strings.Cut(signature, ",")
		given, err := base64.StdEncoding.DecodeString(encoded)
		if version != "v1" || err != nil || !hmac.Equal(given, expected) {
			continue
		}
		event := &WebhookEvent{Body: body}
		if err := json.Unmarshal(body, event); err != nil {
			return nil, fmt.Errorf("berth: the webhook is signed, but its body is not an event: %w", err)
		}
		return event, nil
	}
	return nil, fmt.Errorf("%w: it was not signed with this secret, or was changed", ErrWebhookVerification)
}

// ListWebhooks lists the webhooks of the account, the newest first.
func (c *Client) ListWebhooks(ctx context.Context) ([]Webhook, error) {
	var list api.WebhookList
	err := c.transport.json(ctx, http.MethodGet, "/webhooks", nil, &list)
	return list.Webhooks, err
}

// CreateWebhook has events sent to a URL. The result has the secret that they are signed with, which no other call returns.
func (c *Client) CreateWebhook(ctx context.Context, create WebhookCreate) (*CreatedWebhook, error) {
	var created CreatedWebhook
	if err := c.transport.json(ctx, http.MethodPost, "/webhooks", create, &created); err != nil {
		return nil, err
	}
	return &created, nil
}

// EnableWebhook switches a webhook on again that berth switched off after many failures.
func (c *Client) EnableWebhook(ctx context.Context, id string) (*Webhook, error) {
	var enabled api.WebhookEnvelope
	err := c.transport.json(ctx, http.MethodPost, "/webhooks/"+url.PathEscape(id)+"/enable", nil, &enabled)
	if err != nil {
		return nil, err
	}
	return &enabled.Webhook, nil
}

// DeleteWebhook deletes a webhook.
func (c *Client) DeleteWebhook(ctx context.Context, id string) error {
	return c.transport.json(ctx, http.MethodDelete, "/webhooks/"+url.PathEscape(id), nil, nil)
}
