import { expect, test } from 'vitest';
import { createNarrator } from '../../src/simulator/narration.ts';
import { createSimulatedExchange, type SimulatedExchange } from '../../src/simulator/simulated-exchange.ts';
import { signed } from './raw-client.ts';

const NOON_MS = Date.UTC(2026, 0, 2, 12, 0, 0);

function narrated(): { exchange: SimulatedExchange; lines: string[] } {
  const lines: string[] = [];
  const exchange = createSimulatedExchange();
  exchange.log.subscribe(createNarrator((line) => lines.push(line)));
  return { exchange, lines };
}

test('a firing timer and each order that it cancels are told with their time', () => {
  const { exchange, lines } = narrated();
  exchange.placeOrder({ market: 'BTC_USDT', type: 'spot', side: 'buy', amount: '1', price: '1' }, NOON_MS);
  exchange.handle(signed({ market: 'BTC_USDT', timeout: '5' }), NOON_MS);
  exchange.advance(NOON_MS + 5000);
  expect(lines).toEqual([
    '12:00:00Z BTC_USDT: timer armed for 5 s; unless it is renewed it cancels all orders at 12:00:05Z',
    '12:00:05Z BTC_USDT: THE TIMER FIRED; orders cancelled: 1',
    '12:00:05Z BTC_USDT: spot order 1 cancelled by the kill-switch',
  ]);
});

test('a refusal that repeats is told once, and its text cannot control the terminal', () => {
  const { exchange, lines } = narrated();
  for (let times = 0; times < 3; times += 1) {
    exchange.handle(signed({ market: 'A\u001b[2J', timeout: '5' }), NOON_MS);
  }
  expect(lines).toEqual([
    '12:00:00Z kill-switch A?[2J: refused with 422, code 31: Validation failed: Market is not available.',
  ]);
});
