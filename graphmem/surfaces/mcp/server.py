"""The server of the Model Context Protocol, made of the official SDK."""

import functools
import importlib.metadata
import json
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import anyio
import anyio.from_thread
import anyio.lowlevel
import anyio.to_thread
import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata

from graphmem.core.model import Writer, WriterTask
from graphmem.errors import GraphmemError, InvalidInput, NotFound, WriterFailed, WriterUnavailable
from graphmem.memory import Memory
from graphmem.surfaces.mcp.bounded import LIMIT, Pages
from graphmem.surfaces.mcp.desk import Desk
from graphmem.surfaces.mcp.profiles import PROFILES
from graphmem.surfaces.mcp.prompts import PROMPTS, introduction
from graphmem.surfaces.mcp.resources import TEMPLATES, listed, read
from graphmem.surfaces.mcp.stdio import Wire
from graphmem.surfaces.mcp.tools import Tool
from graphmem.surfaces.wire import refusal_of, to_json

_Context = ServerRequestContext[Any, Any]
_Answer = TypeVar("_Answer")
_Result = TypeVar("_Result", bound=types.Result)

_ERROR_KEY = "graphmem/error"
_LOOPBACK = "127.0.0.1"
_ROOTS_PATIENCE = 2.0  # seconds
_WRITER_PATIENCE = 300.0  # seconds; its user may be asked first
_CURSOR = {"type": "string", "description": "next_cursor of the last answer, with the same arguments: its next part"}


