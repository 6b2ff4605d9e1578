#!/bin/sh
# Watches all sessions through the event API while a task runs. curl asks for the WebSocket and prints what the server
# sends. It can't answer: for that see the other languages. Needs GNU sed.
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

# Each message begins with a few bytes that say how long it is: a line for each instead.
LC_ALL=C sed 's/\x81.\{1,9\}{"type":/\n{"type":/g' "$heard" | LC_ALL=C grep --text --only-matching '{"type":.*}'
