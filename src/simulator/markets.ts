/** Markets that the demonstration has orders in and that the pages name. */
export const DEMO_MARKETS = [
  'BTC_USDT',
  'ETH_USDT',
  'SOL_USDT',
  'XRP_USDT',
  'LTC_USDT',
  'ETH_BTC',
  'DBTC_DUSDT',
  'BTC_PERP',
  'ETH_PERP',
] as const;

const FORM = /^[A-Z0-9]{1,20}_[A-Z0-9]{1,20}$/;

/** The name has the form `<BASE>_<QUOTE>` in capital letters and digits. */
export function isMarketName(name: string): boolean {
  return FORM.test(name);
}

/** Says which markets there are: those listed, or any well-formed name. */
export function createMarketCheck(markets: readonly string[] | 'any'): (name: string) => boolean {
  if (markets === 'any') return isMarketName;
  const listed = new Set(markets);
  return (name) => listed.has(name);
}
