"""labkit: an agent loop that is read in an evening, from a stateless model to `todo_write`.

Read the rooms upwards: messages, model, tools, workspace, then permissions, hooks, todos, filetools, then loop, then
profiles. Importing this needs pydantic only; it reads neither the environment nor the disk.
"""

from labkit.clients.scripted import ScriptedModelClient, call, reply, say
from labkit.errors import (
    LabkitError,
    ModelError,
    PairingError,
    ScriptError,
    SettingsError,
    ToolDefinitionError,
    WorkspaceError,
)
from labkit.hooks import HookAnswer, Hooks
from labkit.loop import AgentRunner, Round, RunResult, Settled, ToolRoundObserver
from labkit.messages import (
    AssistantMessage,
    Decision,
    Message,
    SystemMessage,
    ToolCall,
    ToolMessage,
    ToolResult,
    UserMessage,
)
from labkit.model import MessageView, ModelClient, ModelRequest, check_pairing
from labkit.permissions import Approver, Ask, AuditRecord, PermissionPolicy, Rule
from labkit.profiles import P01, P02, P03, P04, P05, Agent, Profile, build_agent
from labkit.todos import TodoItem, TodoTracker
from labkit.tools import PreparedCall, ToolDefinition, ToolInput, ToolRegistry
from labkit.workspace import Workspace

__version__ = "0.1.0"

__all__ = [
    "P01",
    "P02",
    "P03",
    "P04",
    "P05",
    "Agent",
    "AgentRunner",
    "Approver",
    "Ask",
    "AssistantMessage",
    "AuditRecord",
    "Decision",
    "HookAnswer",
    "Hooks",
    "LabkitError",
    "Message",
    "MessageView",
    "ModelClient",
    "ModelError",
    "ModelRequest",
    "PairingError",
    "PermissionPolicy",
    "PreparedCall",
    "Profile",
    "Round",
    "Rule",
    "RunResult",
    "ScriptError",
    "ScriptedModelClient",
    "SettingsError",
    "Settled",
    "SystemMessage",
    "TodoItem",
    "TodoTracker",
    "ToolCall",
    "ToolDefinition",
    "ToolDefinitionError",
    "ToolInput",
    "ToolMessage",
    "ToolRegistry",
    "ToolResult",
    "ToolRoundObserver",
    "UserMessage",
    "Workspace",
    "WorkspaceError",
    "build_agent",
    "call",
    "check_pairing",
    "reply",
    "say",
]
