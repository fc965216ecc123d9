package berth

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/owner/berth-go/api"
)

// Client calls an instance of berth with one key. It is for any number of goroutines.
type Client struct {
	transport *transport
	api       *api.ClientWithResponses
}

// Option is a choice for [New].
type Option func(*options)

type options struct {
	baseURL    string
	apiKey     string
	retries    int
	httpClient *http.Client
	logger     *slog.Logger
}

// WithBaseURL sets the address of the API; the variable BERTH_BASE_URL by default.
func WithBaseURL(address string) Option { return func(o *options) { o.baseURL = address } }

// WithAPIKey sets the key; the variable BERTH_API_KEY by default.
func WithAPIKey(key string) Option { return func(o *options) { o.apiKey = key } }

// WithRetries sets how often a request is tried again where that cannot do anything twice; 2 by default. A fault of the control
// API applies to each try, so a test that counts requests sets 0.
func WithRetries(retries int) Option { return func(o *options) { o.retries = max(0, retries) } }

// WithHTTPClient sets what sends the requests; http.DefaultClient by default. Its CheckRedirect is not used, because a
// redirect to another origin would carry the key there.
func WithHTTPClient(client *http.Client) Option { return func(o *options) { o.httpClient = client } }

// WithLogger sets where to warn that berth has another version than this module; slog.Default() by default.
func WithLogger(logger *slog.Logger) Option { return func(o *options) { o.logger = logger } }

// New makes a client. If the address or the key is missing or invalid, each call returns an error that says so.
func New(choices ...Option) *Client {
	o := options{
		baseURL: os.Getenv("BERTH_BASE_URL"), apiKey: os.Getenv("BERTH_API_KEY"),
		retries: 2, httpClient: http.DefaultClient, logger: slog.Default(),
	}
	for _, choose := range choices {
		choose(&o)
	}
	t := &transport{credential: o.apiKey, retries: o.retries, logger: o.logger, base: &url.URL{}}
	httpClient := *o.httpClient
	httpClient.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	t.client = &httpClient
	base, err := url.Parse(strings.TrimRight(o.baseURL, "/"))
	switch {
	case o.baseURL == "":
		t.err = missing("BERTH_BASE_URL")
	case o.apiKey == "":
		t.err = missing("BERTH_API_KEY")
	case err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https":
		t.err = errors.New("berth: the base URL is not an http or https URL")
	default:
		t.base = base
	}
	// The server of the generated layer is a constant where there is none: it is never asked.
	server := t.base.String()
	if t.err != nil {
		server = "http://localhost"
	}
	generated, err := api.NewClientWithResponses(server, api.WithHTTPClient(t))
	if t.err == nil {
		t.err = err
	}
	return &Client{transport: t, api: generated}
}

func missing(variable string) error {
	return errors.New("berth: " + variable + ` is not set: run the program by "berth run -- …", take the variables of a ` +
		`running instance by eval "$(berth env)", or use WithBaseURL and WithAPIKey`)
}

// BaseURL returns the address of the API, without a slash at the end.
func (c *Client) BaseURL() string { return c.transport.base.String() }

// API returns the generated layer: every operation, also those without a method here, with the client's credential and retries.
// Its names follow the OpenAPI document and may change with it. A failure that has a response is no error there: see
// StatusCode of the response.
func (c *Client) API() *api.ClientWithResponses { return c.api }

// GetAccount returns the account that the key belongs to: its plan, its budget and what it has used of it, and the key itself.
func (c *Client) GetAccount(ctx context.Context) (*OwnAccount, error) {
	var account OwnAccount
	if err := c.transport.json(ctx, http.MethodGet, "/account", nil, &account); err != nil {
		return nil, err
	}
	return &account, nil
}

// CreateServer provisions a server, which runs when this returns.
func (c *Client) CreateServer(ctx context.Context, create ServerCreate) (*Server, error) {
	var created api.CreatedServer
	if err := c.transport.json(ctx, http.MethodPost, "/servers", create, &created); err != nil {
		return nil, err
	}
	return c.GetServer(ctx, created.ID)
}

// ListServers lists the servers that the key reaches, the newest first.
func (c *Client) ListServers(ctx context.Context) ([]*Server, error) {
	var list api.ServerList
	if err := c.transport.json(ctx, http.MethodGet, "/servers", nil, &list); err != nil {
		return nil, err
	}
	return handles(list.Servers, func(data api.Server) *Server { return &Server{Server: data, transport: c.transport} }), nil
}

// GetServer returns a server. It fails with [ErrNotFound] if the key reaches none with this id.
func (c *Client) GetServer(ctx context.Context, id string) (*Server, error) {
	server := &Server{Server: api.Server{ID: id}, transport: c.transport}
	if err := server.Refresh(ctx); err != nil {
		return nil, err
	}
	return server, nil
}

// ListTasks lists the tasks of all servers that the key reaches, the newest first.
func (c *Client) ListTasks(ctx context.Context) ([]*Task, error) {
	return listTasks(ctx, c.transport, "/tasks")
}

// ListBuilds lists the builds of all servers that the key reaches, the newest first.
func (c *Client) ListBuilds(ctx context.Context) ([]*Build, error) {
	return listBuilds(ctx, c.transport, "/builds")
}

// ListProjects lists the projects of all servers that the key reaches, the newest first.
func (c *Client) ListProjects(ctx context.Context) ([]*Project, error) {
	return listProjects(ctx, c.transport, "/projects")
}

// GetProject returns a project. It fails with [ErrNotFound] if the key reaches none with this id.
func (c *Client) GetProject(ctx context.Context, id string) (*Project, error) {
	project := &Project{Project: api.Project{ID: id}, transport: c.transport}
	if err := project.Refresh(ctx); err != nil {
		return nil, err
	}
	return project, nil
}

// ListTemplates lists the templates that projects start from.
func (c *Client) ListTemplates(ctx context.Context) ([]ProjectTemplate, error) {
	var list api.ProjectTemplateList
	err := c.transport.json(ctx, http.MethodGet, "/templates", nil, &list)
	return list.Templates, err
}

// ListKeys lists the keys of the account, the newest first, without their plaintext.
func (c *Client) ListKeys(ctx context.Context) ([]APIKey, error) {
	var list api.APIKeyList
	err := c.transport.json(ctx, http.MethodGet, "/keys", nil, &list)
	return list.Keys, err
}

// CreateKey creates a key. The result has its plaintext.
func (c *Client) CreateKey(ctx context.Context, create APIKeyCreate) (*CreatedAPIKey, error) {
	var created CreatedAPIKey
	if err := c.transport.json(ctx, http.MethodPost, "/keys", create, &created); err != nil {
		return nil, err
	}
	return &created, nil
}

// UpdateKey replaces what a key reaches.
func (c *Client) UpdateKey(ctx context.Context, id string, scope APIKeyScopeUpdate) (*APIKeyScope, error) {
	var updated APIKeyScope
	if err := c.transport.json(ctx, http.MethodPatch, "/keys/"+url.PathEscape(id), scope, &updated); err != nil {
		return nil, err
	}
	return &updated, nil
}

// DeleteKey deletes a key, which ends at once.
func (c *Client) DeleteKey(ctx context.Context, id string) error {
	return c.transport.json(ctx, http.MethodDelete, "/keys/"+url.PathEscape(id), nil, nil)
}

// handles makes the handles of a list.
func handles[Data, Handle any](list []Data, handle func(Data) Handle) []Handle {
	made := make([]Handle, len(list))
	for i, data := range list {
		made[i] = handle(data)
	}
	return made
}
