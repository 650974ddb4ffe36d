import { type LookupAddress, Resolver } from 'node:dns';
import { readFileSync } from 'node:fs';
import { connect as connectTcp, isIP, type LookupFunction, type Socket } from 'node:net';
import { connect as connectTls, createSecureContext, type SecureContext, type TLSSocket } from 'node:tls';
import type { buildConnector } from 'undici';
import type { FailureReason } from '../core/events.ts';
import type { Clock } from '../ports.ts';

/** A connection that could not be opened; nothing was sent over it. */
class ConnectError extends Error {
  readonly reason: FailureReason;
  constructor(reason: FailureReason, cause: NodeJS.ErrnoException) {
    super(cause.message || (cause.code ?? 'unknown error'), { cause });
    this.name = 'ConnectError';
    this.reason = reason;
  }
}

/** `silent`: it takes connections, and no answer of the exchange came. `dead`: it takes none. */
type AddressState = 'answers' | 'silent' | 'dead';

/** Known addresses are dialled at once; when they are older than this they are looked up again meanwhile. */
const FRESH_MS = 10_000;
/** After a lookup that failed, or a dial that came to no answer, the next dial looks up again, but not sooner than this. */
const AGAIN_MS = 1000;
/** A server of names that does not answer is asked again after this long, and after twice as long once more. */
const RESEND_MS = 500;
const TRIES = 3;
/** An answer for one family waits this long for the other. */
const OTHER_FAMILY_MS = 50;

/** An address may take twice as long to connect as the last one did, within these bounds, before the next is dialled. */
const LEAST_CONNECT_MS = 250;
const MOST_CONNECT_MS = 1000;

/** A place after every time. */
const LAST_PLACE = 1e15;

type Name = ReturnType<typeof createName>;

function createName() {
  return {
    known: new Array<LookupAddress>(),
    /** The place of addresses among the known ones, the least first; 0 for those that were never dialled. */
    places: new Map<string, number>(),
    lookedUpMs: Number.NEGATIVE_INFINITY,
    /** How long the last connection took. */
    connectMs: 0,
    /** The last lookup failed, or no answer came since the last dial or doubt. */
    doubtful: false,
    /** The lookup that is under way; resolves with its error, or null. */
    asked: null as Promise<NodeJS.ErrnoException | null> | null,
  };
}

