import { LISTINGS } from './listings.ts';
import { OPERATIONS, type Operation } from './operations.ts';
import type { SimulatedExchange } from './simulated-exchange.ts';

/** The plain-text page at `/`: what this is and what can be asked of it. */
export function welcomePage(exchange: SimulatedExchange, faultKinds: readonly string[]): string {
  const markets =
    exchange.markets === 'any' ? 'any name of the form BASE_QUOTE' : exchange.markets.join(', ');
  return `${[
    'killswitchd: a simulated exchange. No real market, no real money.',
    `Profile: ${exchange.profile}. Markets: ${markets}.`,
    '',
    'Operations of the API:',
    ...OPERATIONS.map(lineOf),
    '',
    'Beyond the API document, because libraries ask for it first:',
    ...LISTINGS.map(lineOf),
    '',
    'To watch it (from this host only):',
    '  GET    /simulator/state                 timers with secondsLeft, resting orders, faults',
    '  GET    /simulator/balances              every balance, fees, withdrawals and deposits by currency',
    '  GET    /simulator/orders                resting orders and filled ones',
    '  GET    /simulator/prices                the prices at which market orders are filled',
    '  GET    /simulator/withdrawals           withdrawals, and /simulator/addresses: deposit addresses',
    '  GET    /simulator/events?since=SEQ      what happened after the event SEQ; &wait=MS waits for the next one',
    '',
    'To change it (from this host only):',
    '  POST   /simulator/orders                {"market","type","side","amount","price","count"} or an array of them',
    '  POST   /simulator/balances              {"currency","amount","account"} or an array of them',
    '  POST   /simulator/prices                {"market","price"} or an array of them',
    '  POST   /simulator/faults                {"kind",...} or an array of them; any kind takes match, probability, count, forMs',
    '  DELETE /simulator/faults                ends every fault',
    '',
    `Kinds of fault: ${faultKinds.join(', ')}`,
  ].join('\n')}\n`;
}

function lineOf({ method, path }: Operation): string {
  return `  ${method.padEnd(6)} ${path}`;
}
