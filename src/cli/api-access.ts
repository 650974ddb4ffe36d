import { checkBaseUrl } from '../config/addresses.ts';
import { listProblems, type Path, type Place, type Tree } from '../config/problem.ts';
import { readAccessTokenFile, readSecrets } from '../config/secrets.ts';
import { checkLayer } from '../config/validate.ts';
import type { ClientOptions } from '../exchange/client.ts';
import type { Operation } from '../exchange/operations.ts';
import { CommandError } from './command-error.ts';
import { type Edge, EXIT } from './edge.ts';

/** What the command line says about the exchange and the access to it. */
export interface AccessFlags {
  readonly config?: string;
  readonly baseUrl?: string;
  readonly accessTokenFile?: string;
}

/** What the client needs to know of a configuration. */
export type ApiAccess = Pick<
  ClientOptions,
  'allowPlainHttp' | 'bases' | 'credentials' | 'nonce' | 'accessToken'
>;

type Authentication = Operation<never>['authentication'];

/**
 * Base address, nonces, key and token, as `check-config` finds them, and nothing else of the configuration: markets
 * and liveness may be missing. Only what the operation needs is asked for. Throws a `CommandError` that says what to
 * write.
 */
export async function findApiAccess(
  authentication: Authentication,
  flags: AccessFlags,
  env: Edge['env'],
): Promise<ApiAccess> {
  const exchange = await readExchange(flags.config ?? env['KILLSWITCHD_CONFIG'] ?? null);
  const allowPlainHttp = exchange.values['allowPlainHttp'] === true;
  const base = findBase(flags, env, exchange, allowPlainHttp);
  const nonce = exchange.values['nonce'] === 'window' ? 'window' : 'increasing';
  const pair = authentication === 'signed' ? readPair(env) : { key: '', secret: '' };
  const token = authentication === 'bearer' ? readToken(flags.accessTokenFile) : null;
  return {
    bases: [base],
    allowPlainHttp,
    nonce,
    credentials: () => pair,
    accessToken: token === null ? undefined : () => token,
  };
}

/** The section `exchange` of the file, checked. */
interface ExchangeSection {
  readonly values: Tree;
  readonly place: (path: Path) => Place;
}

async function readExchange(name: string | null): Promise<ExchangeSection> {
  if (name === null) return { values: {}, place: () => ({ label: '', rank: 0, offset: 0 }) };
  // The parser costs more time than all the rest of a command.
  const { readConfigFile } = await import('../config/file.ts');
  const file = readConfigFile(name);
  if (file.values === null) throw new CommandError(EXIT.config, listProblems(file.problems).join('\n'));
  const { exchange } = file.values;
  if (exchange === undefined) return { values: {}, place: file.place };
  const layer = checkLayer('file', { exchange }, file.place);
  if (layer.problems.length > 0) throw new CommandError(EXIT.config, listProblems(layer.problems).join('\n'));
  return { values: layer.values['exchange'] as Tree, place: file.place };
}

function findBase(
  flags: AccessFlags,
  env: Edge['env'],
  { values, place }: ExchangeSection,
  allowPlainHttp: boolean,
): string {
  const check = (label: string, text: string, exitCode: 64 | 78): string => {
    const checked = checkBaseUrl(text, allowPlainHttp);
    if (checked.kind === 'ok') return checked.value;
    throw new CommandError(exitCode, `${label}: ${checked.text}`);
  };
  if (flags.baseUrl !== undefined) return check('--base-url', flags.baseUrl, EXIT.usage);
  const variable = env['KILLSWITCHD_BASE_URL'];
  if (variable !== undefined) return check('KILLSWITCHD_BASE_URL', variable, EXIT.config);
  const [written] = (values['baseUrls'] ?? []) as readonly string[];
  if (written !== undefined) return check(place(['exchange', 'baseUrls', 0]).label, written, EXIT.config);
  throw new CommandError(
    EXIT.config,
    'nothing says where the exchange is; write --base-url https://HOST[:PORT], set KILLSWITCHD_BASE_URL to it, or name a configuration file with exchange.baseUrls by --config',
  );
}

function readPair(env: Edge['env']): { readonly key: string; readonly secret: string } {
  const read = readSecrets(env, { demo: false });
  if (read.kind === 'invalid') throw new CommandError(EXIT.config, read.problems.join('\n'));
  return { key: read.secrets.apiKey.reveal(), secret: read.secrets.apiSecret.reveal() };
}

/** The token never comes from the command line: everybody on the host can read that. */
function readToken(file: string | undefined): string {
  if (file === undefined) {
    throw new CommandError(
      EXIT.usage,
      '--access-token-file: missing; the order history needs an OAuth 2.0 access token, write it into a file and name that here',
    );
  }
  const read = readAccessTokenFile(file);
  if (read.kind === 'ok') return read.secret.reveal();
  throw new CommandError(EXIT.usage, `--access-token-file: ${read.text}`);
}
