const UTC_CLOCK = new Intl.DateTimeFormat('en-GB', {
  timeZone: 'UTC',
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  hourCycle: 'h23',
});
const LOCAL_CLOCK = new Intl.DateTimeFormat('en-GB', {
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  hourCycle: 'h23',
});
// The Swedish locale writes dates as ISO 8601 does, but for the T and the decimal point.
const ISO = new Intl.DateTimeFormat('sv-SE', {
  timeZone: 'UTC',
  year: 'numeric',
  month: '2-digit',
  day: '2-digit',
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  fractionalSecondDigits: 3,
  hourCycle: 'h23',
});

/** Unix milliseconds as `2026-11-20T14:03:22.123Z`. */
export function isoTime(wallMs: number): string {
  return `${ISO.format(wallMs).replace(' ', 'T').replace(',', '.')}Z`;
}

/** Unix milliseconds as `14:03:22` in the time zone of this host. */
export function localTime(wallMs: number): string {
  return LOCAL_CLOCK.format(wallMs);
}

/** A moment as a person wants it: `14:03:22 UTC (in 52 s)`, or `(12 s ago)` where it has passed. */
export function momentText(wallMs: number, nowWallMs: number): string {
  const awayMs = wallMs - nowWallMs;
  const away = awayMs < 0 ? `${durationText(-awayMs)} ago` : `in ${durationText(awayMs)}`;
  return `${UTC_CLOCK.format(wallMs)} UTC (${away})`;
}

/** Milliseconds as `12 ms`, `2.5 s`, `52 s`, `4 min 10 s` or `2 h 5 min`. */
export function durationText(ms: number): string {
  if (ms < 999.5) return `${Math.round(ms)} ms`;
  if (ms < 9950) return `${Number((ms / 1000).toFixed(1))} s`;
  const seconds = Math.round(ms / 1000);
  if (seconds < 120) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 120) return seconds % 60 === 0 ? `${minutes} min` : `${minutes} min ${seconds % 60} s`;
  return minutes % 60 === 0
    ? `${Math.floor(minutes / 60)} h`
    : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}
