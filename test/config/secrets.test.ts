import { rmSync, writeFileSync } from 'node:fs';
import { inspect } from 'node:util';
import fc from 'fast-check';
import { expect, it, test } from 'vitest';
import { printConfig } from '../../src/config/print.ts';
import { makeSecret, readSecrets } from '../../src/config/secrets.ts';
import { createSecrets } from '../../src/daemon/guard.ts';
import { ENVIRONMENT, FILE, fileOf, load, loadWell, problemsOf } from './fixture.ts';

/** Reads a key from a file with this content; the secret is well and comes from the environment. */
function readKeyFile(content: string | Buffer, mode = 0o400) {
  const key = { KILLSWITCHD_API_KEY_FILE: fileOf(content, mode) };
  return readSecrets({ ...key, KILLSWITCHD_API_SECRET: 'secret-of-the-test' }, { demo: false });
}

it('a secret from a copy that a service manager made is refused once its source has changed, with the command that helps', async () => {
  const readCopy = (copy: string, source: string) => {
    const files = { KILLSWITCHD_API_KEY_FILE: copy, KILLSWITCHD_API_KEY_SOURCE: source };
    const CREDENTIALS_DIRECTORY = '/run/credentials/killswitchd@maker.service';
    return readSecrets({ ...files, KILLSWITCHD_API_SECRET: 'x', CREDENTIALS_DIRECTORY }, { demo: false });
  };
  const source = fileOf('source-of-the-test');
  await new Promise((resolve) => setTimeout(resolve, 20));
  const copy = fileOf('copy-of-the-test');
  expect(readCopy(copy, source).kind).toBe('ok');
  expect(readCopy(copy, `${source}-not-to-be-seen`).kind).toBe('ok');
  await new Promise((resolve) => setTimeout(resolve, 20));
  rmSync(source);
  writeFileSync(source, 'another-source');
  const says =
    'KILLSWITCHD_API_KEY_SOURCE: the file that it names has changed since the start of the service, which is when its copy is made; write: systemctl restart killswitchd@maker';
  expect(readCopy(copy, source)).toEqual({ kind: 'invalid', problems: [says] });
});

const ALONE = 'allowed: the key alone, in printable ASCII without spaces';

it.each(['', '\n', '\r\n'])('a secret from a file is read with %j behind it, as editors leave it', (end) => {
  const read = readKeyFile(`key-of-the-test${end}`);
  if (read.kind !== 'ok') throw new Error(read.problems.join('\n'));
  const { apiKey, apiSecret } = read.secrets;
  expect(apiKey.reveal()).toBe('key-of-the-test');
  expect([apiKey.origin, apiSecret.origin]).toEqual(['file', 'environment']);
  expect(read.warnings).toEqual([]);
});

it.each([
  ['', 'found an empty text'],
  ['\n', 'found an empty text'],
  ['key-of-the-test\n\n', 'found a line break at character 16'],
  ['key-of\nthe-test', 'found a line break at character 7'],
  ['key of-the-test', 'found white space at character 4'],
  ['\ufeffkey-of-the-test', 'found a byte order mark in front'],
  ['"key-of-the-test"\n', 'found quotes around the key'],
  ['API_KEY=key-of-the-test', 'found NAME= in front of the key'],
  ["export KILLSWITCHD_API_KEY='key-of-the-test'", 'found NAME= in front of the key'],
  ['key\u0007', 'found something that is not printable ASCII at character 4'],
  [Buffer.from([0x6b, 0xff]), 'found something that is not printable ASCII at character 2'],
  ['{"key":"key-of-the-test"}', 'found JSON'],
])('a secret from a file is refused as %j, without showing any of it', (content, found) => {
  const said = `KILLSWITCHD_API_KEY_FILE: in the file that it names: ${found}; ${ALONE}`;
  expect(readKeyFile(content)).toEqual({ kind: 'invalid', problems: [said] });
});

it.each([
  ['/run/no-such-place/0123456789abcdef', ''],
  ['no-such.key', `, looked for in ${process.cwd()}`],
])(
  'a secret from the file %s that is missing: the message says in which folder it was looked for, and never the name',
  (file, where) => {
    const says = `KILLSWITCHD_API_KEY_FILE: the file that it names does not exist${where}; allowed: a file that holds the key and nothing else`;
    const read = readSecrets(
      { KILLSWITCHD_API_KEY_FILE: file, KILLSWITCHD_API_SECRET: 'x' },
      { demo: false },
    );
    expect(read).toEqual({ kind: 'invalid', problems: [says] });
  },
);

