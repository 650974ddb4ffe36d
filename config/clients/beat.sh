#!/bin/sh
# A bot in shell that tells killswitchd that it lives. It needs curl.
#
#   KILLSWITCHD_CONTROL=unix:/run/killswitchd/control.sock sh beat.sh COMMAND [ARGUMENT]...
#
# COMMAND is one round of the bot. It runs again and again, each time after a beat that was answered with "armed", so
# that no order is placed unprotected. A loop of your own needs one line, where it decides what to trade:
#
#   curl -sS -m 2 --unix-socket /run/killswitchd/control.sock -X POST http://localhost/v1/beat
#
# Do not send beats from a loop beside the bot: they would go on when the bot hangs.
set -u

control=${KILLSWITCHD_CONTROL:-unix:/run/killswitchd/control.sock} # or HOST:PORT
bot=${KILLSWITCHD_BOT:+?bot=$KILLSWITCHD_BOT} # not needed for the only one

# The token goes through a pipe, because everybody can read the arguments of a process. curl reads it between quotes.
token() {
  if [ -n "${KILLSWITCHD_CONTROL_TOKEN_FILE:-}" ]; then
    printf 'header = "Authorization: Bearer %s"\n' "$(sed 's/["\\]/\\&/g' "$KILLSWITCHD_CONTROL_TOKEN_FILE")"
  fi
}

# say WORD SECONDS: beat, goodbye or fail, and how long to wait for the answer. Prints the answer.
say() {
  case $control in
    unix:*) token | curl -sSg -m "$2" -K - --unix-socket "${control#unix:}" -X POST "http://localhost/v1/$1$bot" ;;
    *) token | curl -sSg -m "$2" -K - --noproxy '*' -X POST "http://$control/v1/$1$bot" ;;
  esac
}

stopping=
trap 'stopping=yes' TERM INT

while [ -z "$stopping" ]; do
  reply=$(say beat 2)
  case $reply in *'"counted":false'*) echo "the beat did not count: $reply" >&2 ;; esac
  case $reply in
    '{"armed":true'*)
      "$@"
      # Ctrl-C and systemd signal the round as well: one that died of that (128 + 2 or 15) has not failed.
      case $?$stopping in
        0* | 130yes | 143yes) ;;
        *)
          echo "the round failed: nothing is renewed from now on, and the exchange cancels the orders" >&2
          say fail 2
          exit 1
          ;;
      esac
      ;;
    *) echo "not armed: orders are held back: $reply" >&2 ;;
  esac
  sleep 1
done

# Cancel your orders here. Then nothing is left to guard, and the daemon deletes the timers. It answers within 15 s.
say goodbye 17
exit 0
