import type { Fault } from '../../core/errors.ts';
import type { AgentConfig } from './types.ts';

/** One row per part that is checked but cannot run yet; finds where a configuration asks for it. */
type Row = (config: AgentConfig) => readonly string[];

/** Quantiles of what the agent itself times, such as statsd timers. */
const summaries: Row = ({ metrics, services }) => {
  const blocks = [
    { where: 'metrics', metrics },
    ...services.map(({ name, metrics: own }) => ({ where: `services.${name}.metrics`, metrics: own })),
  ];
  return blocks
    .filter(
      ({ metrics: { reporter } = {} }) =>
        reporter?.kind === 'pullmetrics' && reporter.options.timerType === 'summary',
    )
    .map(({ where }) => `${where}.pullmetrics.timerType`);
};

const rows: readonly Row[] = [summaries, ({ backups }) => (backups.length > 0 ? ['backups'] : [])];

/** Parts that the configuration asks for and that this version cannot run; `run` refuses. */
export function notAvailable(config: AgentConfig): Fault[] {
  return rows
    .flatMap((row) => row(config))
    .map((where) => ({ where, what: 'not available yet', allowed: 'take it out' }));
}
