"""A client of berth: ``Berth`` is where to begin, ``AsyncBerth`` for asyncio.

Types and the low level, ``berth.api``, are generated from the OpenAPI document; the rest is written by hand.
"""

from . import webhooks
from ._async.builds import AsyncBuild
from ._async.client import AsyncBerth
from ._async.execution import AsyncExecution
from ._async.projects import AsyncProject
from ._async.server import AsyncServer
from ._async.tasks import AsyncTask
from ._models import (
    ApiKey,
    BuildStep,
    Change,
    CreatedApiKey,
    CreatedWebhook,
    Deployment,
    ExecResult,
    LogLine,
    Output,
    OwnAccount,
    OwnKey,
    PushResult,
    RefusedConnection,
    TaskEvent,
    Template,
    Webhook,
)
from ._sync.builds import Build
from ._sync.client import Berth
from ._sync.execution import Execution
from ._sync.projects import Project
from ._sync.server import Server
from ._sync.tasks import Task
from ._version import VERSION
from .errors import (
    AuthenticationError,
    BadRequestError,
    BerthError,
    BerthVersionWarning,
    BudgetExceededError,
    ComputeBackendError,
    ConnectionError,
    ForbiddenError,
    InternalError,
    NotFoundError,
    PayloadTooLargeError,
    PlanLimitError,
    ProjectFailedError,
    TooManyRequestsError,
    UnavailableError,
    WebhookVerificationError,
)

__version__ = VERSION

__all__ = [
    "ApiKey",
    "AsyncBerth",
    "AsyncBuild",
    "AsyncExecution",
    "AsyncProject",
    "AsyncServer",
    "AsyncTask",
    "AuthenticationError",
    "BadRequestError",
    "Berth",
    "BerthError",
    "BerthVersionWarning",
    "BudgetExceededError",
    "Build",
    "BuildStep",
    "Change",
    "ComputeBackendError",
    "ConnectionError",
    "CreatedApiKey",
    "CreatedWebhook",
    "Deployment",
    "ExecResult",
    "Execution",
    "ForbiddenError",
    "InternalError",
    "LogLine",
    "NotFoundError",
    "Output",
    "OwnAccount",
    "OwnKey",
    "PayloadTooLargeError",
    "PlanLimitError",
    "Project",
    "ProjectFailedError",
    "PushResult",
    "RefusedConnection",
    "Server",
    "Task",
    "TaskEvent",
    "Template",
    "TooManyRequestsError",
    "UnavailableError",
    "Webhook",
    "WebhookVerificationError",
    "webhooks",
]
