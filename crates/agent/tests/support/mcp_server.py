"""An MCP server on standard input and output, with a tool that asks the user for a name and one that echoes."""

import json
import sys


def send(message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


can_ask = False
for line in sys.stdin:
    message = json.loads(line)
    method, id = message.get("method"), message.get("id")
    if method == "initialize":
        can_ask = "elicitation" in message["params"]["capabilities"]
        send({"id": id, "result": {
            "protocolVersion": message["params"]["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "outside", "version": "1"},
        }})
    elif method == "tools/list":
        schema = {"type": "object", "properties": {}}
        send({"id": id, "result": {"tools": [
            {"name": "ask", "description": "Asks for a name", "inputSchema": schema},
            {"name": "echo", "description": "Echoes its input", "inputSchema": schema},
        ]}})
    elif method == "tools/call" and message["params"]["name"] == "echo":
        text = "echo: " + json.dumps(message["params"].get("arguments"))
        send({"id": id, "result": {"content": [{"type": "text", "text": text}]}})
    elif method == "tools/call" and not can_ask:
        send({"id": id, "result": {"content": [{"type": "text", "text": "nobody can be asked"}]}})
    elif method == "tools/call":
        calling = id
        send({"id": "question", "method": "elicitation/create", "params": {
            "message": "What is your name?",
            "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
        }})
    elif method is None and id == "question":
        answer = message.get("result", message.get("error"))
        send({"id": calling, "result": {"content": [{"type": "text", "text": "answer: " + json.dumps(answer)}]}})
    elif id is not None:
        send({"id": id, "error": {"code": -32601, "message": "no such method"}})
