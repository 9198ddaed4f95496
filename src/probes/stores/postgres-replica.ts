import type { Clock } from '../../core/ports.ts';
import type { CheckResult } from './store-report.ts';

/** How a standby replays, at one poll. */
export interface Replay {
  receivers: number;
  paused: boolean;
  /** The time since the last commit that was replayed, s; null if none was. An idle primary sends none, however long. */
  ageS: number | null;
  /** Positions of the log, in bytes; null if there is none yet. */
  received: number | null;
  replayed: number | null;
  /** Kinds of the settings restore_command and primary_conninfo (`PostgresFacts`). */
  restore: string;
  primary?: string;
}

/** Longer than a standby takes to replay what it has received, ms. */
const replayedWithinMs = 60_000;
const longestLagS = 300;

type Result = Omit<CheckResult, 'check'>;
const behind = (seconds: number): string => `${Math.round(seconds)} s behind`;

/** The result without what a standby streams: replay is paused, or nothing is streamed. */
function withoutStream({ receivers, paused, restore, primary, ageS }: Replay): Result | undefined {
  if (paused) return { holds: false, found: 'replay is paused' };
  if (receivers > 0) return undefined;
  if (restore === '' || primary === 'set')
    return { holds: false, found: 'no WAL receiver: nothing is streamed' };
  if (primary === undefined)
    return { holds: 'unknown', found: 'no WAL receiver, and primary_conninfo is hidden' };
  // An idle primary sends no log, so the last transaction becomes old without any loss.
  const found = `restores from an archive, ${ageS === null ? 'nothing replayed yet' : behind(ageS)}`;
  return { holds: ageS !== null && ageS <= 2 * longestLagS ? true : 'unknown', found };
}

/**
 * Creates the check `replica`, which compares the positions of a standby with those of earlier polls. The age of the last commit
 * shows nothing by itself: after an idle hour, the first record that was received and is being replayed would make the standby an
 * hour late. A standby is late if it has not replayed what it had received a minute ago; then that age is how far it is behind.
 */
export function watchReplay({ monotonicMs }: Pick<Clock, 'monotonicMs'>) {
  /** What had been received when, oldest first: the newest entry that is older than a minute, and all entries since then. */
  let seen: { atMs: number; received: number }[] = [];

  const stream = ({ ageS, received, replayed }: Replay): Result => {
    const nowMs = monotonicMs();
    // After a standby begins anew, for example from another backup, its positions may be lower than before.
    seen =
      received === null ? [] : [...seen.filter((one) => one.received <= received), { atMs: nowMs, received }];
    const first = seen.findLastIndex(({ atMs }) => nowMs - atMs >= replayedWithinMs);
    seen = seen.slice(Math.max(0, first));
    if (received !== null && replayed !== null && replayed >= received)
      return { holds: true, found: behind(0) };
    if (ageS === null || received === null || replayed === null)
      return { holds: 'unknown', found: 'nothing has been replayed yet' };
    const reached = seen.findLast((one) => one.received <= replayed);
    const lagS = reached ? Math.min(ageS, (nowMs - reached.atMs) / 1000) : ageS;
    if (lagS <= longestLagS) return { holds: true, found: behind(lagS) };
    if (first >= 0 && seen[0]!.received > replayed) return { holds: false, found: behind(lagS) };
    return {
      holds: 'unknown',
      found: `at most ${behind(ageS)}: whether it replays what it receives is not known yet`,
    };
  };

  return (watched: unknown): CheckResult[] => {
    const replay = watched as Replay | undefined;
    return replay ? [{ check: 'replica', ...(withoutStream(replay) ?? stream(replay)) }] : [];
  };
}
