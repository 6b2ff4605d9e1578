"""Drives a CLI through the official Python SDK and checks that it speaks the protocol.

Usage: sdk_checks.py PATH_OF_THE_CLI WORKING_FOLDER

The CLI behind the path is the scripted one or the real one with a scripted model; both know the same prompts (see
sdk.rs), so that what passes with one and fails with the other is a difference between them. Each check prints one line
when it has passed; the first that fails ends the program.
"""

import asyncio
import sys
import uuid

from claude_agent_sdk import (
    AssistantMessage,
    ClaudeAgentOptions,
    ClaudeSDKClient,
    PermissionResultAllow,
    PermissionResultDeny,
    ResultMessage,
    StreamEvent,
    SystemMessage,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    UserMessage,
    query,
)

CLI, FOLDER = sys.argv[1:3]
# Far longer than any check takes; a check that hangs fails here.
PATIENCE = 60


def options(**more):
    return ClaudeAgentOptions(cli_path=CLI, cwd=FOLDER, **more)


def of_type(messages, kind):
    return [message for message in messages if isinstance(message, kind)]


def blocks(messages, kind):
    return [
        block
        for message in messages
        if isinstance(message, (AssistantMessage, UserMessage))
        and isinstance(message.content, list)
        for block in message.content
        if isinstance(block, kind)
    ]


def text_of(messages):
    return "".join(block.text for block in blocks(of_type(messages, AssistantMessage), TextBlock))


def deltas(messages, kind, field):
    return [
        message.event["delta"][field]
        for message in of_type(messages, StreamEvent)
        if message.event.get("delta", {}).get("type") == kind
    ]


def init_of(messages):
    return [m.data for m in of_type(messages, SystemMessage) if m.subtype == "init"][0]


def result_of(messages):
    (result,) = of_type(messages, ResultMessage)
    return result


def same(found, expected):
    assert found == expected, f"expected {expected!r}, found {found!r}"


async def ask(client, prompt):
    await client.query(prompt)
    return [message async for message in client.receive_response()]


async def check_query():
    messages = [m async for m in query(prompt="say hello", options=options())]
    result = result_of(messages)
    same(result.subtype, "success")
    same(result.is_error, False)
    same(result.result, "Hello from the script.")
    same(text_of(messages), "Hello from the script.")
    same(init_of(messages)["session_id"], result.session_id)
    assert not of_type(messages, StreamEvent), "stream events only where they are asked for"
    assert result.usage["output_tokens"] > 0 and result.model_usage and result.total_cost_usd > 0


async def check_streaming():
    messages = [
        m async for m in query(prompt="say hello", options=options(include_partial_messages=True))
    ]
    pieces = deltas(messages, "text_delta", "text")
    assert len(pieces) > 2, pieces
    same("".join(pieces), "Hello from the script.")
    same("".join(deltas(messages, "thinking_delta", "thinking")), "A greeting, then.")
    thinking = blocks(messages, ThinkingBlock)
    same([block.thinking for block in thinking], ["A greeting, then."])
    kinds = [message.event["type"] for message in of_type(messages, StreamEvent)]
    same(kinds[0], "message_start")
    same(kinds[-1], "message_stop")


async def check_permission_allowed():
    asked = []

    async def allow(name, tool_input, context):
        asked.append((name, tool_input["command"], context.tool_use_id))
        return PermissionResultAllow()

    async with ClaudeSDKClient(options(can_use_tool=allow)) as client:
        messages = await ask(client, "run the tool")
    (call,) = blocks(messages, ToolUseBlock)
    same(asked, [("Bash", "touch made && echo made-by-tool", call.id)])
    (outcome,) = blocks(messages, ToolResultBlock)
    same(outcome.tool_use_id, call.id)
    same(outcome.content, "made-by-tool")
    same(bool(outcome.is_error), False)
    same(result_of(messages).permission_denials, [])