def build_server(desk: Desk, *, profile: str = "graphmem", prefix: str = "", limit: int = LIMIT) -> Server[Any]:
    """Return a server of the tools of a profile over a memory. prefix: of their names. limit: characters of a reply."""
    offered = PROFILES[profile]
    named = {prefix + tool.name: tool for tool in offered.tools()}
    prompts = {name: prompt for name, prompt in PROMPTS.items() if not prompt.calls or prefix + prompt.calls in named}
    pages = Pages(limit)
    asking = anyio.Lock()
    are_roots_news = True

    @functools.cache
    def told() -> list[types.Tool]:
        return [_told(name, tool) for name, tool in named.items()]

    async def meet(context: _Context) -> None:
        """Ask the client for its roots, once; again where it gave the request up that it was asked with."""
        nonlocal are_roots_news
        async with asking:
            if are_roots_news and not desk.is_fixed:
                are_roots_news = False
                try:
                    if roots := await _roots(context):
                        await _in_thread(desk.move, roots)
                except anyio.get_cancelled_exc_class():
                    are_roots_news = True
                    raise

    async def roots_changed(context: _Context, params: types.NotificationParams) -> None:
        nonlocal are_roots_news
        are_roots_news = True

    async def list_tools(context: _Context, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult(tools=told())

    async def call_tool(context: _Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        if params.name not in named:
            raise MCPError(types.INVALID_PARAMS, f"there is no tool {params.name!r}; known are {', '.join(named)}")
        await meet(context)
        try:
            tool = named[params.name]
            writer = _host_writer(context) if tool.digests else None
            return await _in_thread(_called, desk, tool, params.arguments or {}, pages, writer)
        except InvalidInput as error:
            raise _invalid(error) from None
        except GraphmemError as error:
            return types.CallToolResult(
                content=[types.TextContent(text=str(error))],
                is_error=True,
                _meta={_ERROR_KEY: refusal_of(error)["error"]},
            )

    async def list_resources(
        context: _Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        await meet(context)
        found, cursor = await _asked(desk, lambda memory: listed(memory, params.cursor if params else None))
        return types.ListResourcesResult(
            resources=[types.Resource(mime_type="application/json", **each) for each in found], next_cursor=cursor
        )

    async def list_templates(
        context: _Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        templates = [types.ResourceTemplate(mime_type="application/json", **each) for each in TEMPLATES]
        return types.ListResourceTemplatesResult(resource_templates=templates)

    async def read_resource(context: _Context, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        await meet(context)
        text = await _asked(desk, lambda memory: read(memory, params.uri, limit))
        content = types.TextResourceContents(uri=params.uri, mime_type="application/json", text=text)
        return types.ReadResourceResult(contents=[content])

    async def list_prompts(context: _Context, params: types.PaginatedRequestParams | None) -> types.ListPromptsResult:
        return types.ListPromptsResult(
            prompts=[
                types.Prompt(
                    name=each.name,
                    description=each.told,
                    arguments=[types.PromptArgument(name=name, description=of) for name, of in each.arguments.items()],
                )
                for each in prompts.values()
            ]
        )

    async def get_prompt(context: _Context, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        if params.name not in prompts:
            raise MCPError(types.INVALID_PARAMS, f"there is no prompt {params.name!r}; known are {', '.join(prompts)}")
        await meet(context)
        prompt = prompts[params.name]
        text = await _asked(desk, lambda memory: prompt(memory, params.arguments or {}, prefix))
        message = types.PromptMessage(role="user", content=types.TextContent(text=text))
        return types.GetPromptResult(description=prompt.told, messages=[message])

    server: Server[Any] = Server(
        "graphmem",
        version=importlib.metadata.version("graphmem"),
        instructions=introduction(prefix + offered.search, offered.save and prefix + offered.save),
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_read_resource=read_resource,
        on_list_prompts=list_prompts,
        on_get_prompt=get_prompt,
    )
    server.add_notification_handler("notifications/roots/list_changed", types.NotificationParams, roots_changed)
    return server


def _told(name: str, tool: Tool) -> types.Tool:
    arguments = tool.arguments()
    answer = tool.answer()
    return types.Tool(
        name=name,
        title=tool.title,
        description=tool.told,
        input_schema={**arguments, "properties": {**arguments["properties"], "cursor": _CURSOR}},
        output_schema={
            "type": "object",
            "properties": {
                "result": {each: of for each, of in answer.items() if each != "$defs"},
                "next_cursor": {"type": "string", "description": "there is more: call again with it as cursor"},
                "goes_on": {"type": "array", "items": {"type": "string"}, "description": "what was cut, and goes on"},
                "reminder": {"type": "string", "description": "beside the answer: what binds, what nobody saved yet"},
            },
            "required": ["result"],
            **({"$defs": answer["$defs"]} if "$defs" in answer else {}),
        },
        annotations=types.ToolAnnotations(
            read_only_hint=tool.reads,
            destructive_hint=tool.destroys,
            idempotent_hint=tool.reads or tool.repeats,
            open_world_hint=False,
        ),
    )


def _called(
    desk: Desk, tool: Tool, given: Mapping[str, Any], pages: Pages, writer: Writer | None
) -> types.CallToolResult:
    """Run a tool and return its reply, the first part of a long one."""
    arguments = {name: value for name, value in given.items() if name != "cursor"}
    asked = (tool.name, arguments)
    if given.get("cursor") is not None:
        page = pages.next(asked, given["cursor"])
    else:
        with desk.with_writer(writer) as memory:
            answer = tool(memory, arguments)
        page = pages.first(asked, json.loads(to_json(answer)))
    reply = {"result": page.value}
    if page.cursor:
        reply["next_cursor"] = page.cursor
    if page.cut:
        reply["goes_on"] = list(page.cut)
    reminder = desk.reminder()
    if reminder:
        reply["reminder"] = reminder
    texts = [to_json(reply)] if tool.words is None else [tool.words(page.value), *([reminder] if reminder else [])]
    return types.CallToolResult(content=[types.TextContent(text=text) for text in texts], structured_content=reply)


def _invalid(error: GraphmemError) -> MCPError:
    return MCPError(types.INVALID_PARAMS, str(error), refusal_of(error)["error"])


async def _asked(desk: Desk, read: Callable[[Memory], _Answer]) -> _Answer:
    """Return what reading the memory returns, its refusals as errors of the protocol."""

    def answered() -> _Answer:
        with desk.using() as memory:
            return read(memory)

    try:
        return await _in_thread(answered)
    except (InvalidInput, NotFound) as error:
        raise _invalid(error) from None
    except GraphmemError as error:
        raise MCPError(types.INTERNAL_ERROR, str(error), refusal_of(error)["error"]) from None


async def _in_thread(work: Callable[..., _Answer], *arguments: Any) -> _Answer:
    return await anyio.to_thread.run_sync(functools.partial(work, *arguments))


async def _roots(context: _Context) -> list[str]:
    """Return the roots of a client that offers them, none where it does not answer."""
    offered = context.session.client_capabilities
    if offered is None or offered.roots is None:
        return []
    try:
        found = await _ask_client(context, types.ListRootsRequest(), types.ListRootsResult, _ROOTS_PATIENCE)
    except (MCPError, ValueError):
        return []
    return [str(root.uri) for root in found.roots]


def _host_writer(context: _Context) -> Writer | None:
    """Return a writer that asks the model of the client, by sampling; None where the client does not offer it.

    The client shows its user what is asked, and may refuse.
    """
    offered = context.session.client_capabilities
    if offered is None or offered.sampling is None or not context.session.can_send_request:
        return None

    def write(task: WriterTask, /) -> str:
        request = types.CreateMessageRequest(
            params=types.CreateMessageRequestParams(
                messages=[types.SamplingMessage(role="user", content=types.TextContent(text=task.text))],
                system_prompt=task.instructions,
                max_tokens=task.limit,  # a token is a byte at least
            )
        )
        try:
            reply = anyio.from_thread.run(_ask_client, context, request, types.CreateMessageResult, _WRITER_PATIENCE)
        except (MCPError, ValueError) as error:
            raise WriterUnavailable(f"the client's model gave no answer: {error}") from None
        if not isinstance(reply.content, types.TextContent):
            raise WriterFailed(f"the client's model answered with {reply.content.type}, and no text")
        return reply.content.text

    return write


async def _ask_client(
    context: _Context, request: types.ServerRequest, answer: type[_Result], patience: float
) -> _Result:
    """Ask the client something on the way of the request that it waits for."""
    way = ServerMessageMetadata(related_request_id=context.request_id)
    return await context.session.send_request(request, answer, patience, way)


def instruct(server: Server[Any], more: str) -> None:
    """Add something to what a model is told at the beginning."""
    server.instructions = "\n\n".join(text for text in (server.instructions, more) if text)


def run_stdio(server: Server[Any], wire: Wire) -> None:
    """Serve the one client of a wire, until it goes."""
    anyio.run(_run_stdio, server, wire)


async def _run_stdio(server: Server[Any], wire: Wire) -> None:
    with anyio.CancelScope() as scope:
        token = anyio.lowlevel.current_token()
        wire.watch(lambda: anyio.from_thread.run_sync(scope.cancel, token=token))
        async with stdio_server(wire, wire) as (incoming, outgoing):  # type: ignore[arg-type]
            await server.run(incoming, outgoing, server.create_initialization_options())


def run_http(server: Server[Any], port: int, ready: Callable[[str], object]) -> None:
    """Serve streamable HTTP at /mcp on the loopback interface; ready: is told the address.

    The name of a stranger's page may lead to this machine (DNS rebinding), so the gate refuses requests that name
    another host or come from another page. The SDK is not to look at that as well: it takes names in small letters
    alone.
    """
    from mcp.server.transport_security import TransportSecuritySettings

    from graphmem.surfaces.http import gate
    from graphmem.surfaces.http import server as serving

    with serving.listening(_LOOPBACK, port) as listener:
        free = listener.getsockname()[1]
        app = server.streamable_http_app(
            streamable_http_path="/mcp",
            host=_LOOPBACK,
            transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
        )
        running = serving.Server(gate.Gate(app, port=free))
        with running.stopped_by_signals():
            ready(f"http://{_LOOPBACK}:{free}/mcp")
            running.run([listener])
