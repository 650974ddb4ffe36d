/** Where a secret came from; `demo` is the embedded exchange's own. */
export type SecretOrigin = 'environment' | 'file' | 'demo';

/**
 * A text that must not be seen. Every way in which it could end up in a log, an error or a page by accident shows
 * `[redacted, 64 chars, from file]`; only `reveal` gives the text.
 */
export interface Secret {
  readonly origin: SecretOrigin;
  readonly length: number;
  readonly reveal: () => string;
  readonly toString: () => string;
  readonly toJSON: () => string;
}

/** Wraps `value`, which is kept in a closure: no property holds it. */
export function makeSecret(value: string, origin: SecretOrigin): Secret {
  const shown = `[redacted, ${value.length} chars, from ${origin}]`;
  const show = () => shown;
  return Object.freeze({
    origin,
    length: value.length,
    reveal: () => value,
    toString: show,
    toJSON: show,
    [Symbol.for('nodejs.util.inspect.custom')]: show,
  });
}
