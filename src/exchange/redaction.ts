/** Makes text that came from outside fit for a log line: one line, short, and without any of the secrets. */
export type Redact = (text: string) => string;

const MAX_LENGTH = 300;
const UNPRINTABLE = /[\p{C}\p{Zl}\p{Zp}]+/gu;

/**
 * Removes control characters, replaces every occurrence of a secret and cuts to 300 characters, in this order: a cut
 * first would leave the beginning of a secret standing.
 */
export function createRedaction(secrets: readonly string[]): Redact {
  return (text) => {
    const longestFirst = secrets.filter((secret) => secret !== '').sort((a, b) => b.length - a.length);
    let clean = text.replace(UNPRINTABLE, ' ').trim();
    for (const secret of longestFirst) clean = clean.replaceAll(secret, '[redacted]');
    if (clean.length <= MAX_LENGTH) return clean;
    return `${clean.slice(0, MAX_LENGTH - 1).replace(/[\uD800-\uDBFF]$/, '')}…`;
  };
}
