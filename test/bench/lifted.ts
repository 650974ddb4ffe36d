// Loaded before the daemon whose speed without a rate limit is measured: it takes the documented limit for a hundred
// times what it is. The product has no setting for this, on purpose, and nobody can switch it on by accident.
import { registerHooks } from 'node:module';

const DOCUMENTED = 'const DOCUMENTED_REQUESTS = 10_000;';
const LIFTED = 'const DOCUMENTED_REQUESTS = 1_000_000;';

registerHooks({
  load(url, context, next) {
    const loaded = next(url, context);
    if (!/\/config\/core-settings\.[jt]s$/.test(url)) return loaded;
    const source =
      typeof loaded.source === 'string' ? loaded.source : new TextDecoder().decode(loaded.source);
    if (!source.includes(DOCUMENTED)) throw new Error(`${url} does not say "${DOCUMENTED}" any more`);
    return { ...loaded, source: source.replace(DOCUMENTED, LIFTED) };
  },
});
