package berthtest

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/owner/berth-go"
	"github.com/owner/berth-go/api"
)

// waitPatience is how long a wait lasts by default.
const waitPatience = 10 * time.Second

// What the control API takes and returns.
type (
	// AccountCreate is what a new account may have.
	AccountCreate = api.AccountCreate
	// AccountChange is what a change of an account may change.
	AccountChange = api.AccountUpdate
	// PlanOverrides are limits of a plan.
	PlanOverrides = api.PlanOverrides
	// Clock is the clock of an instance.
	Clock = api.Clock
	// FaultState is a fault, with how often it matched and applied.
	FaultState = api.Fault
	// ScenarioState is a scenario of the scripted agent, with its id.
	ScenarioState = api.Scenario
	// Outcome is what a wait found: the object that was waited for, in the field of its kind.
	Outcome = api.Outcome
)

// Account is an account of a test. What happens in it no other test sees.
type Account struct {
	// ID identifies the account, and APIKey is its key.
	ID, APIKey string
	// Client calls the API with the key.
	Client *berth.Client

	instance *Instance
}

// Account makes an account with a key of its own, and removes it at the end of the test, with everything in it.
func (i *Instance) Account(create AccountCreate) *Account {
	i.t.Helper()
	response, err := i.control.ControlAccountsCreateWithResponse(i.t.Context(), create)
	check(i.t, response, err)
	account := &Account{ID: response.JSON201.ID, APIKey: response.JSON201.APIKey, instance: i}
	account.Client = i.client(account.APIKey)
	i.atEnd(func(ctx context.Context) (reply, error) {
		return i.control.ControlAccountsDeleteWithResponse(ctx, account.ID)
	})
	return account
}

// Change changes its plan, its limits, its budget, or what it has used.
func (a *Account) Change(change AccountChange) {
	a.instance.t.Helper()
	response, err := a.instance.control.ControlAccountsUpdateWithResponse(a.instance.t.Context(), a.ID, change)
	check(a.instance.t, response, err)
}

// Remove removes it with everything in it, before the end of the test.
func (a *Account) Remove() {
	a.instance.t.Helper()
	response, err := a.instance.control.ControlAccountsDeleteWithResponse(a.instance.t.Context(), a.ID)
	check(a.instance.t, response, err)
}

// Fail has an operation, such as servers.create, fail for this account alone: so many times, or always if that is 0. The client
// tries some requests again, each of which counts: see [berth.WithRetries].
func (a *Account) Fail(operation string, effect Effect, times int) FaultState {
	a.instance.t.Helper()
	return a.instance.AddFault(Fault{Operation: operation, AccountID: a.ID, Effect: effect, Times: times})
}

// Inbox returns an inbox that no other account shares.
func (a *Account) Inbox() *Inbox { return a.instance.Inbox(a.ID) }

// Fault is a failure on purpose.
type Fault struct {
	// Operation, Method, Path and AccountID say which requests it applies to. What is empty matches all.
	Operation, Method, Path, AccountID string
	// Effect is what it does.
	Effect Effect
	// After is how many matching requests pass first, and Times how often it applies then; always if that is 0.
	After, Times int
}

// Effect is what a fault does.
type Effect map[string]any

// RespondError responds as the API does, with a status such as 503.
func RespondError(status int) Effect { return Effect{"error": map[string]any{"status": status}} }

// RespondRetryAfter responds with a status, such as 429, and Retry-After in whole seconds.
func RespondRetryAfter(status int, wait time.Duration) Effect {
	return Effect{"error": map[string]any{"status": status, "retry_after": int(wait.Seconds())}}
}

// Respond responds with exactly this status, body and headers, of which Content-Type is one.
func Respond(status int, body string, headers map[string]string) Effect {
	reply := map[string]any{"status": status, "body": body}
	others := map[string]string{}
	for name, value := range headers {
		if strings.EqualFold(name, "content-type") {
			reply["content_type"] = value
		} else {
			others[name] = value
		}
	}
	if len(others) > 0 {
		reply["headers"] = others
	}
	return Effect{"respond": reply}
}

