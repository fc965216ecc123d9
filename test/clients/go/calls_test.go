// The calls of calls.json, by the Go client: run by "berth run -- go test -v ./...".
package calls_test

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/owner/berth-go"
	"github.com/owner/berth-go/api"
	"github.com/owner/berth-go/berthtest"
)

// calls has what the calls share.
type calls struct {
	*testing.T
	instance *berthtest.Instance
	account  *berthtest.Account
	server   *berth.Server
}

func TestCalls(t *testing.T) {
	account := berthtest.Start(t).Account(berthtest.AccountCreate{Label: berth.Ptr("calls")})
	server := must(account.Client.CreateServer(t.Context(), berth.ServerCreate{
		Task: berth.Ptr("calls"), Tier: berth.Ptr(berth.TierSmall),
	}))(t)
	for _, made := range []struct {
		id   string
		call func(calls)
	}{
		{"server", serverCall},
		{"low-level", lowLevel},
		{"exec", exec},
		{"exec-options", execOptions},
		{"exec-callbacks", execCallbacks},
		{"exec-abort", execAbort},
		{"execute", execute},
		{"files-text", filesText},
		{"files-bytes", filesBytes},
		{"directory", directory},
		{"task", task},
		{"task-question", taskQuestion},
		{"build", build},
		{"project", project},
		{"project-secrets", projectSecrets},
		{"deployment", deployment},
		{"keys", keys},
		{"errors", failures},
		{"webhook", webhook},
		{"changes", changes},
		{"retry-lost-response", retryCreation(berthtest.LoseResponse())},
		{"retry-disconnect", retryCreation(berthtest.Disconnect())},
		{"retry-503", retryCreation(berthtest.RespondRetryAfter(503, time.Second))},
		{"retry-429", retryAfter},
		{"retry-delete", retryDelete},
		{"exec-once", execOnce},
		{"truncated-stream", truncatedStream},
		{"redirect", redirect},
		{"unknown-fields", unknownFields},
		{"proxy-page", proxyPage},
		{"account", accountCall},
		{"clock", clock},
		{"wait", wait},
		{"scenarios", scenarios},
	} {
		t.Run(made.id, func(t *testing.T) {
			instance := berthtest.Start(t)
			made.call(calls{T: t, instance: instance, account: account, server: server})
		})
	}
}

// must returns a function that ends a test if a call failed, and returns the result of the call otherwise.
func must[Result any](result Result, err error) func(testing.TB) Result {
	return func(t testing.TB) Result {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return result
	}
}

func (c calls) ok(err error) {
	c.Helper()
	if err != nil {
		c.Fatal(err)
	}
}

func (c calls) fails(err, kind error) {
	c.Helper()
	if !errors.Is(err, kind) {
		c.Fatalf("%v, not %v", err, kind)
	}
}

func (c calls) equal(got, want any) {
	c.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		c.Fatalf("%v, not %v", got, want)
	}
}

func (c calls) text(url string) string {
	c.Helper()
	response := must(http.Get(url))(c)
	defer response.Body.Close()
	return string(must(io.ReadAll(response.Body))(c))
}

func (c calls) contains(text, part string) {
	c.Helper()
	if !strings.Contains(text, part) {
		c.Fatalf("%q has no %q", text, part)
	}
}

func (c calls) write(path, content string, mode fs.FileMode) {
	c.Helper()
	c.ok(os.MkdirAll(filepath.Dir(path), 0o755))
	c.ok(os.WriteFile(path, []byte(content), mode))
}

// own returns an account with one server of its own.
func (c calls) own() (*berthtest.Account, *berth.Server) {
	c.Helper()
	account := c.instance.Account(berthtest.AccountCreate{})
	return account, must(account.Client.CreateServer(c.Context(), berth.ServerCreate{}))(c)
}

func serverCall(c calls) {
	c.equal(c.server.Status, berth.ServerStatusRunning)
	c.equal(c.server.Task, "calls")
	c.ok(c.server.Update(c.Context(), berth.ServerUpdate{Task: berth.Ptr("renamed")}))
	c.equal(must(c.account.Client.GetServer(c.Context(), c.server.ID))(c).Task, "renamed")
	list := must(c.account.Client.ListServers(c.Context()))(c)
	c.equal(slices.ContainsFunc(list, func(s *berth.Server) bool { return s.ID == c.server.ID }), true)
}