it('a secret from a file is refused where key and secret are the same', () => {
  const path = fileOf('key-of-the-test');
  const files = { KILLSWITCHD_API_KEY_FILE: path, KILLSWITCHD_API_SECRET_FILE: path };
  const says =
    'KILLSWITCHD_API_SECRET_FILE: found the key once more; allowed: the secret, which is another text';
  expect(readSecrets(files, { demo: false })).toEqual({ kind: 'invalid', problems: [says] });
});

it('a secret from a file is refused when the file is bigger than any key, and warned about when every user may read it', () => {
  const bigger =
    'KILLSWITCHD_API_KEY_FILE: the file that it names is bigger than 4 KiB; allowed: a file that holds the key and nothing else';
  expect(readKeyFile('k'.repeat(4 * 1024 + 1))).toEqual({ kind: 'invalid', problems: [bigger] });
  const readable =
    'KILLSWITCHD_API_KEY_FILE: every user of this host may read the file that it names (mode 0644); allow its owner only: mode 0400';
  expect(readKeyFile('k'.repeat(4 * 1024), 0o644)).toMatchObject({ kind: 'ok', warnings: [readable] });
});

/** Loads a configuration that names a token file with this content. */
function loadWithToken(content: string, mode = 0o400, env: Record<string, string> = {}) {
  const path = fileOf(content, mode);
  const control = { KILLSWITCHD_CONTROL_LISTEN: '127.0.0.1:17478', KILLSWITCHD_CONTROL_TOKEN_FILE: path };
  return load(null, { ...ENVIRONMENT, ...control, ...env });
}

it.each([
  ['', 'found an empty text; allowed: the token alone, in printable ASCII without spaces'],
  ['a-token-of-test\n', 'found 15 characters; allowed: at least 16, such as those of openssl rand -hex 32'],
])('the token of the control listener is refused as %j, without showing any of it', (content, found) => {
  const says = `KILLSWITCHD_CONTROL_TOKEN_FILE: in the file that it names: ${found}`;
  expect(problemsOf(loadWithToken(content))).toBe(says);
});

it('the token of the control listener may have 16 characters; it is warned about where every user may read it, or nothing asks for it', () => {
  const shown = loadWithToken('0123456789abcdef', 0o444);
  const says = [expect.stringMatching(/^control.tokenFile: every user .* \(mode 0444\)/)];
  expect(shown).toMatchObject({ kind: 'ok', warnings: expect.arrayContaining(says) as unknown });
  expect(shown.kind === 'ok' && shown.config.control.token?.reveal()).toBe('0123456789abcdef');
  const env = { KILLSWITCHD_CONTROL_LISTEN: 'unix:/run/control.sock' };
  const idle = JSON.stringify(loadWithToken('a-token-of-the-test', 0o400, env));
  expect(idle).toContain('"control.tokenFile: of no meaning without');
});

it('the token of the control listener is blanked out of a message about the wrong place that it was written to as well', () => {
  const env = { KILLSWITCHD_LOG_LEVEL: 'a-token-of-the-test' };
  const problems = problemsOf(loadWithToken('a-token-of-the-test', 0o400, env));
  expect(problems).toContain('KILLSWITCHD_LOG_LEVEL: found "[redacted]"');
});

const TELEGRAM = 'https://api.telegram.org/bot12:hidden/sendMessage';
const ANY = 'allowed: https://HOST/PATH';
const OF_TELEGRAM =
  'found another address than format telegram needs; allowed: https://api.telegram.org/botTOKEN/sendMessage?chat_id=CHAT';

test.each([
  ['no-address-hidden', 'json', `found what is no address; ${ANY}`],
  ['https://me:hidden@hooks.example/', 'json', `found a user name or password in the address; ${ANY}`],
  ['http://hooks.example.com/hidden', 'slack', `found http:// to a host of the public network; ${ANY}`],
  [TELEGRAM, 'telegram', OF_TELEGRAM],
  ['https://hooks.slack.com/services/hidden', 'slack', null],
  ['http://127.0.0.1:8080/hidden', 'json', null],
  ['http://alerts:8080/hidden', 'json', null],
  [`${TELEGRAM}?chat_id=-100`, 'telegram', null],
])('%s as an address for messages of format %s: %s, and it is not shown', (address, format, text) => {
  const env = { KILLSWITCHD_NOTIFY_URL_FILE: fileOf(address) };
  const loaded = load(`${FILE}notify: { format: ${format} }`, env);
  const said = text === null ? '' : `KILLSWITCHD_NOTIFY_URL_FILE: in the file that it names: ${text}`;
  expect(problemsOf(loaded)).toBe(said);
  expect(JSON.stringify(loaded)).not.toContain('hidden');
});

