import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { loadConfig } from '../../src/config/load.ts';
import { ENVIRONMENT } from './fixture.ts';

/** What is said about a file with this address, for messages of a format. */
function problemsOf(address: string, format: string): readonly string[] {
  const folder = mkdtempSync(join(tmpdir(), 'killswitchd-notify-'));
  try {
    const file = join(folder, 'url');
    writeFileSync(file, address, { mode: 0o400 });
    const config = join(folder, 'killswitchd.json');
    writeFileSync(config, JSON.stringify({ liveness: { mode: 'none' }, notify: { format } }));
    const env = { ...ENVIRONMENT, KILLSWITCHD_NOTIFY_URL_FILE: file };
    const loaded = loadConfig({ env, flags: { config } });
    expect(JSON.stringify(loaded)).not.toContain('hidden');
    return loaded.kind === 'ok' ? [] : loaded.problems;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

const TELEGRAM = 'https://api.telegram.org/bot12:hidden/sendMessage';
test.each([
  ['no address', 'hidden-and-no-address', 'json', 'found what is no address; allowed: https://HOST/PATH'],
  [
    'a user name or password',
    'https://me:hidden@hooks.example/',
    'json',
    'found a user name or password in the address; allowed: https://HOST/PATH',
  ],
  [
    'plain http to the public network',
    'http://hooks.example.com/hidden',
    'slack',
    'found http:// to a host of the public network; allowed: https://HOST/PATH',
  ],
  [
    'no chat',
    TELEGRAM,
    'telegram',
    'found another address than format telegram needs; allowed: https://api.telegram.org/botTOKEN/sendMessage?chat_id=CHAT',
  ],
])('an address for messages with %s is refused and not shown', (_, address, format, text) => {
  const said = `KILLSWITCHD_NOTIFY_URL_FILE: in the file that it names: ${text}`;
  expect(problemsOf(address, format)).toEqual([said]);
});

test.each([
  ['https://hooks.slack.com/services/hidden', 'slack'],
  ['http://127.0.0.1:8080/hidden', 'json'],
  ['http://alerts:8080/hidden', 'json'],
  [`${TELEGRAM}?chat_id=-100`, 'telegram'],
])('an address for messages may be one of the right kind (%#)', (address, format) => {
  expect(problemsOf(address, format)).toEqual([]);
});