func lowLevel(c calls) {
	response := must(c.account.Client.API().ProcessesListWithResponse(c.Context(), c.server.ID))(c)
	if response.JSON200 == nil || response.JSON200.Processes == nil {
		c.Fatalf("%d: %s", response.StatusCode(), response.Body)
	}
}

func exec(c calls) {
	result := must(c.server.Exec(c.Context(), "echo out; echo err >&2; exit 3", nil))(c)
	c.equal(*result, berth.ExecResult{Stdout: "out\n", Stderr: "err\n", ExitCode: 3})
}

func execOptions(c calls) {
	c.ok(c.server.WriteFile(c.Context(), "inside/here.txt", nil))
	result := must(c.server.Exec(c.Context(), `basename "$PWD"; cat; echo $GREETING`, &berth.ExecOptions{
		Dir: "inside", Stdin: strings.NewReader("typed\n"), Env: map[string]string{"GREETING": "hello"},
	}))(c)
	c.equal(result.Stdout, "inside\ntyped\nhello\n")
	// Bytes, and input that is sent while the command runs.
	result = must(c.server.Exec(c.Context(), "basename $PWD; cat", &berth.ExecOptions{
		Dir: "inside", Stdin: io.MultiReader(bytes.NewReader([]byte{0, 255}), strings.NewReader("\n")),
	}))(c)
	c.equal([]byte(result.Stdout), []byte("inside\n\x00\xff\n"))
	result = must(c.server.Exec(c.Context(), "sleep 30", &berth.ExecOptions{Timeout: 200 * time.Millisecond}))(c)
	c.equal(result.TimedOut, true)
}

// writer is an io.Writer by a function.
type writer func(text string)

func (w writer) Write(content []byte) (int, error) {
	w(string(content))
	return len(content), nil
}

func execCallbacks(c calls) {
	must(c.server.Exec(c.Context(), "mkfifo gate", nil))(c)
	var heard []string
	result := must(c.server.Exec(c.Context(), "echo one; read line < gate; echo two", &berth.ExecOptions{
		Stdout: writer(func(text string) {
			heard = append(heard, text)
			if len(heard) == 1 {
				must(c.server.Exec(c.Context(), "echo open > gate", nil))(c)
			}
		}),
	}))(c)
	c.equal(heard[0], "one\n")
	c.equal(strings.Join(heard, ""), "one\ntwo\n")
	c.equal(result.Stdout, "one\ntwo\n")
}

func execAbort(c calls) {
	before := runtime.NumGoroutine()
	ctx, cancel := context.WithCancel(c.Context())
	_, err := c.server.Exec(ctx, "echo begun; exec sleep 4711", &berth.ExecOptions{
		Stdout: writer(func(string) { cancel() }),
	})
	c.fails(err, context.Canceled)
	result := must(c.server.Exec(c.Context(), `while pgrep -f "sleep 471[1]" > /dev/null; do sleep 0.05; done; echo gone`, nil))(c)
	c.equal(result.Stdout, "gone\n")
	http.DefaultClient.CloseIdleConnections()
	for end := time.Now().Add(10 * time.Second); runtime.NumGoroutine() > before; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			stacks := make([]byte, 1<<20)
			c.Fatalf("%d goroutines are left:\n%s", runtime.NumGoroutine()-before, stacks[:runtime.Stack(stacks, true)])
		}
	}
}

func execute(c calls) {
	execution := must(c.server.Execute(c.Context(), "read line; echo got $line", &berth.ExecuteOptions{OpenStdin: true}))(c)
	c.equal(execution.Status, berth.ExecutionStatusRunning)
	c.ok(execution.Write(c.Context(), []byte("hello\n")))
	result := must(execution.Wait(c.Context()))(c)
	c.equal([]any{result.Stdout, result.ExitCode}, []any{"got hello\n", 0})
	c.equal(execution.Status, berth.ExecutionStatusExited)
	var output string
	for piece, err := range execution.Output(c.Context()) {
		c.ok(err)
		output += piece.Stream + ": " + string(piece.Data)
	}
	c.equal(output, "stdout: got hello\n")
	list := must(c.server.ListExecutions(c.Context()))(c)
	c.equal(slices.ContainsFunc(list, func(e *berth.Execution) bool { return e.ID == execution.ID }), true)
	c.ok(execution.Delete(c.Context()))
}

