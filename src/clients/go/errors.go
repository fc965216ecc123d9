package berth

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// What an [*Error] can be, for errors.Is.
var (
	// ErrBadRequest is 400, 405 and 415: the request is wrong, and the message names the field.
	ErrBadRequest = errors.New("berth: bad request")
	// ErrAuthentication is 401: the credential is missing or invalid.
	ErrAuthentication = errors.New("berth: missing or invalid credential")
	// ErrBudgetExceeded is 402: the budget of the account is used up.
	ErrBudgetExceeded = errors.New("berth: budget exceeded")
	// ErrForbidden is 403 with the code forbidden: the key may not do this.
	ErrForbidden = errors.New("berth: forbidden")
	// ErrPlanLimit is 403 with the code plan_limit: the plan or the budget does not allow it.
	ErrPlanLimit = errors.New("berth: plan limit")
	// ErrNotFound is 404: it does not exist, or is out of the key's reach.
	ErrNotFound = errors.New("berth: not found")
	// ErrPayloadTooLarge is 413: the body is larger than 32 MiB.
	ErrPayloadTooLarge = errors.New("berth: payload too large")
	// ErrTooManyRequests is 429, with a longer time to wait than the client waits by itself.
	ErrTooManyRequests = errors.New("berth: too many requests")
	// ErrInternal is 500: an internal error of berth, whose log has the request id.
	ErrInternal = errors.New("berth: internal error")
	// ErrComputeBackend is 502: the sandbox does not start, or does not take the command.
	ErrComputeBackend = errors.New("berth: compute backend failed")
	// ErrUnavailable is 503: berth stops or begins anew.
	ErrUnavailable = errors.New("berth: unavailable")
	// ErrConnection is a response that did not arrive, or not whole: the connection was refused, closed or cut.
	ErrConnection = errors.New("berth: no complete response")
	// ErrWebhookVerification is a webhook that was not signed with the secret, or is too old.
	ErrWebhookVerification = errors.New("berth: webhook is not authentic")
)

// kinds has the sentinel of each error code. A later berth may have other codes.
var kinds = map[string]error{
	"bad_request":                ErrBadRequest,
	"missing_or_invalid_api_key": ErrAuthentication,
	"budget_exceeded":            ErrBudgetExceeded,
	"forbidden":                  ErrForbidden,
	"plan_limit":                 ErrPlanLimit,
	"not_found":                  ErrNotFound,
	"method_not_allowed":         ErrBadRequest,
	"payload_too_large":          ErrPayloadTooLarge,
	"unsupported_media_type":     ErrBadRequest,
	"upgrade_required":           ErrBadRequest,
	"too_many_requests":          ErrTooManyRequests,
	"internal_error":             ErrInternal,
	"compute_backend_error":      ErrComputeBackend,
	"service_unavailable":        ErrUnavailable,
}

// Error is a request that failed.
type Error struct {
	// Status is the HTTP status of the response; 0 if none arrived, or not whole.
	Status int
	// Code is the field error of the response, such as not_found; empty if the response is not berth's, or none arrived.
	Code string
	// Message names the cause and the remedy.
	Message string
	// RequestID is the id of the request, which berth's log repeats; empty if the response has none.
	RequestID string

	kind  error
	cause error
}

// Error returns the message with what identifies the failure.
func (e *Error) Error() string {
	text := "berth: " + e.Message
	if e.cause != nil {
		text += ": " + e.cause.Error()
	}
	switch {
	case e.Code != "" && e.RequestID != "":
		return fmt.Sprintf("%s (%s, %s)", text, e.Code, e.RequestID)
	case e.Code != "" || e.RequestID != "":
		return fmt.Sprintf("%s (%s)", text, e.Code+e.RequestID)
	}
	return text
}

// Unwrap returns the error that caused this one; nil if berth reported it.
func (e *Error) Unwrap() error { return e.cause }

// Is reports whether the error is of a kind, such as [ErrNotFound].
func (e *Error) Is(target error) bool {
	return e.kind != nil && e.kind == target || e.Code != "" && kinds[e.Code] == target
}

// ProjectFailedError is a project whose bring-up failed.
type ProjectFailedError struct {
	// ProjectID is the id of the project, and Name its name.
	ProjectID, Name string
	// Phase is the phase that failed, such as install; empty if it is not known.
	Phase string
	// Log is the end of the log.
	Log string
}

// Error returns what failed, with the end of the log.
func (e *ProjectFailedError) Error() string {
	return fmt.Sprintf("berth: project %s failed in its phase %s:\n%s", e.Name, e.Phase, e.Log)
}

// errorOf makes the error of a failed response.
func errorOf(request *http.Request, response *http.Response) *Error {
	body, _ := io.ReadAll(response.Body)
	failure := &Error{Status: response.StatusCode, RequestID: response.Header.Get("x-request-id")}
	if failure.take(body) {
		return failure
	}
	kind := response.Header.Get("Content-Type")
	if kind == "" {
		kind = "no content type"
	}
	beginning := strings.TrimSpace(string(body[:min(len(body), 200)]))
	if beginning == "" {
		beginning = "empty"
	}
	failure.Message = fmt.Sprintf("%s %s got %d with a body (%s) that is not berth's: %s",
		request.Method, request.URL.Path, response.StatusCode, kind, beginning)
	return failure
}

// errorOfEvent makes the error of an event error of a stream, whose data is the body of a failure.
func errorOfEvent(response *http.Response, data []byte) *Error {
	failure := &Error{RequestID: response.Header.Get("x-request-id")}
	if !failure.take(data) {
		failure.Message = "the stream ended with an error: " + string(data)
	}
	return failure
}

// take takes code and message out of the body of a failure, and reports whether it has them.
func (e *Error) take(body []byte) bool {
	var fields struct{ Error, Message *string }
	if json.Unmarshal(body, &fields) != nil || fields.Error == nil || fields.Message == nil {
		return false
	}
	e.Code, e.Message = *fields.Error, *fields.Message
	return true
}
