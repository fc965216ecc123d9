package berth

import (
	"context"
	"net/http"
	"net/url"

	"github.com/owner/berth-go/api"
)

// Server is a server: it runs commands, keeps files, and has tasks, builds and projects.
type Server struct {
	api.Server
	transport *transport
}

func (s *Server) path() string { return "/servers/" + url.PathEscape(s.ID) }

// Refresh reads the server anew.
func (s *Server) Refresh(ctx context.Context) error {
	return s.take(ctx, http.MethodGet, nil)
}

// Update changes its label or its region.
func (s *Server) Update(ctx context.Context, changes ServerUpdate) error {
	return s.take(ctx, http.MethodPatch, changes)
}

// Start starts the server if it sleeps.
func (s *Server) Start(ctx context.Context) error { return s.act(ctx, api.ServerActionStart) }

// Stop ends all processes of the server. Its files stay, and the next command wakes it.
func (s *Server) Stop(ctx context.Context) error { return s.act(ctx, api.ServerActionStop) }

// Restart stops the server and starts it.
func (s *Server) Restart(ctx context.Context) error { return s.act(ctx, api.ServerActionRestart) }

// Delete deletes the server with everything on it.
func (s *Server) Delete(ctx context.Context) error {
	return s.transport.json(ctx, http.MethodDelete, s.path(), nil, nil)
}

// SetSecrets sets variables of all commands and apps of the server, and restarts its apps. A nil value removes a variable.
func (s *Server) SetSecrets(ctx context.Context, secrets map[string]*string) error {
	body := map[string]any{"server_id": s.ID, "secrets": secrets}
	return s.transport.json(ctx, http.MethodPut, "/secrets", body, nil)
}

// ListDeployments lists what is published of the workspace.
func (s *Server) ListDeployments(ctx context.Context) ([]Deployment, error) {
	var list api.DeploymentList
	err := s.transport.json(ctx, http.MethodGet, s.path()+"/deployments", nil, &list)
	return list.Deployments, err
}

// CreateDeployment publishes the workspace, or a directory of it, and returns when its URL responds. An app that does not come
// up is [ErrComputeBackend], with the end of its log.
func (s *Server) CreateDeployment(ctx context.Context, create DeploymentCreate) (*PublishedDeployment, error) {
	var published PublishedDeployment
	if err := s.transport.json(ctx, http.MethodPost, s.path()+"/deployments", create, &published); err != nil {
		return nil, err
	}
	return &published, nil
}

// DeleteDeployment takes the deployment back.
func (s *Server) DeleteDeployment(ctx context.Context) error {
	return s.transport.json(ctx, http.MethodDelete, s.path()+"/deployments", nil, nil)
}

func (s *Server) act(ctx context.Context, action api.ServerAction) error {
	body := api.ServerActionRequest{Action: action}
	if err := s.transport.json(ctx, http.MethodPost, s.path()+"/actions", body, nil); err != nil {
		return err
	}
	return s.Refresh(ctx)
}

func (s *Server) take(ctx context.Context, method string, body any) error {
	var envelope api.ServerEnvelope
	if err := s.transport.json(ctx, method, s.path(), body, &envelope); err != nil {
		return err
	}
	s.Server = envelope.Server
	return nil
}
