#!/bin/sh
# Watches all sessions through the event API while a task runs. curl opens the WebSocket and prints the server's
# frames. It can't send any: see the other languages for that. Needs GNU sed.
set -eu
prompt=${1:?what should the agent do?}
body=$(printf '%s' "$prompt" | sed 's/\\/\\\\/g; s/"/\\"/g')
heard=$(mktemp)
trap 'rm -f "$heard"' EXIT

curl --silent --no-buffer --http1.1 "$TILLER_URL/ws/events" --output "$heard" \
  --header "Authorization: Bearer $TILLER_KEY" --header 'Connection: Upgrade' --header 'Upgrade: websocket' \
  --header 'Sec-WebSocket-Version: 13' --header 'Sec-WebSocket-Key: dGlsbGVyLWV4YW1wbGUtMQ==' &
watching=$!
sleep 1

curl --silent --show-error --fail-with-body --output /dev/null "$TILLER_URL/api/task" \
  --header "Authorization: Bearer $TILLER_KEY" --header 'Content-Type: application/json' \
  --data "{\"prompt\": \"$body\"}"
kill "$watching"

# Each frame begins with a few bytes for its length, which are replaced by a newline.
LC_ALL=C sed 's/\x81.\{1,9\}{"type":/\n{"type":/g' "$heard" | LC_ALL=C grep --text --only-matching '{"type":.*}'
