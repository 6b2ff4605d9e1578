"""Starts a session over the event API, follows it to its end, and allows every permission request. Needs `websockets`."""

import json
import os
import sys

from websockets.sync.client import connect

URL, KEY = os.environ["TILLER_URL"].replace("http", "ws", 1), os.environ["TILLER_KEY"]


with connect(f"{URL}/ws/events", additional_headers={"Authorization": f"Bearer {KEY}"}) as socket:

    def send(kind, **payload):
        socket.send(json.dumps({"type": kind, "payload": payload}))

    send("session.start", title="", prompt=sys.argv[1], requestId="mine")
    session = None
    for frame in map(json.loads, socket):
        kind, payload = frame["type"], frame.get("payload", {})
        if kind == "runner.error":
            sys.exit(payload["message"])
        if kind == "session.started":
            session = payload["sessionId"]
            # From the beginning: events before this frame are sent again.
            send("session.subscribe", sessionId=session)
        if session is None or payload.get("sessionId") != session:
            continue
        if kind == "stream.message":
            print(payload["message"].get("event", {}).get("delta", {}).get("text", ""), end="", flush=True)
        elif kind == "permission.request":
            send(
                "permission.response",
                sessionId=session,
                requestId=payload["requestId"],
                result={"behavior": "allow"},
            )
        elif kind == "session.status" and payload["status"] in ("completed", "error", "idle"):
            print(f"\n{payload['status']}")
            sys.exit(0 if payload["status"] == "completed" else 1)
