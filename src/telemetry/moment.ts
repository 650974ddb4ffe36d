let localClock: Intl.DateTimeFormat | undefined;

const DAY_MS = 86_400_000;
const ERA_DAYS = 146_097;

/**
 * Unix milliseconds from year 0 to 9999 as `2026-11-20T14:03:22.123Z`. Counted by hand: a `Date` could read the time
 * as well, and the first use of `Intl` reads tables for 40 ms before the first timer is armed. The date is found in
 * eras of 400 years that begin in March, so that the leap day is the last one of its year.
 */
export function isoTime(wallMs: number): string {
  const ms = Math.floor(wallMs);
  const days = Math.floor(ms / DAY_MS) + 719_468;
  const era = Math.floor(days / ERA_DAYS);
  const dayOfEra = days - era * ERA_DAYS;
  const leapDays =
    Math.floor(dayOfEra / 1460) - Math.floor(dayOfEra / 36_524) + Math.floor(dayOfEra / 146_096);
  const yearOfEra = Math.floor((dayOfEra - leapDays) / 365);
  const dayOfYear = dayOfEra - (365 * yearOfEra + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100));
  const fromMarch = Math.floor((5 * dayOfYear + 2) / 153);
  const day = dayOfYear - Math.floor((153 * fromMarch + 2) / 5) + 1;
  const month = fromMarch < 10 ? fromMarch + 3 : fromMarch - 9;
  const year = era * 400 + yearOfEra + (month <= 2 ? 1 : 0);
  return `${digits(year, 4)}-${digits(month, 2)}-${digits(day, 2)}T${timeOfDay(ms)}Z`;
}

function timeOfDay(ms: number): string {
  const inDay = ms - Math.floor(ms / DAY_MS) * DAY_MS;
  const minutes = Math.floor(inDay / 60_000);
  const seconds = Math.floor(inDay / 1000) % 60;
  return `${digits(Math.floor(minutes / 60), 2)}:${digits(minutes % 60, 2)}:${digits(seconds, 2)}.${digits(inDay % 1000, 3)}`;
}

function digits(value: number, count: number): string {
  return String(value).padStart(count, '0');
}

/** Unix milliseconds as `14:03:22` in the time zone of this host. */
export function localTime(wallMs: number): string {
  // Made when it is asked for: a daemon whose log is JSON never needs it.
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
