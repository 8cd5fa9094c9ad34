#!/usr/bin/env bash
# Sends generated requests, right and wrong ones, to a live server and holds every answer against its
# OpenAPI document: no 5xx, no status, type, header or shape that is not documented, nothing accepted
# that breaks a schema.
#
#   tests/fuzz/rest.sh QUIPU_BINARY    about a minute
#   QUIPU_EXAMPLES=500                 how many requests per operation
#   QUIPU_SEED=7                       other requests
set -euo pipefail
binary=$(realpath "$1")
cd "$(dirname "$0")"

venv="$(realpath ../../target)/fuzz-venv"
if ! cmp --silent requirements.txt "$venv/installed.txt"; then
  python3 -m venv "$venv"
  "$venv/bin/pip" --quiet --disable-pip-version-check install --requirement requirements.txt
  cp requirements.txt "$venv/installed.txt"
fi

folder=$(mktemp --directory)
server=
finish() {
  [ -z "$server" ] || kill "$server" 2>/dev/null || true
  wait
  rm -rf "$folder"
}
trap finish EXIT

QUIPU_ADMIN_KEY=$(od -An -N24 -tx1 /dev/urandom | tr -d ' \n')
export QUIPU_ADMIN_KEY
"$binary" serve --data "$folder/data" --listen 127.0.0.1:0 --log-level error >"$folder/out" &
server=$!
for _ in $(seq 300); do
  grep --quiet '^listening on ' "$folder/out" && break
  kill -0 "$server"
  sleep 0.1
done
url=$(sed -n 's/^listening on //p' "$folder/out")

config=$PWD/schemathesis.toml
export PYTHONPATH=$PWD PYTHONDONTWRITEBYTECODE=1 SCHEMATHESIS_HOOKS=hooks
# It leaves its own files where it runs.
cd "$folder"
"$venv/bin/schemathesis" --config-file "$config" run "$url/openapi.json" \
  --max-examples "${QUIPU_EXAMPLES:-20}" --seed "${QUIPU_SEED:-1}" --no-color
# Whatever was sent, the server lives until it is told to end, and what it holds is sound.
kill "$server"
wait "$server"
server=
"$binary" check --data "$folder/data"
