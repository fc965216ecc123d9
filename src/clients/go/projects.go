package berth

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"mime/multipart"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/owner/berth-go/api"
)

// partSize is how many bytes of files one request of a push sends, before they are packed.
const partSize = 24 << 20

// Project is code on a server, and its app behind a URL.
type Project struct {
	api.Project
	transport *transport
}

// ProjectOption says where the code of a project comes from, and whether to wait for its app.
type ProjectOption interface{ sendOption }

// FromDirectory takes the code of a new project from a local directory. .git and node_modules are not sent.
func FromDirectory(directory string) ProjectOption { return directoryOption(directory) }

// WithoutWait returns without waiting until the app is ready.
func WithoutWait() ProjectOption { return withoutWait{} }

// sendOption is an option of a method that sends a directory.
type sendOption interface{ apply(*sending) }

// sending is how a directory is sent.
type sending struct {
	directory string
	filter    func(path string) bool
	noWait    bool
}

type directoryOption string

func (d directoryOption) apply(o *sending) { o.directory = string(d) }

type withoutWait struct{}

func (withoutWait) apply(o *sending) { o.noWait = true }

// PushResult is what a push did.
type PushResult struct {
	// Written and Removed count files.
	Written, Removed int
	// Began is the phase that began, such as install; empty if the app goes on.
	Began string
}

// CreateProject creates a project from a local directory, a template, a repository or nothing, and waits until its app is ready,
// or its bring-up waits for variables (InitPhaseAwaitingSecrets). If the bring-up fails, the error is a [*ProjectFailedError],
// and the project, which stays, is returned with it.
func (s *Server) CreateProject(ctx context.Context, create ProjectCreate, options ...ProjectOption) (*Project, error) {
	var o sending
	for _, option := range options {
		option.apply(&o)
	}
	path := s.path() + "/projects"
	project := &Project{transport: s.transport}
	var err error
	if o.directory == "" {
		err = s.transport.json(ctx, http.MethodPost, path, create, &project.Project)
	} else {
		err = s.createFromDirectory(ctx, path, create, o, project)
	}
	if err != nil {
		return nil, err
	}
	if o.noWait {
		return project, nil
	}
	return project, project.Wait(ctx)
}

