/** IMF-fixdate, the one form in which servers may send a date (RFC 9110 5.6.7). */
const HTTP_DATE = /^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/;

/** Unix milliseconds of an HTTP `Date` header; null for anything else. */
export function parseHttpDate(text: string): number | null {
  const ms = HTTP_DATE.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(ms) ? null : ms;
}

/** Unix milliseconds as `2026-11-20T14:03:22.123Z`. */
export function isoTime(wallMs: number): string {
  return new Date(wallMs).toISOString();
}

/** Unix milliseconds as `14:03:22Z`, in UTC as all times that the program shows. */
export function timeOfDay(wallMs: number): string {
  return `${isoTime(wallMs).slice(11, 19)}Z`;
}