/** The words, in lower case, of the lines with `text` in them: block lists have hundreds of thousands of other lines. */
function wordsOf(path: string, text: string): string[][] {
  let whole = '';
  try {
    whole = readFileSync(path, 'utf8').toLowerCase();
  } catch {
    // A file that is not there says nothing.
  }
  const lines = whole.split('\n').filter((line) => line.includes(text));
  return lines.map((line) => /^[^#;]*/.exec(line)?.[0].trim().split(/\s+/) ?? []);
}

function inHosts(name: string): LookupAddress[] {
  const host = name.toLowerCase();
  const listed = wordsOf('/etc/hosts', host)
    .filter(([, ...names]) => names.includes(host))
    .map(([address = '']) => ({ address, family: isIP(address) }))
    .filter(({ family }) => family !== 0);
  return listed.length === 0 && host === 'localhost' ? [{ address: '127.0.0.1', family: 4 }] : listed;
}

/** The full names that a name may stand for, as resolv.conf(5) orders them: `search` and `options ndots`. */
function fullNames(host: string): string[] {
  if (host.endsWith('.')) return [host];
  const lines = wordsOf('/etc/resolv.conf', '');
  const search = lines.findLast(([key]) => key === 'search' || key === 'domain')?.slice(1) ?? [];
  const options = lines.filter(([key]) => key === 'options').flat();
  const ndots = Number(options.findLast((option) => option.startsWith('ndots:'))?.slice(6) ?? 1);
  const suffixed = search.map((domain) => `${host}.${domain}`);
  return host.split('.').length > ndots ? [host, ...suffixed] : [...suffixed, host];
}

/** An answer may name another name and no address: that is no error of the resolver. */
const noAddress = (host: string): NodeJS.ErrnoException =>
  Object.assign(new Error(`queryA ENODATA ${host}`), { code: 'ENODATA', syscall: 'queryA' });

/** The servers of names say that there is no such name, or no address of it. */
const isGone = ({ code }: NodeJS.ErrnoException) => code === 'ENOTFOUND' || code === 'ENODATA';

/** A name is gone only where all say so. */
const worstOf = (errors: readonly NodeJS.ErrnoException[]) =>
  errors.find((error) => !isGone(error)) ?? errors.at(-1);

function ask(resolver: Resolver, clock: Clock, host: string): Promise<LookupAddress[]> {
  return new Promise((resolve, reject) => {
    const found: LookupAddress[] = [];
    const errors: NodeJS.ErrnoException[] = [];
    let open = 2;
    const end = () => resolve(found.toSorted((one, other) => one.family - other.family));
    const takeIn = (family: 4 | 6) => (error: NodeJS.ErrnoException | null, addresses: string[]) => {
      open -= 1;
      if (error === null) found.push(...addresses.map((address) => ({ address, family })));
      else errors.push(error);
      if (open === 0 && found.length === 0) reject(worstOf(errors) ?? noAddress(host));
      else if (open === 0) end();
      else if (found.length > 0) clock.after(OTHER_FAMILY_MS, end);
    };
    resolver.resolve4(host, takeIn(4));
    resolver.resolve6(host, takeIn(6));
  });
}

/** The addresses of the first full name that has any. A new resolver each time: it reads its servers when it is made. */
async function askAll(resolvers: Set<Resolver>, clock: Clock, host: string): Promise<LookupAddress[]> {
  const resolver = new Resolver({ timeout: RESEND_MS, tries: TRIES });
  resolvers.add(resolver);
  try {
    const answers = await Promise.allSettled(fullNames(host).map((name) => ask(resolver, clock, name)));
    const found = answers.find((answer) => answer.status === 'fulfilled');
    if (found !== undefined) return found.value;
    throw worstOf(answers.flatMap((answer) => (answer.status === 'rejected' ? [answer.reason] : [])));
  } finally {
    resolver.cancel();
    resolvers.delete(resolver);
  }
}

/**
 * Names by `/etc/hosts` and DNS. Other sources of nsswitch.conf are not asked: they need threads, and a name that does
 * not answer holds its thread for many seconds. The last good addresses are kept and used at once, so that only the first
 * dial of all waits for a lookup. One lookup per name is under way at a time. `forgets`: those of a name that is gone are
 * not kept: another one may have them by now.
 */
export function createNames(clock: Clock, forgets = false) {
  const names = new Map<string, Name>();
  const resolvers = new Set<Resolver>();

  async function lookUp(host: string, name: Name): Promise<NodeJS.ErrnoException | null> {
    const listed = inHosts(host);
    try {
      name.known = await (listed.length > 0 ? listed : askAll(resolvers, clock, host));
      // An address that the name has lost loses its place.
      for (const place of name.places.keys())
        if (!name.known.some(({ address }) => address === place)) name.places.delete(place);
      return null;
    } catch (error) {
      name.doubtful = true;
      if (forgets && isGone(error as NodeJS.ErrnoException)) name.known = [];
      return error as NodeJS.ErrnoException;
    } finally {
      name.asked = null;
      name.lookedUpMs = clock.now().monoMs;
    }
  }
  const lookup: LookupFunction = (host, { all }, callback) => {
    const name = names.get(host) ?? createName();
    names.set(host, name);
    const isKnown = name.known.length > 0;
    const ageMs = clock.now().monoMs - name.lookedUpMs;
    if (!isKnown || ageMs >= (name.doubtful ? AGAIN_MS : FRESH_MS)) name.asked ??= lookUp(host, name);
    name.doubtful = true;
    const placeOf = ({ address }: LookupAddress) => name.places.get(address) ?? 0;
    void Promise.resolve(isKnown ? null : name.asked).then((error) => {
      const addresses = name.known.toSorted((one, other) => placeOf(one) - placeOf(other));
      const [first] = addresses;
      if (first === undefined) callback(error, []);
      else if (all === true) callback(null, addresses);
      else callback(null, first.address, first.family);
    });
  };
  return {
    lookup,
    /** What came of a dial of this address: the name's next dial tries first what answers, and last what is dead. */
    found(host: string, address: string, state: AddressState): void {
      const name = names.get(host);
      if (name === undefined) return;
      const { monoMs } = clock.now();
      name.places.set(address, { answers: -monoMs, silent: monoMs, dead: LAST_PLACE + monoMs }[state]);
      name.doubtful = state !== 'answers';
    },
    patienceMs: (host: string) =>
      Math.min(Math.max(LEAST_CONNECT_MS, Math.ceil(2 * (names.get(host)?.connectMs ?? 0))), MOST_CONNECT_MS),
    /** An address has begun to be dialled; the returned function says that it has connected. */
    dialling(host: string): () => void {
      const begunMs = clock.now().monoMs;
      return () => {
        const name = names.get(host);
        if (name !== undefined) name.connectMs = clock.now().monoMs - begunMs;
      };
    },
    /** Ends the lookups that are under way. */
    close(): void {
      for (const resolver of resolvers) resolver.cancel();
    },
  };
}

/** A connection that was open closed before the request was written; nothing was sent over it. */
export class ClosedError extends Error {
  override readonly name = 'ClosedError';
}

/** What the connections to one origin share. */
export interface DiallerOptions {
  /** Where to, as `https://host[:port]`. */
  readonly origin: string;
  readonly names: ReturnType<typeof createNames>;
  /** Certificates in PEM form that are trusted instead of the well-known authorities. */
  readonly ca?: string | undefined;
  /** What is trusted, read once, and the last session, so that a further connection needs one round trip less. */
  readonly tls: { context?: SecureContext; session?: Buffer };
}

/** How long a connection rests before the operating system checks that the other side still exists. */
const TCP_KEEPALIVE_MS = 15_000;
const INTERIM = 'HTTP/1.1 1';
const SWITCHING_PROTOCOLS = 'HTTP/1.1 101';
const MAX_HEAD_CHARS = 16_384;

/** Dials the host's addresses one after the other, and keeps in mind which of them answer, and how fast. */
function dial(names: DiallerOptions['names'], host: string, port: number): Socket {
  const autoSelectFamilyAttemptTimeout = names.patienceMs(host);
  const { lookup } = names;
  const socket = connectTcp({ host, port, lookup, noDelay: true, autoSelectFamilyAttemptTimeout });
  socket.setKeepAlive(true, TCP_KEEPALIVE_MS);
  for (const event of ['connectionAttemptFailed', 'connectionAttemptTimeout'])
    socket.on(event, (attempted: string) => names.found(host, attempted, 'dead'));
  let connected = () => undefined as void;
  socket.on('connectionAttempt', () => {
    connected = names.dialling(host);
  });
  socket.once('connect', () => connected());
  return socket;
}

/**
 * Opens the socket of a connection in undici's place: so an attempt that hangs can be given up at once (undici has a timer
 * of its own), what was written is not sent again after that, and a failure says whether names, network or TLS failed.
 */
export function createDialler(options: DiallerOptions) {
  const { names, tls } = options;
  const { protocol, hostname, port } = new URL(options.origin);
  const secure = protocol === 'https:';
  const host = hostname.replace(/^\[|\]$/g, '');
  let tcp: Socket | null = null;
  /** Where the connection leads to; null before it reached that. */
  let address: string | null = null;
  /** The last answer over it was the exchange's own. */
  let isTrusted = false;
  let ready: Socket | null = null;
  let isOpen = false;
  let expectAnswer = (): void => undefined;
  const shakesHands = () => address !== null && !isOpen;
  return {
    /** Opens it, and says when it is open; at once where it is. */
    open(opened: (error: ConnectError | null) => void): void {
      if (isOpen) return opened(null);
      const socket = dial(names, host, Number(port) || (secure ? 443 : 80));
      tcp = socket;
      const succeed = (connected: Socket | TLSSocket) => {
        ready = connected;
        isOpen = true;
        expectAnswer = passInterimOver(connected);
        opened(null);
      };
      // Listens for the life of the socket: an error after the connection is undici's to handle, not to crash on.
      const onError = (error: NodeJS.ErrnoException) => {
        if (isOpen || tcp !== socket) return;
        const isQuery = error.syscall?.startsWith('query') === true;
        opened(new ConnectError(isQuery ? 'dns' : shakesHands() ? 'tls' : 'network', error));
      };
      socket.on('error', onError);
      socket.once('connect', () => {
        address = socket.remoteAddress ?? '';
        if (!secure) return succeed(socket);
        const secured = startTls(socket, host, options);
        secured.on('error', onError);
        secured.once('secureConnect', () => succeed(secured));
      });
    },
    /** Hands undici the open socket. It opens no other one: a request is signed for a connection that is open. */
    connect: (_options: unknown, callback: buildConnector.Callback): void => {
      handOver(ready, callback);
      ready = null;
    },
    /** A request is about to be written: the head of its answer comes next. */
    expectAnswer: () => expectAnswer(),
    /** An answer came, of the exchange itself or of something before it. Where it was the latter, `reset` says so. */
    answered(isOfExchange: boolean): void {
      if (isOfExchange && !isTrusted && address !== null) names.found(host, address, 'answers');
      isTrusted = isOfExchange;
    },
    /** Closes the socket with a reset, so that the kernel drops what it has not sent yet, and sends nothing again. */
    reset(): void {
      if (!isTrusted && address !== null) names.found(host, address, 'silent');
      // The session that was offered may be the reason.
      if (shakesHands()) delete tls.session;
      // Node puts off the reset of a socket that still connects. That one has sent nothing.
      if (tcp?.connecting === true) tcp.destroy();
      else tcp?.resetAndDestroy();
      tcp = null;
    },
  };
}

/** Later in this turn: undici misses what is called back at once. */
function handOver(socket: Socket | null, callback: buildConnector.Callback): void {
  queueMicrotask(() => {
    if (socket === null || socket.destroyed || socket.readableEnded)
      callback(new ClosedError('the connection was closed'), null);
    else callback(null, socket);
  });
}

function startTls(socket: Socket, host: string, { ca, tls }: DiallerOptions): TLSSocket {
  tls.context ??= createSecureContext({ ca });
  const secure = connectTls({
    socket,
    host,
    // The name extension of TLS carries names only; an address is checked against the certificate all the same.
    servername: isIP(host) === 0 ? host : '',
    ALPNProtocols: ['http/1.1'],
    // Said explicitly so that NODE_TLS_REJECT_UNAUTHORIZED cannot switch it off.
    rejectUnauthorized: true,
    secureContext: tls.context,
    ...(tls.session !== undefined && { session: tls.session }),
  });
  secure.on('session', (session) => {
    tls.session = session;
  });
  return secure;
}

/** False where it is sure that the text does not begin with an interim answer. */
function mayBeInterim(text: string): boolean {
  return INTERIM.startsWith(text.slice(0, INTERIM.length)) && !text.startsWith(SWITCHING_PROTOCOLS);
}

/**
 * Cuts interim answers out: some gateways send a `100 Continue` that nobody asked for, and undici takes it for a broken
 * answer. The returned function says that the head of an answer comes next.
 */
function passInterimOver(socket: Socket): () => void {
  const read = socket.read.bind(socket) as (size?: number) => Buffer | null;
  let expecting = false;
  let held = '';
  socket.read = (size?: number): Buffer | null => {
    const chunk = read(size);
    if (!expecting || chunk === null) return chunk;
    if (held === '' && !mayBeInterim(chunk.toString('latin1', 0, SWITCHING_PROTOCOLS.length))) {
      expecting = false;
      return chunk;
    }
    held += chunk.toString('latin1');
    for (let end = 0; end !== -1 && mayBeInterim(held); ) {
      end = held.indexOf('\r\n\r\n');
      if (end !== -1) held = held.slice(end + 4);
    }
    if (mayBeInterim(held) && held.length < MAX_HEAD_CHARS) return null;
    expecting = false;
    return Buffer.from(held, 'latin1');
  };
  return () => {
    expecting = true;
    held = '';
  };
}
