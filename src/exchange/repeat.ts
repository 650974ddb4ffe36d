import pRetry from 'p-retry';

/**
 * p-retry without waits and without a clock of its own, which is not ours: the deadlines of the attempts end it. Every
 * option is given, because its defaults go on for 17 minutes.
 */
export function repeat<T>(
  attempt: (number: number) => Promise<T>,
  {
    retries,
    mayRepeat,
    signal,
  }: {
    readonly retries: number;
    readonly mayRepeat: (error: Error) => boolean;
    readonly signal?: AbortSignal;
  },
): Promise<T> {
  return pRetry(attempt, {
    retries,
    factor: 1,
    minTimeout: 0,
    maxTimeout: 0,
    maxRetryTime: Number.POSITIVE_INFINITY,
    randomize: false,
    unref: true,
    ...(signal !== undefined && { signal }),
    onFailedAttempt: () => undefined,
    shouldConsumeRetry: () => true,
    shouldRetry: ({ error }) => mayRepeat(error),
  });
}
