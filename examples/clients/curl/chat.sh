#!/bin/sh
# Runs a task, then reads its conversation through the chat API. curl opens the WebSocket and prints the server's
# frames. It can't send any: see the other languages for that. Needs GNU sed.
set -eu
prompt=${1:?what should the agent do?}
body=$(printf '%s' "$prompt" | sed 's/\\/\\\\/g; s/"/\\"/g')

session=$(curl --silent --show-error --fail-with-body "$TILLER_URL/api/task" \
  --header "Authorization: Bearer $TILLER_KEY" --header 'Content-Type: application/json' \
  --data "{\"prompt\": \"$body\"}" | sed 's/.*"session_id":"\([^"]*\)".*/\1/')

# The connection stays open for further frames; two seconds are enough for the replay. Each frame begins with a few bytes
# for its length, which are replaced by a newline.
curl --silent --no-buffer --http1.1 --max-time 2 "$TILLER_URL/ws?session_id=$session&after_seq=0" \
  --header "Authorization: Bearer $TILLER_KEY" --header 'Connection: Upgrade' --header 'Upgrade: websocket' \
  --header 'Sec-WebSocket-Version: 13' --header 'Sec-WebSocket-Key: dGlsbGVyLWV4YW1wbGUtMQ==' |
  LC_ALL=C sed 's/\x81.\{1,9\}{"type":/\n{"type":/g' | LC_ALL=C grep --text --only-matching '{"type":.*}'
