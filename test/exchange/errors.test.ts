import { expect, test } from 'vitest';
import { FAILURE_REASONS } from '../../src/core/outcome.ts';
import {
  ApiError,
  errorOfReason,
  type Failure,
  NetworkError,
  NonceError,
  ProtocolError,
  RefusedError,
  ServerError,
  ThrottledError,
  TimeoutError,
  toError,
  UnauthorisedError,
} from '../../src/exchange/errors.ts';

test.each<[Failure, typeof ApiError | typeof RefusedError | typeof UnauthorisedError, string]>([
  [{ kind: 'protocol', detail: 'd' }, ProtocolError, 'ProtocolError'],
  [{ kind: 'nonce', detail: 'd' }, NonceError as typeof ApiError, 'NonceError'],
  [{ kind: 'throttled', detail: 'd' }, ThrottledError as typeof ApiError, 'ThrottledError'],
  [{ kind: 'refused', code: 31, detail: 'd' }, RefusedError, 'RefusedError'],
  [{ kind: 'unauthorised', status: 401, detail: 'd' }, UnauthorisedError, 'UnauthorisedError'],
  [{ kind: 'transient', reason: 'http_5xx', detail: 'd', maybeApplied: true }, ServerError, 'ServerError'],
  [{ kind: 'transient', reason: 'timeout', detail: 'd', maybeApplied: true }, TimeoutError, 'TimeoutError'],
  [
    { kind: 'transient', reason: 'dns', detail: 'd', maybeApplied: false },
    NetworkError as unknown as typeof ApiError,
    'NetworkError',
  ],
  [{ kind: 'transient', reason: 'parse', detail: 'd', maybeApplied: true }, ProtocolError, 'ProtocolError'],
])('%j becomes an error of its own class', (failure, expected, name) => {
  const error = toError(failure);
  expect(error).toBeInstanceOf(expected);
  expect(error).toBeInstanceOf(ApiError);
  expect([error.name, error.message]).toEqual([name, 'd']);
  expect(error.maybeApplied).toBe(
    failure.kind === 'protocol' || (failure.kind === 'transient' && failure.maybeApplied),
  );
});

test('a refusal tells its code and the messages by parameter', () => {
  const error = toError({
    kind: 'refused',
    code: 30,
    detail: 'd',
    fields: { timeout: ['should be at least 5'] },
  });
  expect(error).toMatchObject({ code: 30, fields: { timeout: ['should be at least 5'] } });
});

test('the error underneath is kept as the cause', () => {
  const cause = new Error('ECONNREFUSED');
  expect(
    toError({ kind: 'transient', reason: 'network', detail: 'd', maybeApplied: false, cause }).cause,
  ).toBe(cause);
});

test('every reason has an error', () => {
  for (const reason of FAILURE_REASONS)
    expect(errorOfReason(reason, 'd', { maybeApplied: false })).toBeInstanceOf(ApiError);
});
