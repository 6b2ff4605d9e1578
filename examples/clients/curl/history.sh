#!/bin/sh
# Lists projects and searches all conversations.
set -eu
words=${1:?what to search for?}

echo "# projects"
curl --silent --show-error --fail-with-body "$TILLER_URL/api/history/projects" --header "Authorization: Bearer $TILLER_KEY"

printf '\n# found\n'
curl --silent --show-error --fail-with-body --get "$TILLER_URL/api/history/search" --data-urlencode "q=$words" \
  --header "Authorization: Bearer $TILLER_KEY"
