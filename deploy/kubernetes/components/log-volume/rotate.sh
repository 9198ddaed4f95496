#!/bin/sh
# Rotates LOG_DIR/*.log in place (copy, then truncate), because the service never opens its log again: at MAX_BYTES, and
# after a day. Keeps KEEP older files, none older than MAX_AGE_DAYS. Checks every INTERVAL seconds; `--once` checks once.
# What the service writes between copy and truncation is lost.
set -u
: "${LOG_DIR:?}" "${MAX_BYTES:=67108864}" "${KEEP:=5}" "${MAX_AGE_DAYS:=14}" "${INTERVAL:=10}"

# A day is counted from the time of this file, because the time of the log is that of its last line.
mark_of() { echo "${1%/*}/.${1##*/}.rotated"; }

is_due() {
  [ -s "$1" ] || return 1
  [ "$(stat -c %s "$1")" -lt "$MAX_BYTES" ] || return 0
  [ -e "$2" ] || : >"$2"
  [ -n "$(find "$2" -mtime +0)" ]
}

rotate() {
  number=$KEEP
  rm -f "$1.$number"
  while [ "$number" -gt 1 ]; do
    older=$number
    number=$((number - 1))
    [ ! -e "$1.$number" ] || mv -f "$1.$number" "$1.$older"
  done
  # If the copy is incomplete, nothing is truncated.
  cp -p "$1" "$1.1" || {
    rm -f "$1.1"
    return 1
  }
  : >"$1"
  touch "$2"
}

look() {
  for log in "$LOG_DIR"/*.log; do
    [ -f "$log" ] || continue
    mark=$(mark_of "$log")
    ! is_due "$log" "$mark" || rotate "$log" "$mark" || echo "$log: not rotated" >&2
    find "$LOG_DIR" -name "${log##*/}.[0-9]*" -mtime "+$MAX_AGE_DAYS" -exec rm -f {} +
  done
}

look
[ "${1:-}" != --once ] || exit 0
trap 'exit 0' TERM INT
while :; do
  sleep "$INTERVAL" &
  wait $!
  look
done
