"""Sends a chat message and allows every permission request. Needs `websockets`."""

import json
import os
import sys

from websockets.sync.client import connect

URL, KEY = os.environ["TILLER_URL"].replace("http", "ws", 1), os.environ["TILLER_KEY"]

with connect(f"{URL}/ws?session_id=example", additional_headers={"Authorization": f"Bearer {KEY}"}) as chat:
    chat.send(json.dumps({"type": "user_message", "session_id": "example", "message": {"content": sys.argv[1]}}))
    for frame in map(json.loads, chat):
        if frame["type"] == "stream":
            print(frame["event"].get("delta", {}).get("text", ""), end="", flush=True)
        elif frame["type"] == "permission_request":
            print(f"\n? {frame['tool_name']} {frame['input']}")
            answer = {"type": "permission_response", "request_id": frame["request_id"], "decision": "allow"}
            chat.send(json.dumps(answer))
        elif frame["type"] == "error" and frame["details"]["code"] != "TOOL_ERROR":  # That the agent can live with.
            sys.exit(f"{frame['error']}: {frame['details']['message']}")
        elif frame["type"] == "result":
            print(f"\n{frame['subtype']} after {frame['num_turns']} turns")
            break