func filesText(c calls) {
	const path = "notes/héllo.txt"
	c.ok(c.server.WriteFile(c.Context(), path, []byte("grüße\n")))
	c.equal(string(must(c.server.ReadFile(c.Context(), path))(c)), "grüße\n")
	c.equal(slices.Contains(must(c.server.ListFiles(c.Context()))(c), path), true)
	c.ok(c.server.DeleteFile(c.Context(), path))
	_, err := c.server.ReadFile(c.Context(), path)
	c.fails(err, berth.ErrNotFound)
}

func filesBytes(c calls) {
	c.ok(c.server.WriteFile(c.Context(), "logo.bin", []byte{0, 255, 128}))
	c.equal(must(c.server.ReadFile(c.Context(), "logo.bin"))(c), []byte{0, 255, 128})
	large := make([]byte, 3<<20)
	for at := range large {
		large[at] = byte(at % 251)
	}
	c.ok(c.server.WriteFile(c.Context(), "large.bin", large))
	c.equal(bytes.Equal(must(c.server.ReadFile(c.Context(), "large.bin"))(c), large), true)
}

func directory(c calls) {
	tree, back := filepath.Join(c.TempDir(), "tree"), filepath.Join(c.TempDir(), "back")
	long := "deep/" + strings.Repeat("n", 120) + ".txt"
	c.write(filepath.Join(tree, "deep/er/text.txt"), "grüße\n", 0o644)
	c.write(filepath.Join(tree, long), "long", 0o644)
	c.write(filepath.Join(tree, "run.sh"), "#!/bin/sh\necho ran\n", 0o755)
	c.write(filepath.Join(tree, "bytes.bin"), "\x00\xff\x80", 0o644)
	c.write(filepath.Join(tree, "node_modules/x/index.js"), "", 0o644)
	c.write(filepath.Join(tree, ".git/HEAD"), "", 0o644)
	c.ok(os.Symlink("deep/er", filepath.Join(tree, "link")))
	c.ok(c.server.UploadDirectory(c.Context(), tree, "tree"))
	ran := must(c.server.Exec(c.Context(), "./run.sh; ls -a; readlink link", &berth.ExecOptions{Dir: "tree"}))(c)
	c.equal(ran.Stdout, "ran\n.\n..\nbytes.bin\ndeep\nlink\nrun.sh\ndeep/er\n")

	c.ok(c.server.DownloadDirectory(c.Context(), "tree", back))
	want := map[string]string{
		"bytes.bin": "\x00\xff\x80", "deep/er/text.txt": "grüße\n", long: "long", "run.sh": "#!/bin/sh\necho ran\n",
	}
	got := map[string]string{}
	c.ok(filepath.WalkDir(back, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			name := must(filepath.Rel(back, path))(c)
			got[name] = string(must(os.ReadFile(path))(c))
		}
		return err
	}))
	c.equal(maps.Equal(got, want), true)
	c.equal(must(os.Stat(filepath.Join(back, "run.sh")))(c).Mode()&0o100, fs.FileMode(0o100))
	c.equal(must(os.Readlink(filepath.Join(back, "link")))(c), "deep/er")

	// A file that is there is not replaced, and a link that leads out is not made.
	c.fails(c.server.DownloadDirectory(c.Context(), "tree", back), fs.ErrExist)
	must(c.server.Exec(c.Context(), "mkdir out && ln -s ../../outside out/link", nil))(c)
	err := c.server.DownloadDirectory(c.Context(), "out", filepath.Join(c.TempDir(), "out"))
	c.contains(fmt.Sprint(err), "leads out of")
	c.contains(fmt.Sprint(c.server.UploadDirectory(c.Context(), tree, "tree/bytes.bin/sub")), "tar on the server")
}

func task(c calls) {
	created := must(c.server.CreateTask(c.Context(), "write: report.md <<< All is well."))(c)
	var types []string
	for event, err := range created.Events(c.Context()) {
		c.ok(err)
		types = append(types, must(event.Discriminator())(c))
	}
	c.ok(created.Wait(c.Context()))
	c.equal(created.Status, berth.TaskStatusCompleted)
	c.equal(string(must(c.server.ReadFile(c.Context(), "report.md"))(c)), "All is well.")
	c.equal([]any{slices.Contains(types, "toolCall"), types[len(types)-1]}, []any{true, "status"})
}

