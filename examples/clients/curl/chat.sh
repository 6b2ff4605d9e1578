#!/bin/sh
# Runs a task, then reads its conversation through the chat API. curl asks for the WebSocket and prints what the server
# sends. It can't answer: for that see the other languages. Needs GNU sed.
set -eu
prompt=${1:?what should the agent do?}
body=$(printf '%s' "$prompt" | sed 's/\\/\\\\/g; s/"/\\"/g')

session=$(curl --silent --show-error --fail-with-body "$TILLER_URL/api/task" \
  --header "Authorization: Bearer $TILLER_KEY" --header 'Content-Type: application/json' \
  --data "{\"prompt\": \"$body\"}" | sed 's/.*"session_id":"\([^"]*\)".*/\1/')

# The connection stays open for what comes next; two seconds are enough for what has been said. Each message begins with a
# few bytes that say how long it is: a line for each instead.
curl --silent --no-buffer --http1.1 --max-time 2 "$TILLER_URL/ws?session_id=$session&after_seq=0" \
  --header "Authorization: Bearer $TILLER_KEY" --header 'Connection: Upgrade' --header 'Upgrade: websocket' \
  --header 'Sec-WebSocket-Version: 13' --header 'Sec-WebSocket-Key: dGlsbGVyLWV4YW1wbGUtMQ==' |
  LC_ALL=C sed 's/\x81.\{1,9\}{"type":/\n{"type":/g' | LC_ALL=C grep --text --only-matching '{"type":.*}'
