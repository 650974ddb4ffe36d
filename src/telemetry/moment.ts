let localClock: Intl.DateTimeFormat | undefined;

/** Unix milliseconds as `2026-11-20T14:03:22.123Z`. */
export function isoTime(wallMs: number): string {
  // oxlint-disable-next-line no-restricted-globals -- writes a moment that it is given; the first use of Intl takes 40 ms
  return new Date(wallMs).toISOString();
}

/** Unix milliseconds as `14:03:22` in the time zone of this host. */
export function localTime(wallMs: number): string {
  // Made when it is asked for: a daemon whose log is JSON never needs it, and it takes a tenth of the start.
  localClock ??= new Intl.DateTimeFormat('en-GB', {
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit',
    hourCycle: 'h23',
  });
  return localClock.format(wallMs);
}

/** A moment as a person wants it: `14:03:22 UTC (in 52 s)`, or `(12 s ago)` where it has passed. */
export function momentText(wallMs: number, nowWallMs: number): string {
  const awayMs = wallMs - nowWallMs;
  const away = awayMs < 0 ? `${durationText(-awayMs)} ago` : `in ${durationText(awayMs)}`;
  return `${isoTime(wallMs).slice(11, 19)} UTC (${away})`;
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