func taskQuestion(c calls) {
	var asked []string
	answered := must(c.server.RunTask(c.Context(), "ask: Which colour?\ncomplete: done", func(question string) string {
		asked = append(asked, question)
		return "red"
	}))(c)
	c.equal([]any{asked, answered.Status, *answered.Result}, []any{[]string{"Which colour?"}, "completed", "done"})
	waiting := must(c.server.RunTask(c.Context(), "ask: Which colour?", nil))(c)
	c.equal([]any{waiting.Status, *waiting.Question}, []any{"awaiting_input", "Which colour?"})
	c.ok(waiting.Cancel(c.Context()))
	c.equal(waiting.Status, berth.TaskStatusCancelled)
}

func build(c calls) {
	_, server := c.own()
	var lines []string
	built := must(server.RunBuild(c.Context(), "A page\nwrite: index.html <<< <h1>Hello</h1>", func(line berth.LogLine) {
		lines = append(lines, line.Text)
	}))(c)
	c.equal(built.Status, berth.BuildStatusCompleted)
	c.contains(c.text(*built.URL), "<h1>Hello</h1>")
	c.equal(len(lines) > 0, true)
}

func project(c calls) {
	site := c.TempDir()
	c.write(filepath.Join(site, "index.html"), "<h1>one</h1>", 0o644)
	c.write(filepath.Join(site, "other.html"), "other", 0o644)
	made := must(c.server.CreateProject(c.Context(), berth.ProjectCreate{
		Name: berth.Ptr("site"), Visibility: berth.Ptr(berth.VisibilityPublic),
	}, berth.FromDirectory(site)))(c)
	c.equal(*made.InitPhase, berth.InitPhaseReady)
	c.contains(c.text(*made.URL), "one")
	c.write(filepath.Join(site, "index.html"), "<h1>two</h1>", 0o644)
	pushed := must(made.Push(c.Context(), site))(c)
	c.equal([]int{pushed.Written, pushed.Removed}, []int{1, 0})
	c.contains(c.text(*made.URL), "two")

	// One file that is too large for a request, and more than one request.
	large := strings.Repeat("0123456789abcdef", 26<<16)
	c.write(filepath.Join(site, "large.txt"), large, 0o644)
	c.equal(must(made.Push(c.Context(), site))(c).Written, 1)
	c.equal(c.text(*made.URL+"large.txt") == large, true)

	broken := c.TempDir()
	c.write(filepath.Join(broken, "package.json"), `{"scripts": {"start": "echo broken; exit 1"}}`, 0o644)
	failed, err := c.server.CreateProject(c.Context(), berth.ProjectCreate{}, berth.FromDirectory(broken))
	var failure *berth.ProjectFailedError
	if !errors.As(err, &failure) {
		c.Fatal(err)
	}
	c.equal(failure.ProjectID, failed.ID)
	c.contains(failure.Log, "broken")
	c.ok(failed.Delete(c.Context()))
	c.ok(made.Delete(c.Context()))
	_, err = c.account.Client.GetProject(c.Context(), made.ID)
	c.fails(err, berth.ErrNotFound)
}

func projectSecrets(c calls) {
	made := must(c.server.CreateProject(c.Context(), berth.ProjectCreate{Name: berth.Ptr("blank")}))(c)
	c.ok(made.SetSecrets(c.Context(), map[string]*string{"COLOUR": berth.Ptr("red")}))
	for _, list := range [][]*berth.Project{
		must(c.server.ListProjects(c.Context()))(c), must(c.account.Client.ListProjects(c.Context()))(c),
	} {
		c.equal(slices.ContainsFunc(list, func(p *berth.Project) bool { return p.ID == made.ID }), true)
	}
	c.ok(made.Delete(c.Context()))
}

func deployment(c calls) {
	_, server := c.own()
	c.ok(server.WriteFile(c.Context(), "index.html", []byte("<h1>Published</h1>")))
	published := must(server.CreateDeployment(c.Context(), berth.DeploymentCreate{}))(c)
	c.contains(c.text(published.URL), "Published")
}

