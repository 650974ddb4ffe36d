const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];
const IMF_FIXDATE = /^[A-Z][a-z]{2}, (\d{2}) ([A-Z][a-z]{2}) (\d{4}) (\d{2}):(\d{2}):(\d{2}) GMT$/;

/** Days from 1970-01-01 to a day of the Gregorian calendar. `month` counts from 1. */
function daysSinceEpoch(year: number, month: number, day: number): number {
  // Years that begin in March put the leap day last, so that month lengths follow one formula.
  const shifted = month > 2 ? year : year - 1;
  const era = Math.floor(shifted / 400);
  const yearOfEra = shifted - era * 400;
  const dayOfYear = Math.floor((153 * (month > 2 ? month - 3 : month + 9) + 2) / 5) + day - 1;
  const dayOfEra = yearOfEra * 365 + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100) + dayOfYear;
  return era * 146_097 + dayOfEra - 719_468;
}

/**
 * Unix milliseconds of an HTTP `Date` header in the one form that servers may send (IMF-fixdate, RFC 9110 5.6.7);
 * null for anything else.
 */
export function parseHttpDate(text: string): number | null {
  const match = IMF_FIXDATE.exec(text);
  if (match === null) return null;
  const [, day, monthName, year, hour, minute, second] = match;
  const month = MONTHS.indexOf(monthName ?? '') + 1;
  const inRange = month > 0 && Number(day) <= 31 && Number(hour) < 24 && Number(minute) < 60;
  if (!inRange || Number(day) < 1 || Number(second) > 60) return null;
  const days = daysSinceEpoch(Number(year), month, Number(day));
  return (((days * 24 + Number(hour)) * 60 + Number(minute)) * 60 + Number(second)) * 1000;
}

/** `parseHttpDate` for many answers in a row: those of one second show the same. */
export function createHttpDates(): (text: string) => number | null {
  let last: { readonly text: string; readonly ms: number | null } = { text: '', ms: null };
  return (text) => {
    if (text !== last.text) last = { text, ms: parseHttpDate(text) };
    return last.ms;
  };
}
