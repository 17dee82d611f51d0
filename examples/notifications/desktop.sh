#!/bin/sh
# Show what happened to a job on the desktop: a hook for a notifier of the type command.
# It needs the variable DBUS_SESSION_BUS_ADDRESS, since a hook has only the variables that its notifier states.
PATH=${PATH:-/usr/local/bin:/usr/bin:/bin}
event=$(cat)
name=$(printf '%s' "$event" | sed -n 's/.*"job_name":"\([^"]*\)".*/\1/p')
job=$(printf '%s' "$event" | sed -n 's/.*"job_id":"\([^"]*\)".*/\1/p')
exec notify-send -- "Jobman: $(printf '%s' "$JOBMAN_EVENT_TYPE" | tr _ ' ')" "${name:-$job}"