test('a secret in memory shows itself as redacted wherever it may end up by accident', () => {
  const secret = makeSecret('s'.repeat(64), 'file');
  const shown = '[redacted, 64 chars, from file]';
  expect([String(secret), JSON.stringify({ secret })]).toEqual([shown, JSON.stringify({ secret: shown })]);
  const seen = [inspect(secret, { showHidden: true, depth: null }), JSON.stringify(Object.entries(secret))];
  expect(seen.join()).not.toContain('sss');
  expect(secret.reveal()).toBe('s'.repeat(64));
});

test('the token and the last keys stay hidden, however often the key is rotated', () => {
  const env = { KILLSWITCHD_CONTROL_TOKEN_FILE: fileOf('token-of-the-listener-0123456789abcdef') };
  const secrets = createSecrets(loadWell(`${FILE}control: { listen: ['127.0.0.1:1'] }`, env).config);
  const pairOf = (round: number) => ({
    apiKey: makeSecret(`rotated-key-${round}-end`, 'file'),
    apiSecret: makeSecret(`rotated-secret-${round}-end`, 'file'),
  });
  for (let round = 0; round < 60; round += 1) secrets.replace({ secrets: pairOf(round) });
  const said =
    'token-of-the-listener-0123456789abcdef rotated-key-59-end rotated-secret-59-end rotated-key-50-end';
  expect(secrets.hide(said)).toBe(Array.from({ length: 4 }, () => '[redacted]').join(' '));
});

const unit = fc.constantFrom(...Array.from('abcXYZ0123456789+/="\\-_%$&\''));
const secret = fc.string({ unit, minLength: 16, maxLength: 80 }).filter((text) => !/^["']/.test(text));
const misplaced = fc.constantFrom(
  ...'BASE_URL MARKETS TIMEOUT_SECONDS LIVENESS_MODE WEB_LISTEN LOG_LEVEL'.split(' '),
  ...'CONFIG API_KEY_FILE API_SECERT CONTROL_TOKEN_FILE CONTROL_TOKEN LIVENESS_URL'.split(' '),
);

it('secrets never stand in a message, not even when they were put into the wrong variable as well', () => {
  fc.assert(
    fc.property(secret, secret, misplaced, fc.boolean(), (key, apiSecret, name, spoilt) => {
      const env = {
        ...ENVIRONMENT,
        KILLSWITCHD_API_KEY: spoilt ? `${key} ` : key,
        KILLSWITCHD_API_SECRET: apiSecret,
        [`KILLSWITCHD_${name}`]: apiSecret,
        KILLSWITCHD_LOG_FORMAT: 'xml',
      };
      const problems = problemsOf(load(null, env));
      expect(problems).not.toBe('');
      for (const text of [key, apiSecret, JSON.stringify(apiSecret).slice(1, -1)])
        expect(problems).not.toContain(text);
    }),
    { numRuns: 200 },
  );
});

it('secrets never stand in the configuration as it is printed or logged', () => {
  fc.assert(
    fc.property(secret, secret, (key, apiSecret) => {
      const keys = { KILLSWITCHD_API_KEY: key, KILLSWITCHD_API_SECRET: apiSecret };
      const { config, sources } = loadWell(null, { ...ENVIRONMENT, ...keys });
      const shown = `${JSON.stringify(config)}${printConfig(config, sources).join('\n')}`;
      expect(shown.includes(key) || shown.includes(apiSecret)).toBe(false);
    }),
    { numRuns: 100 },
  );
});

test.each(['9f8e7d6c5b4a39281706f5e4d3c2b1a0', '90817263544536271809'])(
  'a secret whose file was given as the configuration is not shown: %s',
  (secret) => {
    const said = problemsOf(load(secret, ENVIRONMENT));
    expect(said).toContain(`found a text of ${secret.length} characters`);
    expect(said).not.toContain(secret.slice(0, 8));
  },
);