// Delay waits before the request is done.
func Delay(wait time.Duration) Effect { return Effect{"delay_ms": wait.Milliseconds()} }

// Disconnect closes the connection without a response. Nothing is done.
func Disconnect() Effect { return Effect{"disconnect": true} }

// LoseResponse does everything, then closes the connection without a response.
func LoseResponse() Effect { return Effect{"lose_response": true} }

// Truncate closes the connection after so many bytes of the body.
func Truncate(size int) Effect { return Effect{"truncate": map[string]any{"bytes": size}} }

// BackendFail has the compute backend fail.
func BackendFail() Effect { return Effect{"backend": "fail"} }

// AddFault sets a fault, and removes it at the end of the test. It applies to all accounts unless AccountID names one.
func (i *Instance) AddFault(fault Fault) FaultState {
	i.t.Helper()
	match := map[string]any{}
	for name, value := range map[string]string{
		"operation": fault.Operation, "method": fault.Method, "path": fault.Path, "account_id": fault.AccountID,
	} {
		if value != "" {
			match[name] = value
		}
	}
	body := map[string]any{"match": match, "effect": fault.Effect}
	if fault.After > 0 {
		body["after"] = fault.After
	}
	if fault.Times > 0 {
		body["times"] = fault.Times
	}
	added, err := i.control.ControlFaultsAddWithBodyWithResponse(i.t.Context(), "application/json", encoded(i, body))
	check(i.t, added, err)
	i.atEnd(func(ctx context.Context) (reply, error) {
		return i.control.ControlFaultsDeleteWithResponse(ctx, added.JSON201.ID)
	})
	return *added.JSON201
}

// ListFaults lists the faults of all tests, with how often they applied.
func (i *Instance) ListFaults() []FaultState {
	i.t.Helper()
	response, err := i.control.ControlFaultsListWithResponse(i.t.Context())
	check(i.t, response, err)
	return response.JSON200.Faults
}

// DeleteFault removes a fault.
func (i *Instance) DeleteFault(id string) {
	i.t.Helper()
	response, err := i.control.ControlFaultsDeleteWithResponse(i.t.Context(), id)
	check(i.t, response, err)
}

// ClearFaults removes all faults, those of other tests too.
func (i *Instance) ClearFaults() {
	i.t.Helper()
	response, err := i.control.ControlFaultsClearWithResponse(i.t.Context())
	check(i.t, response, err)
}

// ReadClock reads the clock, which metering, months, expiry and retries go by. It is one for the whole instance: a test that
// moves it takes an instance of its own, from [StartOwn].
func (i *Instance) ReadClock() Clock {
	i.t.Helper()
	response, err := i.control.ControlClockReadWithResponse(i.t.Context())
	check(i.t, response, err)
	return *response.JSON200
}

// AdvanceClock moves the clock on. Everything due on the way has happened when this returns.
func (i *Instance) AdvanceClock(by time.Duration) Clock {
	i.t.Helper()
	return i.moveClock(api.ClockMove{Advance: berth.Ptr(fmt.Sprintf("%dms", by.Milliseconds()))})
}

// SetClock moves the clock to a time.
func (i *Instance) SetClock(to time.Time) Clock {
	i.t.Helper()
	return i.moveClock(api.ClockMove{Set: berth.Ptr(to.UTC().Format("2006-01-02T15:04:05.000Z"))})
}

// FreezeClock stops the clock, or has it go on.
func (i *Instance) FreezeClock(frozen bool) Clock {
	i.t.Helper()
	return i.moveClock(api.ClockMove{Freeze: &frozen})
}

// ResetClock brings the clock back to real time.
func (i *Instance) ResetClock() Clock {
	i.t.Helper()
	return i.moveClock(api.ClockMove{Reset: berth.Ptr(true)})
}

