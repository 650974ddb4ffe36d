import type { Outcome } from '../src/core/events.ts';
import type { Notice } from '../src/core/notice.ts';
import { createKeeper } from '../src/keeper.ts';
import type { Exchange, PingOutcome, SyncRequest } from '../src/ports.ts';
import { coreSettings, type SettingsOptions } from './core/core-settings.ts';
import { createHostClock, createTimeline } from './simulation/virtual-clock.ts';

interface Call {
  readonly request: SyncRequest;
  readonly settle: (outcome: Outcome) => void;
  aborted: boolean;
}

const EPOCH = 1_700_000_000;

/** A keeper whose exchange does nothing by itself. */
export function createStage(options: SettingsOptions = {}, observe: (notice: Notice) => void = () => {}) {
  const timeline = createTimeline(0);
  const clock = createHostClock(timeline, { wallMs: EPOCH * 1000 });
  const calls: Call[] = [];
  const pings: { base: number; timeoutMs: number; settle: (outcome: PingOutcome) => void }[] = [];
  const notices: Notice[] = [];
  const exchange: Exchange = {
    sync(request, settle) {
      const call: Call = { request, settle, aborted: false };
      calls.push(call);
      request.signed();
      return () => {
        call.aborted = true;
      };
    },
    ping(base, timeoutMs, settle) {
      pings.push({ base, timeoutMs, settle });
      return () => {};
    },
  };
  const keeper = createKeeper({
    settings: coreSettings(options),
    clock,
    exchange,
    observe(notice) {
      notices.push(notice);
      observe(notice);
    },
  });
  return {
    keeper,
    clock,
    timeline,
    calls,
    pings,
    notices,
    run: (forMs: number) => timeline.runUntil(timeline.nowMs() + forMs),
    apply: (call: Call | undefined) => {
      if (call === undefined) return;
      const { market, timeoutSeconds } = call.request;
      const startTime = EPOCH + Math.floor(timeline.nowMs() / 1000);
      const cancellationTime = startTime + (timeoutSeconds ?? 0);
      call.settle({ kind: 'applied', timer: { market, startTime, cancellationTime, types: null } });
    },
  };
}