async def check_permission_denied():
    async def deny(name, tool_input, context):
        return PermissionResultDeny(message="Not today.")

    async with ClaudeSDKClient(options(can_use_tool=deny)) as client:
        messages = await ask(client, "run the tool")
    (call,) = blocks(messages, ToolUseBlock)
    (outcome,) = blocks(messages, ToolResultBlock)
    same(outcome.is_error, True)
    assert "Not today." in outcome.content, outcome.content
    (denial,) = result_of(messages).permission_denials
    same(denial["tool_use_id"], call.id)
    same(denial["tool_name"], "Bash")
    same(result_of(messages).subtype, "success")


async def check_interrupt():
    async with ClaudeSDKClient(options(include_partial_messages=True)) as client:
        await client.query("wait forever")
        result = None
        async for message in client.receive_response():
            if isinstance(message, StreamEvent) and message.event["type"] == "content_block_delta":
                await client.interrupt()
            if isinstance(message, ResultMessage):
                result = message
        same(result.subtype, "error_during_execution")
        messages = await ask(client, "say hello")
        same(result_of(messages).result, "Hello from the script.")
        same(result_of(messages).session_id, result.session_id)


async def check_interrupt_while_a_permission_is_pending():
    asked = asyncio.Event()
    withdrawn = asyncio.Event()

    async def never_answer(name, tool_input, context):
        asked.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            withdrawn.set()
            raise

    async with ClaudeSDKClient(options(can_use_tool=never_answer)) as client:
        await client.query("run the tool")
        await asked.wait()
        await client.interrupt()
        messages = [message async for message in client.receive_response()]
        same(result_of(messages).subtype, "error_during_execution")
        await withdrawn.wait()
    (outcome,) = blocks(messages, ToolResultBlock)
    same(outcome.is_error, True)


async def check_resume():
    chosen = str(uuid.uuid4())
    messages = [m async for m in query(prompt="say hello", options=options(session_id=chosen))]
    same(result_of(messages).session_id, chosen)
    messages = [m async for m in query(prompt="what did I say", options=options(resume=chosen))]
    same(result_of(messages).session_id, chosen)
    same(result_of(messages).result, "You said: say hello | what did I say")

    forked = options(resume=chosen, fork_session=True)
    messages = [m async for m in query(prompt="what did I say", options=forked)]
    assert result_of(messages).session_id != chosen
    same(result_of(messages).result, "You said: say hello | what did I say | what did I say")


async def check_resume_of_an_unknown_session():
    unknown = str(uuid.uuid4())
    errors = []
    try:
        async for message in query(prompt="say hello", options=options(resume=unknown)):
            if isinstance(message, ResultMessage):
                same(message.subtype, "error_during_execution")
                errors += message.errors
    except Exception as error:  # The SDK raises what the result says, and how depends on its version.
        errors.append(str(error))
    sentence = f"No conversation found with session ID: {unknown}"
    assert any(sentence in error for error in errors), errors


async def check_model_and_mode():
    async with ClaudeSDKClient(options()) as client:
        await client.set_model("claude-sonnet-4-6")
        await client.set_permission_mode("acceptEdits")
        messages = await ask(client, "say hello")
        same(init_of(messages)["model"], "claude-sonnet-4-6")
        same(init_of(messages)["permissionMode"], "acceptEdits")
        same({m.model for m in of_type(messages, AssistantMessage)}, {"claude-sonnet-4-6"})
        await client.set_permission_mode("default")
        messages = await ask(client, "say hello")
        same(init_of(messages)["permissionMode"], "default")


async def check_several_turns():
    async with ClaudeSDKClient(options()) as client:
        info = await client.get_server_info()
        assert isinstance(info["commands"], list) and isinstance(info["models"], list)
        await ask(client, "say hello")
        messages = await ask(client, "what did I say")
    same(result_of(messages).result, "You said: say hello | what did I say")


async def main():
    for name, check in list(globals().items()):
        if name.startswith("check_"):
            await asyncio.wait_for(check(), PATIENCE)
            print(f"passed {name.removeprefix('check_')}", flush=True)


asyncio.run(main())
