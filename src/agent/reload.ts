import { AgentError, errorText, faultLine } from '../core/errors.ts';
import type { Clock, Log } from '../core/ports.ts';
import type { Loaded, ReadyConfig } from './config/types.ts';
import { spanned } from './gather.ts';
import type { SelfMetrics } from './self-metrics.ts';

interface ReloadsDeps {
  /** Reads the configuration again; throws on what cannot run. */
  load(): Promise<Loaded>;
  /** Puts it to work; throws with nothing changed. */
  take(config: ReadyConfig): Promise<void>;
  self: SelfMetrics;
  clock: Clock;
  log: Log;
}

/** Readings of the configuration after the first, one at a time in the order asked for. */
export interface Reloads {
  /** Reads again; a bad configuration is logged, shows in the agent's metrics, and changes nothing. */
  ask(): void;
  idle(): Promise<void>;
  /** Why the newest configuration was not taken; undefined when it was. */
  readonly error: string | undefined;
}

/** Faults of a file in one line of the log; `svc-agent check` shows the rest. */
const shownFaults = 5;

function faultsOf(faults: Loaded['faults']): AgentError {
  const lines = faults.slice(0, shownFaults).map(faultLine);
  const more = faults.length > shownFaults ? [`and ${faults.length - shownFaults} more`] : [];
  return new AgentError('config_invalid', { where: 'configuration', what: [...lines, ...more].join(' | ') });
}

export function createReloads({ load, take, self, clock, log }: ReloadsDeps): Reloads {
  let error: string | undefined;
  let last = Promise.resolve();

  const taken = () => {
    error = undefined;
    self.reloadSuccessful.set(1);
    self.reloadSuccessTimestamp.set(clock.nowMs() / 1e3);
  };
  const readAgain = async (): Promise<void> => {
    const loaded = await load();
    const { config } = loaded;
    if (!config || loaded.faults.length > 0) throw faultsOf(loaded.faults);
    await take({ ...loaded, config });
  };
  const reload = async (): Promise<void> => {
    try {
      await spanned('reload', readAgain);
      taken();
      log.write('info', 'configuration read again');
    } catch (thrown) {
      error = errorText(thrown);
      self.reloadSuccessful.set(0);
      log.write('error', 'configuration not taken, the old one stays', { error: thrown });
    }
  };
  taken();
  return {
    ask() {
      last = last.then(reload);
    },
    idle: () => last,
    get error() {
      return error;
    },
  };
}
