import type { FastifyInstance } from 'fastify';
import { fail } from './control-refusal.ts';
import { parseBalances, parsePrices } from './money-input.ts';
import { DEFAULT_ACCOUNT, type SimulatedExchange } from './simulated-exchange.ts';

/** Adds the endpoints under `/simulator/` that show and set money: balances, orders, prices and what was created. */
export function registerMoney(app: FastifyInstance, exchange: SimulatedExchange, nowMs: () => number): void {
  app.get('/simulator/balances', (_request, reply) => reply.send(exchange.books()));
  app.get('/simulator/prices', (_request, reply) => reply.send(exchange.prices()));
  app.get('/simulator/orders', (_request, reply) =>
    reply.send({ resting: exchange.orders(), filled: exchange.marketOrders() }),
  );
  app.get('/simulator/withdrawals', (_request, reply) => reply.send(exchange.withdrawals()));
  app.get('/simulator/addresses', (_request, reply) => reply.send(exchange.addresses()));
  app.post('/simulator/balances', (request, reply) => {
    const parsed = parseBalances(request.body, exchange.accounts, DEFAULT_ACCOUNT);
    if (!parsed.ok) return fail(reply, 400, parsed.problem);
    for (const { account, currency, amount } of parsed.items) {
      exchange.setBalance(account, currency, amount, nowMs());
    }
    return reply.send(exchange.books());
  });
  app.post('/simulator/prices', (request, reply) => {
    const parsed = parsePrices(request.body, exchange.hasStockSide);
    if (!parsed.ok) return fail(reply, 400, parsed.problem);
    for (const { market, price } of parsed.items) exchange.setPrice(market, price, nowMs());
    return reply.send(exchange.prices());
  });
}