func keys(c calls) {
	other := must(c.account.Client.CreateServer(c.Context(), berth.ServerCreate{}))(c)
	key := must(c.account.Client.CreateKey(c.Context(), berth.APIKeyCreate{
		Label: "one", AllowedServerIds: &[]string{c.server.ID},
	}))(c)
	scoped := berth.New(berth.WithBaseURL(c.instance.BaseURL), berth.WithAPIKey(key.Key))
	list := must(scoped.ListServers(c.Context()))(c)
	c.equal([]any{len(list), list[0].ID}, []any{1, c.server.ID})
	_, err := scoped.CreateServer(c.Context(), berth.ServerCreate{})
	c.fails(err, berth.ErrForbidden)
	reached := must(scoped.GetAccount(c.Context()))(c)
	c.equal([]any{reached.ID, reached.Key}, []any{c.account.ID, berth.OwnKey{ID: key.ID, Label: "one", Scoped: true}})
	own := must(c.account.Client.GetAccount(c.Context()))(c)
	c.equal([]any{own.ID, own.Key.Scoped}, []any{c.account.ID, false})
	c.ok(c.account.Client.DeleteKey(c.Context(), key.ID))
	_, err = scoped.ListServers(c.Context())
	c.fails(err, berth.ErrAuthentication)
	c.ok(other.Delete(c.Context()))
}

func failures(c calls) {
	_, err := c.account.Client.GetServer(c.Context(), "srv_missing")
	c.fails(err, berth.ErrNotFound)
	var failure *berth.Error
	if !errors.As(err, &failure) {
		c.Fatal(err)
	}
	c.equal([]any{failure.Status, failure.Code}, []any{404, "not_found"})
	c.contains(failure.Message, "srv_missing")
	c.contains(failure.RequestID, "req_")

	poor := c.instance.Account(berthtest.AccountCreate{BudgetCap: berth.Ptr(10.0)})
	server := must(poor.Client.CreateServer(c.Context(), berth.ServerCreate{}))(c)
	poor.Change(berthtest.AccountChange{CreditsUsed: berth.Ptr(10.0)})
	_, err = server.CreateTask(c.Context(), "complete: done")
	c.fails(err, berth.ErrBudgetExceeded)
	poor.Change(berthtest.AccountChange{
		CreditsUsed: berth.Ptr(0.0), Limits: &berthtest.PlanOverrides{Tiers: &[]berth.Tier{berth.TierSmall}},
	})
	_, err = poor.Client.CreateServer(c.Context(), berth.ServerCreate{Tier: berth.Ptr(berth.TierLarge)})
	c.fails(err, berth.ErrPlanLimit)
	_, err = poor.Client.CreateServer(c.Context(), berth.ServerCreate{Tier: berth.Ptr(berth.Tier("huge"))})
	c.fails(err, berth.ErrBadRequest)

	_, err = berth.New(berth.WithBaseURL("")).ListServers(c.Context())
	c.contains(fmt.Sprint(err), "BERTH_BASE_URL is not set")
	// Nothing listens there.
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	_, err = berth.New(berth.WithBaseURL(closed.URL)).ListServers(c.Context())
	c.fails(err, berth.ErrConnection)
	c.contains(err.Error(), "is berth running?")
}

func webhook(c calls) {
	inbox := c.account.Inbox()
	made := must(c.account.Client.CreateWebhook(c.Context(), berth.WebhookCreate{
		URL: inbox.URL, Events: &[]berth.EventName{"task.completed"},
	}))(c)
	done := must(c.server.RunTask(c.Context(), "complete: done", nil))(c)
	entry := inbox.Wait(1)[0]
	event := must(berth.VerifyWebhook(entry.Header(), entry.Content(), made.Secret))(c)
	var completed api.TaskCompletedEvent
	c.ok(json.Unmarshal(event.Body, &completed))
	c.equal([]any{event.Event, completed.TaskID}, []any{"task.completed", done.ID})
	changed := bytes.ReplaceAll(entry.Content(), []byte(done.ID), []byte("task_other"))
	_, err := berth.VerifyWebhook(entry.Header(), changed, made.Secret)
	c.fails(err, berth.ErrWebhookVerification)
	_, err = berth.VerifyWebhook(entry.Header(), entry.Content(), "whsec_"+base64.StdEncoding.EncodeToString([]byte("other")))
	c.fails(err, berth.ErrWebhookVerification)

	// The same, signed ten minutes ago.
	old := entry.Header()
	old.Set("webhook-timestamp", strconv.FormatInt(time.Now().Add(-10*time.Minute).Unix(), 10))
	sum := hmac.New(sha256.New, must(base64.StdEncoding.DecodeString(strings.TrimPrefix(made.Secret, "whsec_")))(c))
	fmt.Fprintf(sum, "%s.%s.%s", old.Get("webhook-id"), old.Get("webhook-timestamp"), entry.Content())
	old.Set("webhook-signature", "v1,"+base64.StdEncoding.EncodeToString(sum.Sum(nil)))
	_, err = berth.VerifyWebhook(old, entry.Content(), made.Secret)
	c.fails(err, berth.ErrWebhookVerification)
	c.contains(err.Error(), "its time")
	c.ok(c.account.Client.DeleteWebhook(c.Context(), made.ID))
}

