// Package berthtest lets Go tests use berth: an instance for the run, accounts, faults, the clock, waits, inboxes and scenarios.
//
//	func TestReport(t *testing.T) {
//		account := berthtest.Start(t).Account(berthtest.AccountCreate{})
//		server, err := account.Client.CreateServer(t.Context(), berth.ServerCreate{})
//		…
//	}
//
// Tests that are run by "berth run -- go test ./..." use its instance. Where BERTH_BASE_URL is missing, as for the run button of
// an editor, [Start] starts an instance, one for each test binary, which ends with it.
//
// The methods end the test if they fail, so call them from the goroutine of the test.
package berthtest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/owner/berth-go"
	"github.com/owner/berth-go/api"
)

// startPatience is how long an instance may take to start.
const startPatience = time.Minute

// Instance is an instance of berth, as one test uses it.
type Instance struct {
	// BaseURL is the address of the API.
	BaseURL string
	// APIKey is the key of the instance's own account, and AdminToken opens the control API.
	APIKey, AdminToken string
	// Client calls the API with APIKey. An account of the test's own is better: see [Instance.Account].
	Client *berth.Client

	t       testing.TB
	control *api.ClientWithResponses
}

// environment has the variables by which programs find an instance.
type environment struct{ baseURL, apiKey, adminToken string }

// ownOfBinary starts the instance of this test binary. Nothing ends it but the end of this process.
var ownOfBinary = sync.OnceValues(func() (*process, error) { return start() })

// Start returns the instance of the run: that of BERTH_BASE_URL, else one of this test binary's own. For that berth is searched
// by BERTH_EXECUTABLE and then on PATH. It ends the test if berth is missing.
func Start(t testing.TB) *Instance {
	t.Helper()
	found := environment{os.Getenv("BERTH_BASE_URL"), os.Getenv("BERTH_API_KEY"), os.Getenv("BERTH_ADMIN_TOKEN")}
	if found.baseURL == "" {
		own, err := ownOfBinary()
		if err != nil {
			t.Fatal(err)
		}
		found = own.environment
	}
	for name, value := range map[string]string{"BERTH_API_KEY": found.apiKey, "BERTH_ADMIN_TOKEN": found.adminToken} {
		if value == "" {
			t.Fatalf(`berthtest: BERTH_BASE_URL is set, but %s is not: run the tests by "berth run -- go test ./...", `+
				`take all variables by eval "$(berth env)", or unset BERTH_BASE_URL`, name)
		}
	}
	return found.instance(t)
}

// StartOwn starts an instance of the test's own, which ends with it: for a test that moves the clock, or needs options of berth
// serve such as "--freeze", "2030-01-31T23:00:00Z". It takes about a tenth of a second.
func StartOwn(t testing.TB, options ...string) *Instance {
	t.Helper()
	own, err := start(options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		own.hold.Close()
		own.command.Wait()
	})
	return own.environment.instance(t)
}

func (e environment) instance(t testing.TB) *Instance {
	instance := &Instance{BaseURL: e.baseURL, APIKey: e.apiKey, AdminToken: e.adminToken, t: t}
	instance.Client = instance.client(e.apiKey)
	instance.control = instance.client(e.adminToken).API()
	return instance
}

func (i *Instance) client(credential string) *berth.Client {
	return berth.New(berth.WithBaseURL(i.BaseURL), berth.WithAPIKey(credential))
}

// API returns the generated layer with the admin token: every operation of the control API, also those without a method here.
func (i *Instance) API() *api.ClientWithResponses { return i.control }

// Reset puts the instance back to an empty one. It is for tests that do not run beside others.
func (i *Instance) Reset() {
	i.t.Helper()
	response, err := i.control.ControlInstanceResetWithResponse(i.t.Context(), api.ControlInstanceResetJSONRequestBody{})
	check(i.t, response, err)
}

// process is a disposable instance, with the end of the pipe that it waits for.
type process struct {
	environment
	command *exec.Cmd
	hold    *os.File
}

// start starts a disposable instance, which ends when its standard input does: with this process, however that ends.
func start(options ...string) (*process, error) {
	executable := os.Getenv("BERTH_EXECUTABLE")
	if executable == "" {
		found, err := exec.LookPath("berth")
		if err != nil {
			return nil, errors.New("berthtest: berth is not on PATH, and BERTH_EXECUTABLE is not set. Install it, for example by " +
				"`npm install --global @owner/berth` or `pip install owner-berth-cli`, and run the tests again")
		}
		executable = found
	}
	const script = `printf '%s\n' "$BERTH_BASE_URL" "$BERTH_API_KEY" "$BERTH_ADMIN_TOKEN"; exec cat >/dev/null`
	arguments := append([]string{"run", "--allow-local-webhooks"}, options...)
	command := exec.Command(executable, append(arguments, "--", "sh", "-c", script)...)
	input, hold, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer input.Close()
	output, printed, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer output.Close()
	defer printed.Close()
	// Not this process's own stream: "go test" waits until all programs have closed that.
	complaints, err := os.CreateTemp("", "berthtest")
	if err != nil {
		return nil, err
	}
	defer complaints.Close()
	os.Remove(complaints.Name())
	command.Stdin, command.Stdout, command.Stderr = input, printed, complaints
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("berthtest: %s cannot be run: %w", executable, err)
	}
	printed.Close()

	own := &process{command: command, hold: hold}
	output.SetReadDeadline(time.Now().Add(startPatience))
	reader := bufio.NewReader(output)
	for _, variable := range []*string{&own.baseURL, &own.apiKey, &own.adminToken} {
		line, err := reader.ReadString('\n')
		if err != nil {
			hold.Close()
			if errors.Is(err, os.ErrDeadlineExceeded) {
				command.Process.Kill()
			}
			command.Wait()
			complaints.Seek(0, io.SeekStart)
			said, _ := io.ReadAll(complaints)
			return nil, fmt.Errorf("berthtest: %s did not start an instance (%w): %s", executable, err, said)
		}
		*variable = strings.TrimSuffix(line, "\n")
	}
	return own, nil
}

// reply is a response of the generated layer.
type reply interface {
	StatusCode() int
	GetBody() []byte
}

// check ends a test if a call of the control API failed.
func check(t testing.TB, response reply, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	if status := response.StatusCode(); status < 200 || status > 299 {
		t.Fatalf("berthtest: the control API responded with %d: %s", status, response.GetBody())
	}
}
