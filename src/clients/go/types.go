package berth

import "github.com/owner/berth-go/api"

// Ptr returns a pointer to a value, for the optional fields of a request.
func Ptr[T any](value T) *T { return &value }

// What requests take and responses have, as the API describes it.
type (
	OwnAccount          = api.OwnAccount
	OwnKey              = api.OwnKey
	ServerCreate        = api.ServerCreate
	ServerUpdate        = api.ServerUpdate
	ProjectCreate       = api.ProjectCreate
	ProjectUpdate       = api.ProjectUpdate
	ProjectInit         = api.ProjectInit
	ProjectSource       = api.ProjectSource
	ProjectTemplate     = api.ProjectTemplate
	Deployment          = api.Deployment
	DeploymentCreate    = api.DeploymentCreate
	PublishedDeployment = api.PublishedDeployment
	APIKey              = api.APIKey
	APIKeyCreate        = api.APIKeyCreate
	APIKeyScope         = api.APIKeyScope
	APIKeyScopeUpdate   = api.APIKeyScopeUpdate
	CreatedAPIKey       = api.CreatedAPIKey
	Webhook             = api.Webhook
	WebhookCreate       = api.WebhookCreate
	CreatedWebhook      = api.CreatedWebhook
	TaskEvent           = api.TaskEvent
	LogLine             = api.LogLine
	RefusedConnection   = api.RefusedConnection
)

// Values of fields. A later berth may have others.
type (
	Tier            = api.Tier
	Region          = api.Region
	ServerStatus    = api.ServerStatus
	Visibility      = api.Visibility
	Lifecycle       = api.Lifecycle
	InitPhase       = api.InitPhase
	RuntimeStatus   = api.RuntimeStatus
	TaskStatus      = api.TaskStatus
	BuildStatus     = api.BuildStatus
	ExecutionStatus = api.ExecutionStatus
	EventName       = api.EventName
)

// The sizes of a server.
const (
	TierSmall  = api.TierSmall
	TierMedium = api.TierMedium
	TierLarge  = api.TierLarge
)

// What a server does.
const (
	ServerStatusRunning  = api.ServerStatusRunning
	ServerStatusSleeping = api.ServerStatusSleeping
	ServerStatusBuilding = api.ServerStatusBuilding
)

// Whether a project has a URL.
const (
	VisibilityPublic  = api.VisibilityPublic
	VisibilityPrivate = api.VisibilityPrivate
)

// Whether a project may be cleaned up.
const (
	LifecyclePersistent = api.LifecyclePersistent
	LifecycleEphemeral  = api.LifecycleEphemeral
)

// Where the bring-up of a project is.
const (
	InitPhaseFetch           = api.InitPhaseFetch
	InitPhaseInstall         = api.InitPhaseInstall
	InitPhaseBuild           = api.InitPhaseBuild
	InitPhaseAwaitingSecrets = api.InitPhaseAwaitingSecrets
	InitPhaseStart           = api.InitPhaseStart
	InitPhaseHealthcheck     = api.InitPhaseHealthcheck
	InitPhaseReady           = api.InitPhaseReady
	InitPhaseFailed          = api.InitPhaseFailed
)

// What a task does, or how it ended.
const (
	TaskStatusRunning       = api.TaskStatusRunning
	TaskStatusAwaitingInput = api.TaskStatusAwaitingInput
	TaskStatusCompleted     = api.TaskStatusCompleted
	TaskStatusFailed        = api.TaskStatusFailed
	TaskStatusCancelled     = api.TaskStatusCancelled
)

// What a build does. One that failed is completed, without a URL.
const (
	BuildStatusQueued    = api.BuildStatusQueued
	BuildStatusRunning   = api.BuildStatusRunning
	BuildStatusCompleted = api.BuildStatusCompleted
)

// What an execution does, or how it ended.
const (
	ExecutionStatusRunning = api.ExecutionStatusRunning
	ExecutionStatusExited  = api.ExecutionStatusExited
	ExecutionStatusEnded   = api.ExecutionStatusEnded
)