func changes(c calls) {
	ctx, cancel := context.WithTimeout(c.Context(), time.Minute)
	defer cancel()
	var created *berth.Server
	for change, err := range c.account.Client.Changes(ctx) {
		c.ok(err)
		if change.Type == "ready" {
			created = must(c.account.Client.CreateServer(ctx, berth.ServerCreate{Task: berth.Ptr("seen")}))(c)
		}
		if change.Type == "server" && created != nil && change.ID == created.ID {
			var seen api.Server
			c.ok(json.Unmarshal(change.Value, &seen))
			c.equal(seen.Task, "seen")
			break
		}
	}
	c.ok(created.Delete(c.Context()))
}

func retryCreation(effect berthtest.Effect) func(calls) {
	return func(c calls) {
		own := c.instance.Account(berthtest.AccountCreate{})
		fault := own.Fail("servers.create", effect, 1)
		made := must(own.Client.CreateServer(c.Context(), berth.ServerCreate{}))(c)
		list := must(own.Client.ListServers(c.Context()))(c)
		c.equal([]any{len(list), list[0].ID}, []any{1, made.ID})
		at := slices.IndexFunc(c.instance.ListFaults(), func(f berthtest.FaultState) bool { return f.ID == fault.ID })
		c.equal(c.instance.ListFaults()[at].Hits, 1)
	}
}

func retryAfter(c calls) {
	own := c.instance.Account(berthtest.AccountCreate{})
	own.Fail("servers.list", berthtest.RespondRetryAfter(429, time.Second), 1)
	began := time.Now()
	c.equal(len(must(own.Client.ListServers(c.Context()))(c)), 0)
	if waited := time.Since(began); waited < time.Second {
		c.Fatalf("it waited %s", waited)
	}
}

func retryDelete(c calls) {
	own, server := c.own()
	own.Fail("servers.delete", berthtest.LoseResponse(), 1)
	c.ok(server.Delete(c.Context()))
	c.equal(len(must(own.Client.ListServers(c.Context()))(c)), 0)
}

func execOnce(c calls) {
	for _, made := range []struct {
		effect berthtest.Effect
		err    error
		lines  string
	}{
		{berthtest.LoseResponse(), berth.ErrConnection, "1"},
		{berthtest.Disconnect(), berth.ErrConnection, "0"},
		{berthtest.RespondError(503), berth.ErrUnavailable, "0"},
	} {
		must(c.server.Exec(c.Context(), "rm -f log", nil))(c)
		c.account.Fail("exec.run", made.effect, 1)
		_, err := c.server.Exec(c.Context(), "echo x >> log", nil)
		c.fails(err, made.err)
		counted := must(c.server.Exec(c.Context(), "cat log 2>/dev/null | wc -l", nil))(c)
		c.equal(strings.TrimSpace(counted.Stdout), made.lines)
	}
}

func truncatedStream(c calls) {
	c.account.Fail("exec.run", berthtest.Truncate(60), 1)
	command := "for i in 1 2 3 4 5 6 7 8; do echo line $i of the output; done"
	_, err := c.server.Exec(c.Context(), command, &berth.ExecOptions{Stdout: io.Discard})
	c.fails(err, berth.ErrConnection)

	// A stream that can go on does, without a gap or a repetition.
	execution := must(c.server.Execute(c.Context(), command, nil))(c)
	c.account.Fail("executions.output", berthtest.Truncate(150), 1)
	result := must(execution.Wait(c.Context()))(c)
	c.equal(strings.Count(result.Stdout, "line"), 8)
	// A stream that ends well, but without an exit.
	c.account.Fail("exec.run", berthtest.Respond(200, "event: stdout\ndata: {\"data\":\"x\"}\n\n", map[string]string{
		"content-type": "text/event-stream",
	}), 1)
	_, err = c.server.Exec(c.Context(), command, nil)
	c.fails(err, berth.ErrConnection)
}

