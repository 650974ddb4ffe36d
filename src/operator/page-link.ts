/**
 * Keeps the page in touch with the daemon, in the browser: by server-sent events, by asking where those fail or the page
 * is hidden (a browser opens six connections to a host, and hidden pages would hold them), and by asking again and again
 * once nothing is heard any more.
 */
export const LINK_SOURCE = `
const LOST_MS = 5000, QUIET_STREAM_MS = 3500, GIVE_UP_MS = 4000, STREAM_AGAIN_MS = 5000, STREAM_LATEST_MS = 60000;
const ASK_MS = 1000, ASK_GONE_MS = 2000, ASK_HIDDEN_MS = 10000, SLEPT_MS = 10000;
const connection = { gone: null, goneAtMs: 0, heardAt: Date.now() / 1000, heardMs: performance.now(), link: 'none' };
let stream = null, streamSaidMs = 0, streamAgainMs = STREAM_AGAIN_MS, streamFromMs = 0;
let asking = false, askFromMs = Infinity, seenMs = performance.now();

function heard(json, link) {
  take(JSON.parse(json));
  connection.heardMs = performance.now();
  connection.heardAt = Date.now() / 1000;
  connection.link = link;
  if (connection.gone !== null) speak('The daemon answers again');
  connection.gone = null;
  show();
}

function lose(how) {
  if (connection.gone !== null) return;
  connection.gone = how;
  connection.goneAtMs = performance.now();
  askFromMs = Math.min(askFromMs, connection.goneAtMs + ASK_GONE_MS);
  show();
}

function closeStream() {
  if (stream !== null) stream.close();
  stream = null;
}

function openStream() {
  stream = new EventSource('/api/v1/events');
  streamSaidMs = performance.now();
  stream.addEventListener('status', ({ data }) => {
    streamSaidMs = performance.now();
    streamAgainMs = STREAM_AGAIN_MS;
    heard(data, 'stream');
  });
  stream.addEventListener('end', () => {
    closeStream();
    lose('ended');
  });
  stream.addEventListener('error', failStream);
}

function failStream() {
  closeStream();
  streamFromMs = performance.now() + streamAgainMs;
  streamAgainMs = Math.min(STREAM_LATEST_MS, streamAgainMs * 2);
  askFromMs = 0;
  keepInTouch();
}

async function ask() {
  asking = true;
  const giveUp = new AbortController(), timer = setTimeout(() => giveUp.abort(), GIVE_UP_MS);
  try {
    const reply = await fetch('/api/v1/status?view=page', { signal: giveUp.signal, cache: 'no-store' });
    if (!reply.ok) throw new Error('status ' + reply.status);
    const wasGone = connection.gone !== null;
    heard(await reply.text(), 'poll');
    if (wasGone) streamFromMs = 0;
  } catch {
    if (performance.now() - connection.heardMs > LOST_MS) lose('lost');
  }
  clearTimeout(timer);
  askFromMs = performance.now() + (document.hidden ? ASK_HIDDEN_MS : connection.gone === null ? ASK_MS : ASK_GONE_MS);
  asking = false;
}

function keepInTouch() {
  const nowMs = performance.now(), sinceHeardMs = nowMs - connection.heardMs;
  if (stream !== null && document.hidden) {
    closeStream();
    askFromMs = nowMs + ASK_HIDDEN_MS;
  }
  if (stream !== null && nowMs - streamSaidMs > QUIET_STREAM_MS) return failStream();
  const slept = Date.now() - connection.heardAt * 1000 - sinceHeardMs > SLEPT_MS;
  const quiet = !document.hidden && Math.min(sinceHeardMs, nowMs - seenMs) > LOST_MS;
  if (slept || quiet) lose('lost');
  if (stream === null && !document.hidden && connection.gone === null && nowMs >= streamFromMs) openStream();
  if (stream === null && !asking && nowMs >= askFromMs) ask();
}

document.addEventListener('visibilitychange', () => {
  seenMs = performance.now();
  streamFromMs = 0;
  askFromMs = 0;
  keepInTouch();
});
addEventListener('pagehide', closeStream);
`;
