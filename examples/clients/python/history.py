"""Lists the newest conversations of every project and searches them. Only the standard library."""

import json
import os
import sys
import urllib.parse
import urllib.request

URL, KEY = os.environ["TILLER_URL"], os.environ["TILLER_KEY"]


def get(path, **query):
    address = f"{URL}{path}?{urllib.parse.urlencode(query)}"
    request = urllib.request.Request(address, headers={"Authorization": f"Bearer {KEY}"})
    with urllib.request.urlopen(request) as response:
        return json.load(response)


for project in get("/api/history/projects")["projects"]:
    print(project["path"])
    for session in get(f"/api/history/projects/{project['id']}/sessions", limit=3)["sessions"]:
        print(f"  {session['id']}  {session['message_count']:4} messages  {session['title']}")

for found in get("/api/history/search", q=sys.argv[1])["results"]:
    print(f"{found['timestamp']}  {found['role']}: {found['excerpt']}")