func redirect(c calls) {
	var requests atomic.Int32
	thief := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { requests.Add(1) }))
	defer thief.Close()
	c.account.Fail("servers.list", berthtest.Respond(307, "", map[string]string{"location": thief.URL + "/servers"}), 1)
	_, err := c.account.Client.ListServers(c.Context())
	c.contains(fmt.Sprint(err), thief.URL)
	c.equal(requests.Load(), 0)
}

func unknownFields(c calls) {
	body := fmt.Sprintf(`{"server": {"id": %q, "status": "melting", "newer": {"than": "this client"}}}`, c.server.ID)
	c.account.Fail("servers.get", berthtest.Respond(200, body, map[string]string{"content-type": "application/json"}), 1)
	c.equal(must(c.account.Client.GetServer(c.Context(), c.server.ID))(c).Status, "melting")
}

func proxyPage(c calls) {
	own, server := c.own()
	own.Fail("servers.get", berthtest.Respond(502, "<html>Bad gateway</html>", map[string]string{"content-type": "text/html"}), 0)
	_, err := own.Client.GetServer(c.Context(), server.ID)
	var failure *berth.Error
	if !errors.As(err, &failure) {
		c.Fatal(err)
	}
	c.equal([]any{failure.Status, failure.Code}, []any{502, ""})
	c.contains(failure.Message, "not berth's")
}

func accountCall(c calls) {
	other := c.instance.Account(berthtest.AccountCreate{Label: berth.Ptr("other")})
	c.equal(len(must(other.Client.ListServers(c.Context()))(c)), 0)
	c.equal(len(must(c.account.Client.ListServers(c.Context()))(c)) > 0, true)
	other.Remove()
	_, err := other.Client.ListServers(c.Context())
	c.fails(err, berth.ErrAuthentication)
}

func clock(c calls) {
	before := c.instance.ReadClock()
	after := c.instance.AdvanceClock(2 * time.Hour)
	if moved := after.Now.Sub(before.Now); moved < 2*time.Hour {
		c.Fatalf("it moved by %s", moved)
	}
	c.instance.ResetClock()
}

// failing is a test that may fail.
type failing struct {
	testing.TB
	message string
}

func (f *failing) Helper() {}

func (f *failing) Fatalf(format string, values ...any) {
	f.message = fmt.Sprintf(format, values...)
	runtime.Goexit()
}

func wait(c calls) {
	created := must(c.server.CreateTask(c.Context(), "complete: done"))(c)
	c.equal(c.instance.Wait(berthtest.WaitFor{Task: created.ID}).Task.Status, berth.TaskStatusCompleted)
	late := &failing{TB: c.T}
	ended := make(chan bool)
	go func() {
		defer close(ended)
		berthtest.Start(late).Wait(berthtest.WaitFor{
			Task: created.ID, Until: []string{"running"}, Timeout: 50 * time.Millisecond,
		})
	}()
	<-ended
	c.contains(late.message, `"status":"completed"`)
}

func scenarios(c calls) {
	c.instance.AddScenario(berthtest.Scenario{Goal: "hold on", Steps: []berthtest.Step{{"hold": true}, {"complete": "released"}}})
	created := must(c.server.CreateTask(c.Context(), "hold on"))(c)
	c.instance.Wait(berthtest.WaitFor{Task: created.ID, Until: []string{"held"}})
	waited := make(chan error)
	go func() { waited <- created.Wait(c.Context()) }()
	// A wait that asks again and again would do so meanwhile.
	time.Sleep(300 * time.Millisecond)
	c.instance.ReleaseTask(created.ID)
	c.ok(<-waited)
	c.equal(*created.Result, "released")
	asked := must(c.instance.API().ControlRequestsListWithResponse(c.Context(), &api.ControlRequestsListParams{
		Path: berth.Ptr("/servers/*/tasks/" + created.ID), Method: berth.Ptr("GET"),
	}))(c)
	if tries := len(asked.JSON200.Requests); tries > 5 {
		c.Fatalf("it asked %d times", tries)
	}
	c.instance.ClearScenarios()
	c.equal(len(c.instance.ListScenarios()), 0)
}
