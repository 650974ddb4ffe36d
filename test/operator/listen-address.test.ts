import { describe, expect, test } from 'vitest';
import { ListenError, parseControlAddress } from '../../src/operator/listen-address.ts';

describe('an address of the control listener', () => {
  test.each([
    ['unix:/run/killswitchd/control.sock', { kind: 'unix', path: '/run/killswitchd/control.sock' }],
    ['127.0.0.1:17478', { kind: 'tcp', host: '127.0.0.1', port: 17_478 }],
    ['127.9.9.9:0', { kind: 'tcp', host: '127.9.9.9', port: 0 }],
    ['[::1]:17478', { kind: 'tcp', host: '::1', port: 17_478 }],
    ['localhost:17478', { kind: 'tcp', host: 'localhost', port: 17_478 }],
  ])('%s is read', (text, address) => {
    expect(parseControlAddress(text)).toEqual(address);
  });

  test.each([
    [
      '0.0.0.0:17478',
      'other hosts can reach it, and the control listener changes state; write 127.0.0.1:17478',
    ],
    ['[::]:17478', 'write 127.0.0.1:17478'],
    ['192.168.1.5:17478', 'other hosts can reach it'],
    ['bot.example:17478', 'other hosts can reach it'],
    ['127.0.0.1', 'not an address; write unix:/PATH, or host:port of this host'],
    ['/run/control.sock', 'not an address; write unix:/PATH'],
    ['unix:control.sock', 'not the path of a socket; write unix:/PATH'],
    ['unix:/run/', 'not the path of a socket'],
    ['unix:/run/\0x', 'not the path of a socket'],
    ['unix:', 'not the path of a socket'],
  ])('%s is refused', (text, problem) => {
    const parse = () => parseControlAddress(text);
    expect(parse).toThrow(ListenError);
    expect(parse).toThrow(`control listener ${text}: `);
    expect(parse).toThrow(problem);
  });
});
