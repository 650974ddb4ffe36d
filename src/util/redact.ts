export const REDACTED = '[redacted]';
/** Shorter texts would be found inside ordinary words. */
const SHORTEST_SECRET = 8;
const LONGEST_LINE = 300;
const UNPRINTABLE = /[\p{C}\p{Zl}\p{Zp}]+/gu;

/** Makes a text fit for a log line or an answer. */
export type Redact = (text: string) => string;

/**
 * The text without the secrets: as they are, inside quotes, and as a part of an address. Secrets of less than 8
 * characters are left alone.
 */
export function hideSecrets(text: string, secrets: readonly string[]): string {
  return secrets
    .filter(({ length }) => length >= SHORTEST_SECRET)
    .flatMap((secret) => [
      secret,
      JSON.stringify(secret).slice(1, -1),
      encodeURIComponent(secret.toWellFormed()),
    ])
    .toSorted((one, other) => other.length - one.length)
    .reduce((clean, form) => clean.replaceAll(form, REDACTED), text);
}

/**
 * Makes text from outside one line of at most 300 characters, without control characters and without the secrets. The
 * cut comes last: before, it would leave the beginning of a secret standing.
 */
export function redact(text: string, secrets: readonly string[]): string {
  const clean = hideSecrets(text.replace(UNPRINTABLE, ' ').trim(), secrets);
  if (clean.length <= LONGEST_LINE) return clean;
  return `${clean.slice(0, LONGEST_LINE - 1).replace(/[\uD800-\uDBFF]$/, '')}…`;
}

/** One line of at most 300 characters, without control characters. */
export const tidy: Redact = (text) => redact(text, []);

/** Without line breaks and other control characters: text from outside may not start a line of its own, or steer a terminal. */
export function oneLine(text: string): string {
  return text.replaceAll(/\p{Cc}+/gu, ' ');
}

/** Names for a message: not more of them than anybody reads. */
export function listed(names: readonly string[], most = 20): string {
  const more = names.length - most;
  return `${names.slice(0, most).join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
}
