// The other end of the network that `netns.ts` makes: an exchange behind TLS, bots with URLs, and a server of names.
import { createSocket } from 'node:dgram';
import { createServer as createHttp } from 'node:http';
import { connect, createServer as createTcp } from 'node:net';
import { createServer as createTls } from 'node:tls';

const { address, silent, other, exchange, key, certificate } = JSON.parse(process.env.FAR_SIDE);

/** What arrives for the exchange goes on over a Unix socket, which knows no network namespaces. */
const relay = (from) => {
  const to = connect(exchange);
  for (const socket of [from, to]) socket.on('error', () => undefined);
  from.on('close', () => to.destroy()).pipe(to);
  to.on('close', () => from.destroy()).pipe(from);
};
for (const one of [address, other]) createTls({ key, cert: certificate }, relay).listen(443, one);
/** Takes connections and says nothing. */
createTcp((socket) => socket.on('error', () => undefined)).listen(443, silent);

createHttp((_request, response) => response.setHeader('connection', 'close').end('alive')).listen(
  8080,
  address,
);

/** What the server of names does: it answers, or as the last line of standard input says. */
let manner = 'answers';
process.stdin.setEncoding('utf8').on('data', (line) => {
  manner = line.trim();
  process.stdout.write('done\n');
});
const RESPONSE = {
  answers: 0x8180,
  'answers late': 0x8180,
  'names dead addresses first': 0x8180,
  'names a silent address first': 0x8180,
  'names another address': 0x8180,
  'names only another name': 0x8180,
  'is truncated': 0x8380,
  fails: 0x8182,
  'knows no name': 0x8183,
};
const LATE_MS = 4000;
const ADDRESSES = {
  'names dead addresses first': ['10.231.2.77', '10.231.2.78', address],
  'names a silent address first': [silent, address],
  'names another address': [other],
};

/** Answers names with this address, but for those that begin with `silent`; single labels and those in the hosts file are unknown. */
const names = createSocket('udp4');
names.on('message', (query, { port, address: asker }) => {
  const name = [];
  let at = 12;
  for (; query[at] !== 0; at += query[at] + 1)
    name.push(query.toString('latin1', at + 1, at + 1 + query[at]));
  const isA = query.readUInt16BE(at + 1) === 1;
  const response = RESPONSE[manner];
  if (name[0].startsWith('silent') || response === undefined) return;
  const head = Buffer.from(query.subarray(0, 12));
  const isKnown = response === RESPONSE.answers && name.length > 1 && !name[0].startsWith('hosted');
  head.writeUInt16BE(isKnown || response !== RESPONSE.answers ? response : RESPONSE['knows no name'], 2);
  const addresses = ADDRESSES[manner] ?? [address];
  // A CNAME, and no address of the other name.
  const isAlias = manner === 'names only another name';
  head.writeUInt16BE(isAlias ? 1 : isKnown && isA ? addresses.length : 0, 6);
  head.fill(0, 8, 12);
  const answer = Buffer.from(
    addresses.flatMap((one) => [0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 1, 0, 4, ...one.split('.').map(Number)]),
  );
  const alias = Buffer.from([0xc0, 12, 0, 5, 0, 1, 0, 0, 0, 1, 0, 4, 1, 0x78, 0xc0, 12]);
  const records = isAlias ? alias : isKnown && isA ? answer : Buffer.alloc(0);
  const said = Buffer.concat([head, query.subarray(12, at + 5), records]);
  setTimeout(() => names.send(said, port, asker), manner === 'answers late' ? LATE_MS : 0);
});
names.bind(53, address, () => process.stdout.write('up\n'));
