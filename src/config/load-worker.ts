import { parentPort, workerData } from 'node:worker_threads';
import { loadConfig } from './load.ts';
import { pack } from './load-aside.ts';

/** The other end of `loadAside`: reads one configuration, and ends. */
parentPort?.postMessage(pack(loadConfig(workerData as Parameters<typeof loadConfig>[0])));