func (i *Instance) moveClock(move api.ClockMove) Clock {
	i.t.Helper()
	response, err := i.control.ControlClockMoveWithResponse(i.t.Context(), move)
	check(i.t, response, err)
	return *response.JSON200
}

// WaitFor says what to wait for: one of the fields before Until.
type WaitFor struct {
	// Task, Build, Project, Execution and Delivery are ids.
	Task, Build, Project, Execution, Delivery string
	// Deliveries is the id of an event: until every webhook that takes it was tried.
	Deliveries string
	// Event is the name of an event, and Inbox that of an inbox.
	Event, Inbox string
	// Until has other states than those in which the object has settled.
	Until []string
	// After is the id of an event or entry, or start: only later ones count.
	After string
	// AccountID is the account of an event.
	AccountID string
	// Count is how many entries an inbox has to have, and Attempts how often a delivery has to be tried.
	Count, Attempts int
	// Timeout is the longest wait, 10 s by default.
	Timeout time.Duration
}

// Wait waits for something to happen. It returns as soon as it has: no test needs a sleep. If the time is over first, it ends the
// test with the state that it found.
func (i *Instance) Wait(what WaitFor) Outcome {
	i.t.Helper()
	if what.Timeout == 0 {
		what.Timeout = waitPatience
	}
	response, err := i.control.ControlInstanceWaitWithResponse(i.t.Context(), nil, func(_ context.Context, request *http.Request) error {
		query := request.URL.Query()
		for name, value := range map[string]string{
			"task": what.Task, "build": what.Build, "project": what.Project, "execution": what.Execution,
			"delivery": what.Delivery, "deliveries": what.Deliveries, "event": what.Event, "inbox": what.Inbox,
			"until": strings.Join(what.Until, ","), "after": what.After, "account_id": what.AccountID,
			"timeout_ms": fmt.Sprint(what.Timeout.Milliseconds()),
		} {
			if value != "" {
				query.Set(name, value)
			}
		}
		for name, value := range map[string]int{"count": what.Count, "attempts": what.Attempts} {
			if value > 0 {
				query.Set(name, fmt.Sprint(value))
			}
		}
		request.URL.RawQuery = query.Encode()
		return nil
	})
	check(i.t, response, err)
	if !response.JSON200.Matched {
		i.t.Fatalf("berthtest: nothing came of %+v within %s: %s", what, what.Timeout, response.Body)
	}
	return *response.JSON200
}

// ReleaseTask lets a task go on whose scenario waits in a step hold.
func (i *Instance) ReleaseTask(id string) {
	i.t.Helper()
	response, err := i.control.ControlTasksReleaseWithResponse(i.t.Context(), id)
	check(i.t, response, err)
}

// Inbox is a receiver of webhooks, in berth itself.
type Inbox struct {
	// Name is its name, and URL where to send webhooks.
	Name, URL string

	instance *Instance
}

// InboxEntry is a request that an inbox received.
type InboxEntry struct{ api.InboxEntry }

// Header returns the headers of the request.
func (e InboxEntry) Header() http.Header {
	header := http.Header{}
	for name, value := range e.Headers {
		header.Set(name, value)
	}
	return header
}

// Content returns the bytes of its body.
func (e InboxEntry) Content() []byte {
	if e.Encoding != nil {
		if content, err := base64.StdEncoding.DecodeString(e.Body); err == nil {
			return content
		}
	}
	return []byte(e.Body)
}

// Inbox returns the inbox of a name, which exists as soon as it is named.
func (i *Instance) Inbox(name string) *Inbox {
	return &Inbox{Name: name, URL: i.BaseURL + "/_berth/inbox/" + name, instance: i}
}

// Entries lists what it received, the newest first.
func (n *Inbox) Entries() []InboxEntry {
	n.instance.t.Helper()
	response, err := n.instance.control.ControlInboxReadWithResponse(n.instance.t.Context(), n.Name, nil)
	check(n.instance.t, response, err)
	return entries(response.JSON200.Entries)
}

