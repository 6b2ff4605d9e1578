"""Runs a task as a stream of events and answers its requests. Only the standard library."""

import json
import os
import sys
import urllib.request

URL, KEY = os.environ["TILLER_URL"], os.environ["TILLER_KEY"]


def post(path, body):
    request = urllib.request.Request(
        URL + path,
        data=json.dumps(body).encode(),
        headers={"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"},
    )
    return urllib.request.urlopen(request)


def events(response):
    """The events of a stream: each is a block of lines, of which `data` has everything."""
    for line in response:
        if line.startswith(b"data: "):
            yield json.loads(line[len("data: ") :])


with post("/api/task/stream", {"prompt": sys.argv[1]}) as stream:
    for event in events(stream):
        if event["type"] == "text":
            print(event["text"], end="", flush=True)
        elif event["type"] == "tool_use":
            print(f"\n* {event['name']} {event['input']}")
        elif event["type"] == "permission_request":
            answer = {"session_id": event["session_id"], "request_id": event["request_id"], "decision": "allow"}
            post("/api/task/permission", answer).close()
        elif event["type"] == "ask_user_question":
            label = event["options"][0]["label"]
            answer = {"session_id": event["session_id"], "question_id": event["question_id"], "answer": label}
            post("/api/task/answer", answer).close()
        elif event["type"] == "complete":
            print(f"\n{'done' if event['success'] else 'failed'} in {event['duration_ms']} ms for ${event['cost_usd']}")
            sys.exit(0 if event["success"] else 1)
