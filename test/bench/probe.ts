// Loaded into the daemon of the soak: says what it holds, after a collection, over the channel of its process.
export interface ProbeAnswer {
  readonly heapBytes: number;
  /** Whatever keeps the process alive: sockets, timers, watchers. */
  readonly resources: number;
}

process.on('message', () => {
  for (let round = 0; round < 3; round += 1) globalThis.gc?.();
  const { heapUsed, external } = process.memoryUsage();
  const resources = process.getActiveResourcesInfo().length;
  process.send?.({ heapBytes: heapUsed + external, resources } satisfies ProbeAnswer);
});
// The channel alone keeps no daemon alive.
process.channel?.unref();
