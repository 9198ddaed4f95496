import type { Fault } from '../../core/errors.ts';
import type { Discovered } from './loaded.ts';
import { isWithin } from './tree.ts';
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

const rows: readonly Row[] = [
  summaries,
  ({ backups }) => (backups.length > 0 ? ['backups'] : []),
];

const wanted = (config: AgentConfig): string[] => rows.flatMap((row) => row(config));

const isFound = (where: string, discovered: readonly Discovered[]): boolean =>
  discovered.some(({ path }) => isWithin(path, where));

/** Parts that the configuration itself asks for and that this version cannot run; `run` refuses. */
export function notAvailable(config: AgentConfig, discovered: readonly Discovered[]): Fault[] {
  return wanted(config)
    .filter((where) => !isFound(where, discovered))
    .map((where) => ({ where, what: 'not available yet', allowed: 'take it out' }));
}

/** Parts that the service's files gave and that this version cannot run: nobody asked for them, so they wait. */
export function notYetUsed(config: AgentConfig, discovered: readonly Discovered[]): string[] {
  return wanted(config).filter((where) => isFound(where, discovered));
}
