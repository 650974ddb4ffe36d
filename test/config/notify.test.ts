import { expect, test } from 'vitest';
import { FILE, fileOf, load, problemsOf } from './fixture.ts';

const TELEGRAM = 'https://api.telegram.org/bot12:hidden/sendMessage';
const ANY = 'allowed: https://HOST/PATH';

test.each([
  ['no-address-hidden', 'json', `found what is no address; ${ANY}`],
  ['https://me:hidden@hooks.example/', 'json', `found a user name or password in the address; ${ANY}`],
  ['http://hooks.example.com/hidden', 'slack', `found http:// to a host of the public network; ${ANY}`],
  [
    TELEGRAM,
    'telegram',
    'found another address than format telegram needs; allowed: https://api.telegram.org/botTOKEN/sendMessage?chat_id=CHAT',
  ],
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