func (s *Server) createFromDirectory(ctx context.Context, path string, create ProjectCreate, o sending, project *Project) error {
	entries, err := entriesOf(o.directory, o.filter)
	if err != nil {
		return err
	}
	encoded, err := json.Marshal(create)
	if err != nil {
		return err
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(encoded, &fields); err != nil {
		return err
	}
	return sendForm(ctx, s.transport, path, fields, o.directory, entries, nil, &project.Project)
}

// ListProjects lists the projects of the server, the newest first.
func (s *Server) ListProjects(ctx context.Context) ([]*Project, error) {
	return listProjects(ctx, s.transport, s.path()+"/projects")
}

func listProjects(ctx context.Context, t *transport, path string) ([]*Project, error) {
	var list api.ProjectList
	if err := t.json(ctx, http.MethodGet, path, nil, &list); err != nil {
		return nil, err
	}
	return handles(list.Projects, func(data api.Project) *Project { return &Project{Project: data, transport: t} }), nil
}

func (p *Project) path() string { return "/projects/" + url.PathEscape(p.ID) }

// Refresh reads the project anew.
func (p *Project) Refresh(ctx context.Context) error {
	return p.take(ctx, call{method: http.MethodGet, path: p.path()})
}

// Update changes its name, description, visibility or lifecycle.
func (p *Project) Update(ctx context.Context, changes ProjectUpdate) error {
	return p.change(ctx, http.MethodPatch, p.path(), changes)
}

// Delete deletes the project with its files.
func (p *Project) Delete(ctx context.Context) error {
	return p.transport.json(ctx, http.MethodDelete, p.path(), nil, nil)
}

// Cleanup removes an ephemeral project.
func (p *Project) Cleanup(ctx context.Context) error {
	return p.transport.json(ctx, http.MethodPost, p.path()+"/cleanup", nil, nil)
}

// Init begins a new bring-up, or continues one that waits for variables.
func (p *Project) Init(ctx context.Context, init ProjectInit) error {
	return p.change(ctx, http.MethodPost, p.path()+"/init", init)
}

// Restart starts its app again as it was built.
func (p *Project) Restart(ctx context.Context) error {
	return p.change(ctx, http.MethodPost, p.path()+"/restart", nil)
}

// SetSecrets sets variables of its app. A bring-up that waits for them continues; an app that runs is restarted. A nil value
// removes a variable.
func (p *Project) SetSecrets(ctx context.Context, secrets map[string]*string) error {
	return p.transport.json(ctx, http.MethodPut, p.path()+"/secrets", map[string]any{"secrets": secrets}, nil)
}

// Wait waits until its app is ready, or its bring-up waits for variables (InitPhaseAwaitingSecrets). If the bring-up failed, the
// error is a [*ProjectFailedError] with the end of the log.
func (p *Project) Wait(ctx context.Context) error {
	err := p.transport.settle(ctx, p.ID, func() (bool, error) {
		err := p.Refresh(ctx)
		settled := []InitPhase{InitPhaseReady, InitPhaseFailed, InitPhaseAwaitingSecrets}
		return p.InitPhase == nil || slices.Contains(settled, *p.InitPhase), err
	})
	if err != nil || p.InitPhase == nil || *p.InitPhase != InitPhaseFailed {
		return err
	}
	failed := &ProjectFailedError{ProjectID: p.ID, Name: p.Name}
	if p.InitPhases != nil {
		if phases := *p.InitPhases; len(phases) >= 2 {
			failed.Phase = string(phases[len(phases)-2].Phase)
		}
	}
	var lines api.LogLines
	if err := p.transport.jsonQuery(ctx, http.MethodGet, p.path()+"/logs", url.Values{"tail": {"20"}}, nil, &lines); err != nil {
		return err
	}
	for _, line := range lines.Logs {
		failed.Log += line.Text + "\n"
	}
	failed.Log = strings.TrimRight(failed.Log, "\n")
	return failed
}

// Logs reads the log of its bring-ups and its app, and follows it until the context ends.
func (p *Project) Logs(ctx context.Context) iter.Seq2[LogLine, error] {
	return logs(ctx, p.transport, p.path()+"/logs", nil)
}

// Push makes its code what a local directory has: it sends the files that differ, removes those that are gone, and installs,
// builds and restarts as far as necessary. It waits until the new version is ready. If that does not come up, the error is a
// [*ProjectFailedError], and the version before goes on.
func (p *Project) Push(ctx context.Context, directory string, options ...ProjectOption) (*PushResult, error) {
	var o sending
	for _, option := range options {
		option.apply(&o)
	}
	entries, err := entriesOf(directory, o.filter)
	if err != nil {
		return nil, err
	}
	description, err := describe(directory, entries)
	if err != nil {
		return nil, err
	}
	var pushed api.PushResult
	if err := p.transport.json(ctx, http.MethodPost, p.path()+"/push", description, &pushed); err != nil {
		return nil, err
	}
	missing := map[string]bool{}
	for _, path := range pushed.Missing {
		missing[path] = true
	}
	for _, part := range partsOf(slices.DeleteFunc(entries, func(e entry) bool { return !missing[e.path] })) {
		fields := map[string]any{"files": description.Files, "links": description.Links}
		if len(part.list) > 0 {
			fields["pieces"] = part.list
		}
		pushed = api.PushResult{}
		err := sendForm(ctx, p.transport, p.path()+"/push", fields, directory, part.entries, part.pieces, &pushed)
		if err != nil {
			return nil, err
		}
	}
	p.Project = pushed.Project
	result := &PushResult{Written: int(pushed.Written), Removed: int(pushed.Removed)}
	if pushed.Began != nil {
		result.Began = string(*pushed.Began)
	}
	if o.noWait || result.Began == "" {
		return result, nil
	}
	return result, p.Wait(ctx)
}

func (p *Project) change(ctx context.Context, method, path string, body any) error {
	var data api.Project
	if err := p.transport.json(ctx, method, path, body, &data); err != nil {
		return err
	}
	p.Project = data
	return nil
}

func (p *Project) take(ctx context.Context, c call) error {
	var data api.Project
	if err := p.transport.decode(ctx, c, &data); err != nil {
		return err
	}
	p.Project = data
	return nil
}

// sendForm sends fields and an archive as a form, whose bytes are made once: a repetition sends the same. Fields that are
// strings are sent as they are, all others as JSON.
func sendForm[Field any](ctx context.Context, t *transport, path string, fields map[string]Field,
	directory string, entries []entry, pieces map[string]piece, out any,
) error {
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	for name, field := range fields {
		encoded, err := json.Marshal(field)
		if err != nil {
			return err
		}
		var text string
		if json.Unmarshal(encoded, &text) != nil {
			text = string(encoded)
		}
		if err := form.WriteField(name, text); err != nil {
			return err
		}
	}
	archive, err := form.CreateFormFile("archive", "code.tar.gz")
	if err != nil {
		return err
	}
	if err := pack(archive, directory, entries, pieces); err != nil {
		return err
	}
	if err := form.Close(); err != nil {
		return err
	}
	header := http.Header{"Content-Type": {form.FormDataContentType()}}
	return t.decode(ctx, call{method: http.MethodPost, path: path, header: header, body: bytes.NewReader(body.Bytes())}, out)
}

// pushDescription describes the files and links of a directory.
type pushDescription struct {
	Files []api.PushedFile `json:"files"`
	Links []api.PushedLink `json:"links"`
}

func describe(directory string, entries []entry) (*pushDescription, error) {
	description := &pushDescription{Files: []api.PushedFile{}, Links: []api.PushedLink{}}
	for _, e := range entries {
		if e.target != "" {
			description.Links = append(description.Links, api.PushedLink{Path: e.path, Target: e.target})
		}
		if !e.isFile() {
			continue
		}
		sum, err := sumOf(filepath.Join(directory, filepath.FromSlash(e.path)))
		if err != nil {
			return nil, fmt.Errorf("berth: %w", err)
		}
		description.Files = append(description.Files, api.PushedFile{Path: e.path, Sha256: sum, Executable: Ptr(e.isExecutable())})
	}
	return description, nil
}

func sumOf(name string) (string, error) {
	file, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer file.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, file); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// part is what one request of a push sends.
type part struct {
	entries []entry
	pieces  map[string]piece
	list    []api.PushedPiece
}

// partsOf divides entries into parts that fit into a request. A file that is too large for one becomes pieces.
func partsOf(entries []entry) []*part {
	var parts []*part
	room := int64(0)
	for _, e := range entries {
		size := int64(0)
		if e.isFile() {
			size = e.info.Size()
		}
		for offset := int64(0); ; {
			if room == 0 || offset == 0 && size > room && size <= partSize {
				parts = append(parts, &part{pieces: map[string]piece{}})
				room = partSize
			}
			last := parts[len(parts)-1]
			last.entries = append(last.entries, e)
			cut := piece{offset: offset, size: min(size-offset, room)}
			cut.more = offset+cut.size < size
			if offset > 0 || cut.more {
				last.pieces[e.path] = cut
				last.list = append(last.list, api.PushedPiece{Path: e.path, Offset: offset, More: Ptr(cut.more)})
			}
			offset += cut.size
			room -= cut.size
			if !cut.more {
				break
			}
		}
	}
	return parts
}