// Wait waits until it has received so many requests, and returns all, the newest first.
func (n *Inbox) Wait(count int) []InboxEntry {
	n.instance.t.Helper()
	outcome := n.instance.Wait(WaitFor{Inbox: n.Name, Count: count})
	if outcome.Entries == nil {
		return nil
	}
	return entries(*outcome.Entries)
}

// Clear empties it.
func (n *Inbox) Clear() {
	n.instance.t.Helper()
	response, err := n.instance.control.ControlInboxClearWithResponse(n.instance.t.Context(), n.Name)
	check(n.instance.t, response, err)
}

func entries(list []api.InboxEntry) []InboxEntry {
	made := make([]InboxEntry, len(list))
	for at, entry := range list {
		made[at] = InboxEntry{entry}
	}
	return made
}

// Scenario is what the scripted agent does with a goal.
type Scenario struct {
	// Goal is the goal, exactly, unless Match is set: an object of the control API, such as {"glob": "Write *"}.
	Goal  string
	Match map[string]any
	// Name is for people.
	Name string
	// Steps are what the agent does, such as {"run": "make"}, {"ask": "Which colour?"}, {"hold": true} or {"complete": "Done."}.
	Steps []Step
}

// Step is a step of a scenario.
type Step map[string]any

func (s Scenario) body() map[string]any {
	body := map[string]any{"match": s.Goal, "steps": s.Steps}
	if s.Match != nil {
		body["match"] = s.Match
	}
	if s.Name != "" {
		body["name"] = s.Name
	}
	return body
}

// ListScenarios lists the scenarios, which belong to the whole instance.
func (i *Instance) ListScenarios() []ScenarioState {
	i.t.Helper()
	response, err := i.control.ControlScenariosListWithResponse(i.t.Context())
	check(i.t, response, err)
	return response.JSON200.Scenarios
}

// AddScenario adds a scenario before the others, and removes it at the end of the test.
func (i *Instance) AddScenario(scenario Scenario) ScenarioState {
	i.t.Helper()
	added, err := i.control.ControlScenariosAddWithBodyWithResponse(i.t.Context(), "application/json", encoded(i, scenario.body()))
	check(i.t, added, err)
	made := added.JSON201.Scenario
	if made.ID != nil {
		i.atEnd(func(ctx context.Context) (reply, error) {
			return i.control.ControlScenariosDeleteWithResponse(ctx, *made.ID)
		})
	}
	return made
}

// ReplaceScenarios puts these scenarios in place of all.
func (i *Instance) ReplaceScenarios(scenarios ...Scenario) {
	i.t.Helper()
	bodies := make([]map[string]any, len(scenarios))
	for at, scenario := range scenarios {
		bodies[at] = scenario.body()
	}
	body := encoded(i, map[string]any{"scenarios": bodies})
	response, err := i.control.ControlScenariosReplaceWithBodyWithResponse(i.t.Context(), "application/json", body)
	check(i.t, response, err)
}

// ClearScenarios removes all scenarios.
func (i *Instance) ClearScenarios() {
	i.t.Helper()
	response, err := i.control.ControlScenariosClearWithResponse(i.t.Context())
	check(i.t, response, err)
}

func encoded(i *Instance, body any) *bytes.Reader {
	i.t.Helper()
	data, err := json.Marshal(body)
	if err != nil {
		i.t.Fatal(err)
	}
	return bytes.NewReader(data)
}

// atEnd removes something at the end of the test, unless it is gone already.
func (i *Instance) atEnd(remove func(ctx context.Context) (reply, error)) {
	i.t.Cleanup(func() {
		// The context of the test has ended.
		removed, err := remove(context.Background())
		if err == nil && removed.StatusCode() == http.StatusNotFound {
			return
		}
		check(i.t, removed, err)
	})
}
