#!/bin/sh
# Runs a task, first synchronously and then as a stream of events. A stream that asks for permission waits for
# POST /api/task/permission, which this script does not send: see the other languages.
set -eu
prompt=${1:?what should the agent do?}
body=$(printf '%s' "$prompt" | sed 's/\\/\\\\/g; s/"/\\"/g')

echo "# whole"
curl --silent --show-error --fail-with-body "$TILLER_URL/api/task" \
  --header "Authorization: Bearer $TILLER_KEY" --header 'Content-Type: application/json' \
  --data "{\"prompt\": \"$body\"}"

printf '\n# as it happens\n'
curl --silent --show-error --fail-with-body --no-buffer "$TILLER_URL/api/task/stream" \
  --header "Authorization: Bearer $TILLER_KEY" --header 'Content-Type: application/json' \
  --data "{\"prompt\": \"$body\", \"granularity\": \"block\"}"
