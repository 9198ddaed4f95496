import type { Fault } from '../../core/errors.ts';
import type { AgentConfig } from './types.ts';

/** One row per part that is checked but cannot run yet; finds where a configuration asks for it. */
type Row = (config: AgentConfig) => readonly string[];

const rows: readonly Row[] = [({ backups }) => (backups.length > 0 ? ['backups'] : [])];

/** Parts that the configuration asks for and that this version cannot run; `run` refuses. */
export function notAvailable(config: AgentConfig): Fault[] {
  return rows
    .flatMap((row) => row(config))
    .map((where) => ({ where, what: 'not available yet', allowed: 'take it out' }));
}
